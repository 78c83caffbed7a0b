//! Requests that refer to an object by its name, or by the beginning of its id.

use api::{Code, Error, RunList, RunShow, ScheduleAdd, ScheduleShow, WaitForChanges, Why};
use kernel::{Actor, Role};

use crate::steps::*;
use crate::world::{World, builtin, run_engine};

async fn show(world: &World, text: &str) -> Result<String, Error> {
    world.send(ScheduleShow { id: text.to_owned() }).await.map(|shown| shown.schedule.id)
}

#[tokio::test(start_paused = true)]
async fn schedule_is_found_by_name_and_by_unique_prefix() {
    let world = world().await;
    let standup = add(&world, named("standup", "ada", every("1h", "a"))).await;
    let report = add(&world, named("the report", "ada", every("2h", "b"))).await;
    assert_eq!(show(&world, "standup").await.unwrap(), standup);
    assert_eq!(show(&world, "the report").await.unwrap(), report);
    for digits in 1..=8 {
        let prefix = &standup[..4 + digits];
        match show(&world, prefix).await {
            Ok(id) => assert_eq!(id, standup, "{prefix}"),
            Err(error) => {
                assert!(report.starts_with(prefix), "{prefix}: {error:?}");
                assert_eq!(error.code, Code::InvalidInput);
                assert!(error.message.contains(&standup) && error.message.contains(&report));
            }
        }
    }
    for text in ["", "sch_", "stand", "STANDUP", "sch_zzzz", "run_0"] {
        let error = show(&world, text).await.unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{text}: {error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_two_schedules_have_is_refused_with_both_ids() {
    let world = world().await;
    let first = add(&world, named("twin", "ada", every("1h", "a"))).await;
    let second = add(&world, named("twin", "ada", every("2h", "b"))).await;
    let error = show(&world, "twin").await.unwrap_err();
    assert_eq!(error.code, Code::InvalidInput);
    assert!(error.message.contains(&first) && error.message.contains(&second), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn every_field_that_refers_to_an_object_takes_names_and_prefixes() {
    let world = world().await;
    run_engine(&world, async {
        let upstream = add(&world, named("upstream", "ada", every("1h", "a"))).await;
        let run = fire(&world, "upstream").await;
        wait_until_idle().await;
        let listed = RunList { schedule: Some("upstream".into()), ..RunList::default() };
        let runs = world.send(listed).await.unwrap().runs;
        assert_eq!(
            (runs[0].id.as_str(), runs[0].schedule_name.as_deref()),
            (&*run.id, Some("upstream"))
        );
        let prefix = run.id[..20].to_owned();
        assert_eq!(world.send(RunShow { id: prefix }).await.unwrap().run.id, run.id);
        let why = Why { id: "upstream".into(), at: None };
        assert_eq!(world.send(why).await.unwrap().schedule_id, upstream);
        let about = vec!["upstream".to_owned(), run.id[..20].to_owned()];
        world.send(WaitForChanges { about, ..WaitForChanges::default() }).await.unwrap();
        let mut follower = ScheduleAdd { name: "follower".into(), ..every("1h", "b") };
        follower.when = Default::default();
        follower.event_trigger.after = Some("upstream".into());
        let follower = add(&world, follower).await;
        assert_eq!(schedule(&world, &upstream).await.followers, [follower]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_refers_only_to_its_own_objects() {
    let world = world().await;
    world.send(builtin("eve")).await.unwrap();
    run_engine(&world, async {
        let own = add(&world, named("shared name", "ada", every("1h", "a"))).await;
        let others = add(&world, named("shared name", "eve", every("1h", "a"))).await;
        add(&world, named("secret", "eve", every("1h", "b"))).await;
        let run = fire(&world, &others).await;
        wait_until_idle().await;
        let ada = world.engine.handle(Actor::token_holder("ada".parse().unwrap(), Role::Runner));
        let show = async |id: &str| {
            api::send(&ada, ScheduleShow { id: id.to_owned() }).await.map(|it| it.schedule.id)
        };
        assert_eq!(show("shared name").await.unwrap(), own, "the other one is not visible");
        let unknown = |error: Error, text: &str| error.message.replace(text, "X");
        let existing = unknown(show("secret").await.unwrap_err(), "secret");
        assert_eq!(existing, unknown(show("nothing").await.unwrap_err(), "nothing"));
        let prefix = &run.id[..20];
        let hidden = api::send(&ada, RunShow { id: prefix.to_owned() }).await.unwrap_err();
        let absent = "run_0123456789abcdef";
        let none = api::send(&ada, RunShow { id: absent.to_owned() }).await.unwrap_err();
        assert_eq!(unknown(hidden, prefix), unknown(none, absent));
    })
    .await;
}
