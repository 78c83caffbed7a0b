//! A clock that somebody sets: nothing that has run out comes back, nothing lasts longer, and the log tells
//! of it.

use api::{AgentAdd, Approval, ApprovalDecide, ApprovalList, ApprovalShow, LeaseRenew, StatusAsk};
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, keep};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
const APPROVE_WITHIN: i64 = DAY_US;
const EXECUTE_WITHIN: i64 = 15 * MINUTE_US;

/// A world in which a run has asked for an approval after an hour, and which nobody keeps.
async fn asked() -> (World, Approval) {
    let mut world = World::new().await;
    world.ask(AgentAdd { tier: Some(2), ..builtin("ada") }).await.unwrap();
    add(&world, every("1h", "hello")).await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    let question = world.ask(ApprovalList::default()).await.unwrap().approvals.remove(0);
    (world, question)
}

async fn approve(world: &World, question: &Approval) -> String {
    let asked = ApprovalDecide {
        id: question.id.clone(),
        decision: "approve".into(),
        plan_hash: Some(question.plan_hash.clone()),
        note: None,
        ..Default::default()
    };
    world.ask(asked).await.unwrap().approval.state
}

async fn state(world: &World, question: &Approval) -> String {
    world.ask(ApprovalShow { id: question.id.clone() }).await.unwrap().approval.state
}

/// Something that has nothing to do with it is written into the log.
async fn write(world: &World, name: &str) {
    world.ask(builtin(name)).await.unwrap();
}

/// By how many seconds the clock was off, each time that the log tells of it.
async fn anomalies(world: &World) -> Vec<i64> {
    let events = world.events().await.into_iter().filter(|it| it.kind == "watch.clock_anomaly");
    let micros = |facts: &serde_json::Value, key: &str| facts[key].as_i64().unwrap();
    let off = |facts: serde_json::Value| micros(&facts, "to") - micros(&facts, "from");
    events.map(|it| off(it.body) / SECOND_US).collect()
}

/// The desk goes by the clock and what is decided by the end of the log: a run that waits to be tried again is not taken
/// and put back without end.
#[tokio::test(start_paused = true)]
async fn a_run_waits_for_no_time_again_that_a_clock_has_shown() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    keep(&world, async {
        fire(&world, &id).await;
        settle().await;
        let tries = begun(&world);
        assert!(the_run(&world).await.retry_at.is_some(), "it waits to be tried again");
        world.set_clock(OCTOBER_US - HOUR_US);
        settle().await;
        assert!(tries < begun(&world));
    })
    .await;
}

/// Where a clock is that an answer or a beginning meets: past the expiry by so much, and set back after
/// something was written then.
const TABLE: [(i64, i64, bool); 7] = [
    (-1, 0, true),
    (0, 0, false),
    (1_000, 0, false),
    (0, HOUR_US, false),
    (1_000, HOUR_US, false),
    (HOUR_US, 2 * HOUR_US, false),
    (1_000, 400 * DAY_US, false),
];

