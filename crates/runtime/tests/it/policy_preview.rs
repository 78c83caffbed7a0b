//! The policy preview of a schedule: shown before it is added, and equal to what happens then.

use api::{Code, Freeze, PolicyPreview, ScheduleAdd, ScheduleAddAll, ScheduleShow};
use kernel::Role;
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, World, builtin, run_engine};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
const BY_ITSELF: &str = "each run starts without approval";
const ASKED: &str = "each run needs approval (`@tier-2`)";

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

/// The preview of a schedule that is not added yet.
async fn dry_run_preview(world: &World, schedule: ScheduleAdd) -> PolicyPreview {
    let before = entries(world).await;
    let answer = world.send(dry(schedule)).await.unwrap();
    assert!(answer.dry_run && answer.created);
    assert_eq!(answer.next.len(), 5);
    assert_eq!(entries(world).await, before, "nothing is stored");
    let absent = world.send(ScheduleShow { id: answer.schedule.id }).await.unwrap_err();
    assert_eq!(absent.code, Code::NotFound);
    answer.policy.unwrap()
}

/// The preview of an added schedule.
async fn shown_preview(world: &World, id: &str) -> PolicyPreview {
    world.send(ScheduleShow { id: id.to_owned() }).await.unwrap().policy
}

#[tokio::test(start_paused = true)]
async fn the_preview_follows_the_tier_and_matches_the_run() {
    for (tier, by_itself, sentence, state) in [
        (None, true, BY_ITSELF, "done"),
        (Some(1), true, BY_ITSELF, "done"),
        (Some(2), false, ASKED, "waiting_permission"),
    ] {
        let world = world().await;
        let schedule = ScheduleAdd { tier, ..every("1h", "hello") };
        let preview = dry_run_preview(&world, schedule.clone()).await;
        assert_eq!((preview.by_itself, preview.sentence.as_str()), (by_itself, sentence));
        let added = world.send(schedule.clone()).await.unwrap();
        assert!(added.created && !added.dry_run, "the dry run stored nothing");
        assert_eq!(added.policy.as_ref(), Some(&preview));
        assert_eq!(shown_preview(&world, &added.schedule.id).await, preview);
        let again = world.send(dry(schedule)).await.unwrap();
        assert!(!again.created, "an add would change nothing");
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!(only_run(&world).await.state.as_str(), state);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_preview_names_the_rule() {
    let mut world = world().await;
    world.policy = NO_ADA.to_owned();
    world.reopen().await.unwrap();
    let preview = dry_run_preview(&world, every("1h", "hello")).await;
    assert_eq!(preview.sentence, "no run starts: `policy.toml/no-ada` denies it");
    let ruling = preview.ruling.unwrap();
    assert_eq!((ruling.verdict.as_str(), ruling.posture.as_str()), ("deny", "staging"));
    let smith = dry_run_preview(&world, named("x", "smith", every("1h", "hello"))).await;
    assert_eq!((smith.by_itself, smith.sentence.as_str()), (true, BY_ITSELF));
    assert_eq!(smith.ruling.unwrap().policy, ruling.policy);
}

#[tokio::test(start_paused = true)]
async fn the_preview_includes_the_lease_and_a_freeze() {
    let mut world = world().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    let id = add(&world, every("1d", "hello")).await;
    // The lease starts when the engine first runs.
    run_engine(&world, async {}).await;
    for (day, sentence) in [
        (13, BY_ITSELF),
        (14, "each run needs approval (`@lease`)"),
        (28, "no run starts before the lease is renewed (`@lease`)"),
    ] {
        set(&world, day * DAY_US).await;
        assert_eq!(shown_preview(&world, &id).await.sentence, sentence, "{day}");
        assert_eq!(dry_run_preview(&world, every("1h", "other")).await.sentence, sentence, "{day}");
    }
    set(&world, DAY_US).await;
    world.send(Freeze::default()).await.unwrap();
    let frozen = shown_preview(&world, &id).await;
    let sentence = "no run starts while the installation is frozen; after it is thawed, each run starts without approval";
    assert_eq!((frozen.by_itself, frozen.sentence.as_str()), (false, sentence));
    assert_eq!(frozen.ruling.unwrap().verdict.as_str(), "allow");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_like_an_add() {
    let world = world().await;
    let tool = api::Action { tool: Some("fs.list".into()), ..api::Action::default() };
    for (role, schedule) in [
        (Role::Operator, named("x", "missing", every("1h", "hello"))),
        (Role::Operator, every("ten", "hello")),
        (Role::Operator, ScheduleAdd { tier: Some(3), ..every("1h", "hello") }),
        (Role::Observer, every("1h", "hello")),
    ] {
        let refused = world.send_as(role, dry(schedule.clone())).await.unwrap_err();
        assert_eq!(refused, world.send_as(role, schedule).await.unwrap_err());
    }
    let tool = ScheduleAdd { action: tool, dry_run: true, ..every("1h", "tool") };
    let preview = world.send(tool).await.unwrap().policy.unwrap();
    assert!(preview.sentence.starts_with("each run fails: there is no tool"), "{preview:?}");
    // A dry run does not use its key.
    world.send_with_key("k", dry(every("1h", "hello"))).await.unwrap();
    assert!(world.send_with_key("k", every("1h", "hello")).await.unwrap().created);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_list_previews_every_schedule() {
    let world = world().await;
    world.send(of_tier(2, builtin("bob"))).await.unwrap();
    let schedules = vec![every("1h", "one"), named("two", "bob", every("1h", "two"))];
    let list = ScheduleAddAll { schedules, dry_run: true };
    let before = entries(&world).await;
    let tried = world.send(list.clone()).await.unwrap();
    let previews =
        tried.schedules.iter().map(|it| (it.created, it.policy.clone().unwrap().sentence));
    assert_eq!(
        previews.collect::<Vec<_>>(),
        [(true, BY_ITSELF.to_owned()), (true, ASKED.to_owned())]
    );
    assert!(tried.dry_run);
    let mut mixed = ScheduleAddAll { dry_run: false, ..list };
    mixed.schedules[1].dry_run = true;
    let refused = world.send(mixed).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `two`: `dry_run` is for the whole list");
    assert_eq!(entries(&world).await, before);
}
