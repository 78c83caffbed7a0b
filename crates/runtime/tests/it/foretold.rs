//! What will be asked of a human is told before anything is added, and is what happens then.

use api::{AgentAdd, Code, Foretold, Freeze, ScheduleAdd, ScheduleAddAll, ScheduleShow};
use kernel::Role;
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, World, builtin, keep};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
const BY_ITSELF: &str = "each run begins by itself";
const ASKED: &str = "each run waits for a human's approval (`@tier-2`)";

const NO_ADA: &str = r#"
    [[rule]]
    id = "no-ada"
    deny = ["agent.prompt"]
    agent = ["ada"]
    match = [{ capability = "agent.prompt", agent = "ada" }]
    not_match = [{ capability = "agent.prompt", agent = "smith" }]
"#;

fn dry(schedule: ScheduleAdd) -> ScheduleAdd {
    ScheduleAdd { dry_run: true, ..schedule }
}

/// What is told of a schedule that is not there.
async fn tried(world: &World, schedule: ScheduleAdd) -> Foretold {
    let before = entries(world).await;
    let answer = world.ask(dry(schedule)).await.unwrap();
    assert!(answer.dry_run && answer.created);
    assert_eq!(answer.next.len(), 5);
    assert_eq!(entries(world).await, before, "nothing is stored");
    let absent = world.ask(ScheduleShow { id: answer.schedule.id }).await.unwrap_err();
    assert_eq!(absent.code, Code::NotFound);
    answer.orders.unwrap()
}

/// What is told of one that is there.
async fn shown(world: &World, id: &str) -> Foretold {
    world.ask(ScheduleShow { id: id.to_owned() }).await.unwrap().orders
}

#[tokio::test(start_paused = true)]
async fn how_far_it_reaches_decides_whether_it_asks_and_so_it_happens() {
    for (tier, by_itself, sentence, state) in [
        (None, true, BY_ITSELF, "done"),
        (Some(1), true, BY_ITSELF, "done"),
        (Some(2), false, ASKED, "waiting_permission"),
    ] {
        let world = world().await;
        let schedule = ScheduleAdd { tier, ..every("1h", "hello") };
        let foretold = tried(&world, schedule.clone()).await;
        assert_eq!((foretold.by_itself, foretold.sentence.as_str()), (by_itself, sentence));
        let added = world.ask(schedule.clone()).await.unwrap();
        assert!(added.created && !added.dry_run, "the dry run has left nothing");
        assert_eq!(added.orders.as_ref(), Some(&foretold));
        assert_eq!(shown(&world, &added.schedule.id).await, foretold);
        let again = world.ask(dry(schedule)).await.unwrap();
        assert!(!again.created, "an add would change nothing");
        keep(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!(the_run(&world).await.state, state);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_ones_own_is_named() {
    let mut world = world().await;
    world.policy = NO_ADA.to_owned();
    world.reopen().await.unwrap();
    let foretold = tried(&world, every("1h", "hello")).await;
    assert_eq!(foretold.sentence, "no run begins: `policy.toml/no-ada` denies it");
    let ruling = foretold.ruling.unwrap();
    assert_eq!((ruling.verdict.as_str(), ruling.posture.as_str()), ("deny", "staging"));
    let smith = tried(&world, named("x", "smith", every("1h", "hello"))).await;
    assert_eq!((smith.by_itself, smith.sentence.as_str()), (true, BY_ITSELF));
    assert_eq!(smith.ruling.unwrap().policy, ruling.policy);
}

#[tokio::test(start_paused = true)]
async fn the_lease_and_a_freeze_of_this_moment_are_told() {
    let mut world = world().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    let id = add(&world, every("1d", "hello")).await;
    // The lease begins with the first keeping.
    keep(&world, async {}).await;
    for (day, sentence) in [
        (13, BY_ITSELF),
        (14, "each run waits for a human's approval (`@lease`)"),
        (28, "no run begins before the lease is renewed (`@lease`)"),
    ] {
        set(&world, day * DAY_US).await;
        assert_eq!(shown(&world, &id).await.sentence, sentence, "{day}");
        assert_eq!(tried(&world, every("1h", "other")).await.sentence, sentence, "{day}");
    }
    set(&world, DAY_US).await;
    world.ask(Freeze::default()).await.unwrap();
    let frozen = shown(&world, &id).await;
    let sentence = "no run begins while the watch is frozen; thawed, each run begins by itself";
    assert_eq!((frozen.by_itself, frozen.sentence.as_str()), (false, sentence));
    assert_eq!(frozen.ruling.unwrap().verdict, "allow");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_as_an_add_is() {
    let world = world().await;
    let tool = api::Action { tool: Some("fs.list".into()), ..api::Action::default() };
    for (role, schedule) in [
        (Role::Operator, named("x", "nobody", every("1h", "hello"))),
        (Role::Operator, every("ten", "hello")),
        (Role::Operator, ScheduleAdd { tier: Some(3), ..every("1h", "hello") }),
        (Role::Observer, every("1h", "hello")),
    ] {
        let refused = world.ask_as(role, dry(schedule.clone())).await.unwrap_err();
        assert_eq!(refused, world.ask_as(role, schedule).await.unwrap_err());
    }
    let tool = ScheduleAdd { action: tool, dry_run: true, ..every("1h", "tool") };
    let foretold = world.ask(tool).await.unwrap().orders.unwrap();
    assert!(foretold.sentence.starts_with("each run fails: there is no tool"), "{foretold:?}");
    // A key of a dry run stays free.
    world.ask_with_key("k", dry(every("1h", "hello"))).await.unwrap();
    assert!(world.ask_with_key("k", every("1h", "hello")).await.unwrap().created);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_tried_as_a_whole() {
    let world = world().await;
    world.ask(AgentAdd { tier: Some(2), ..builtin("bob") }).await.unwrap();
    let schedules = vec![every("1h", "one"), named("two", "bob", every("1h", "two"))];
    let list = ScheduleAddAll { schedules, dry_run: true };
    let before = entries(&world).await;
    let tried = world.ask(list.clone()).await.unwrap();
    let told = tried.schedules.iter().map(|it| (it.created, it.orders.clone().unwrap().sentence));
    assert_eq!(told.collect::<Vec<_>>(), [(true, BY_ITSELF.to_owned()), (true, ASKED.to_owned())]);
    assert!(tried.dry_run);
    let mut mixed = ScheduleAddAll { dry_run: false, ..list };
    mixed.schedules[1].dry_run = true;
    let refused = world.ask(mixed).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `two`: `dry_run` is for the whole list");
    assert_eq!(entries(&world).await, before);
}