#[tokio::test(start_paused = true)]
async fn a10_an_answer_that_comes_too_late_by_the_clock_or_by_the_log() {
    for (past, back, is_in_time) in TABLE {
        let (world, question) = asked().await;
        set(&world, HOUR_US + APPROVE_WITHIN + past).await;
        write(&world, "bob").await;
        world.set_clock(OCTOBER_US + HOUR_US + APPROVE_WITHIN + past - back);
        let expected = if is_in_time { "approved" } else { "expired" };
        assert_eq!(approve(&world, &question).await, expected, "{past} {back}");
        keep(&world, settle()).await;
        assert_eq!(begun(&world), usize::from(is_in_time), "{past} {back}");
        let told = anomalies(&world).await;
        assert_eq!(told.first(), (0 < back).then_some(&(-back / SECOND_US)), "{past} {back}");
        check_log(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a10_an_approved_run_that_begins_too_late_by_the_clock_or_by_the_log() {
    for (past, back, is_in_time) in TABLE {
        let (world, question) = asked().await;
        approve(&world, &question).await;
        set(&world, HOUR_US + EXECUTE_WITHIN + past).await;
        write(&world, "bob").await;
        world.set_clock(OCTOBER_US + HOUR_US + EXECUTE_WITHIN + past - back);
        keep(&world, settle()).await;
        let expected = if is_in_time { "consumed" } else { "expired" };
        assert_eq!(state(&world, &question).await, expected, "{past} {back}");
        assert_eq!(begun(&world), usize::from(is_in_time), "{past} {back}");
        assert_eq!(anomalies(&world).await.len(), usize::from(0 < back), "{past} {back}");
        check_log(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_time_the_clock_is_set_the_log_tells_of_it_once() {
    let mut world = world().await;
    // A step, and whether it is worth an entry.
    let steps = [
        (-HOUR_US, true),
        (HOUR_US, true),
        (-DAY_US, true),
        (4 * SECOND_US, false),
        (-5 * SECOND_US, false),
        (-6 * SECOND_US, true),
        (365 * DAY_US, true),
    ];
    let expected: Vec<i64> =
        steps.iter().filter(|(_, is_told)| *is_told).map(|(by, _)| by / SECOND_US).collect();
    let mut now = OCTOBER_US;
    keep(&world, async {
        settle().await;
        for (by, _) in steps {
            now += by;
            world.set_clock(now);
            settle().await;
            // A look, while time passes as it should.
            now += 2 * MINUTE_US;
            world.set_now(now);
            settle().await;
        }
        assert_eq!(anomalies(&world).await, expected);
        assert_eq!(world.ask(StatusAsk {}).await.unwrap().log.clock, None);
    })
    .await;
    // While nobody keeps the watch, only that the clock is behind can be known.
    world.set_clock(now - HOUR_US);
    world.reopen().await.unwrap();
    assert!(world.ask(StatusAsk {}).await.unwrap().log.clock.is_some());
    keep(&world, settle()).await;
    world.set_clock(now + DAY_US);
    world.reopen().await.unwrap();
    keep(&world, settle()).await;
    let all: Vec<i64> = expected.into_iter().chain([-HOUR_US / SECOND_US]).collect();
    assert_eq!(anomalies(&world).await, all);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_never_longer_than_its_span() {
    let step = async |world: &World| world.ask(StatusAsk {}).await.unwrap().authority.lease.step;
    for is_kept in [true, false] {
        let mut world = World::new().await;
        world.lease = LEASE;
        world.reopen().await.unwrap();
        crash(&mut world, async |_| settle().await).await;
        // Renewed by a clock that is a year ahead and then put right, with or without a watch meanwhile.
        let renew = async |world: &World| {
            world.set_clock(OCTOBER_US + 365 * DAY_US);
            settle().await;
            world.ask(LeaseRenew::default()).await.unwrap();
            world.set_clock(OCTOBER_US);
            settle().await;
        };
        match is_kept {
            true => crash(&mut world, renew).await,
            false => renew(&world).await,
        }
        crash(&mut world, async |world| {
            settle().await;
            for (day, expected) in [(13, "full"), (14, "ask"), (27, "ask"), (28, "paused")] {
                set(world, day * DAY_US).await;
                assert_eq!(step(world).await, expected, "{day} {is_kept}");
            }
        })
        .await;
        // What has run out does not come back with an earlier hour, and a renewal counts from now.
        world.set_clock(OCTOBER_US + DAY_US);
        crash(&mut world, async |world| {
            settle().await;
            world.ask(LeaseRenew::default()).await.unwrap();
            for (day, expected) in [(14, "full"), (15, "ask"), (29, "paused")] {
                set(world, day * DAY_US).await;
                assert_eq!(step(world).await, expected, "{day} {is_kept}");
            }
        })
        .await;
        check_log(&world).await;
    }
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    crash(&mut world, async |world| {
        // The lease begins with the watch, so that has to begin first.
        settle().await;
        set(world, 28 * DAY_US).await;
    })
    .await;
    write(&world, "bob").await;
    world.set_clock(OCTOBER_US);
    assert_eq!(step(&world).await, "paused", "an earlier hour gives no authority");
}
