//! A clock that is set: expired approvals and leases stay expired, none lasts longer, and the change is recorded.

use api::{Approval, ApprovalDecide, ApprovalList, ApprovalShow, Decision, LeaseRenew, StatusShow};
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, run_engine};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
const APPROVE_WITHIN: i64 = DAY_US;
const EXECUTE_WITHIN: i64 = 15 * MINUTE_US;

/// A world with an approval request after an hour. The engine is not running.
async fn world_with_request() -> (World, Approval) {
    let mut world = World::new().await;
    world.send(of_tier(2, builtin("ada"))).await.unwrap();
    add(&world, every("1h", "hello")).await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    let approval = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
    (world, approval)
}

async fn approve(world: &World, approval: &Approval) -> &'static str {
    let asked = ApprovalDecide {
        plan_hash: Some(approval.plan_hash.clone()),
        ..ApprovalDecide::new(&approval.id, Decision::Approve)
    };
    world.send(asked).await.unwrap().approval.state.as_str()
}

async fn state(world: &World, approval: &Approval) -> &'static str {
    world.send(ApprovalShow { id: approval.id.clone() }).await.unwrap().approval.state.as_str()
}

/// Writes an unrelated entry.
async fn write(world: &World, name: &str) {
    world.send(builtin(name)).await.unwrap();
}

/// The recorded clock changes, in seconds.
async fn anomalies(world: &World) -> Vec<i64> {
    let events = world.events().await.into_iter().filter(|it| it.kind == "watch.clock_anomaly");
    let micros = |facts: &serde_json::Value, key: &str| facts[key].as_i64().unwrap();
    let off = |facts: serde_json::Value| micros(&facts, "to") - micros(&facts, "from");
    events.map(|it| off(it.body) / SECOND_US).collect()
}

/// The dispatcher uses the clock, a decision the last entry of the ledger: a run that waits for its retry is not claimed
/// and requeued endlessly.
#[tokio::test(start_paused = true)]
async fn a_retry_does_not_wait_again_after_the_clock_goes_back() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    run_engine(&world, async {
        fire(&world, &id).await;
        wait_until_idle().await;
        let before = started(&world);
        assert!(only_run(&world).await.retry_at.is_some(), "it waits for its retry");
        world.set_clock(OCTOBER_US - HOUR_US);
        wait_until_idle().await;
        assert!(before < started(&world));
    })
    .await;
}

/// The clock at a decision or start: how far past the expiry, and how far set back after an entry was written then.
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
async fn a_decision_after_expiry_by_clock_or_ledger_does_not_approve() {
    for (past, back, is_in_time) in TABLE {
        let (world, approval) = world_with_request().await;
        set(&world, HOUR_US + APPROVE_WITHIN + past).await;
        write(&world, "bob").await;
        world.set_clock(OCTOBER_US + HOUR_US + APPROVE_WITHIN + past - back);
        let expected = if is_in_time { "approved" } else { "expired" };
        assert_eq!(approve(&world, &approval).await, expected, "{past} {back}");
        run_engine(&world, wait_until_idle()).await;
        assert_eq!(started(&world), usize::from(is_in_time), "{past} {back}");
        let recorded = anomalies(&world).await;
        assert_eq!(recorded.first(), (0 < back).then_some(&(-back / SECOND_US)), "{past} {back}");
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_expired_by_clock_or_ledger_starts_no_run() {
    for (past, back, is_in_time) in TABLE {
        let (world, approval) = world_with_request().await;
        approve(&world, &approval).await;
        set(&world, HOUR_US + EXECUTE_WITHIN + past).await;
        write(&world, "bob").await;
        world.set_clock(OCTOBER_US + HOUR_US + EXECUTE_WITHIN + past - back);
        run_engine(&world, wait_until_idle()).await;
        let expected = if is_in_time { "consumed" } else { "expired" };
        assert_eq!(state(&world, &approval).await, expected, "{past} {back}");
        assert_eq!(started(&world), usize::from(is_in_time), "{past} {back}");
        assert_eq!(anomalies(&world).await.len(), usize::from(0 < back), "{past} {back}");
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_clock_change_is_recorded_once() {
    let mut world = world().await;
    // A step, and whether it is recorded.
    let steps = [
        (-HOUR_US, true),
        (HOUR_US, true),
        (-DAY_US, true),
        (4 * SECOND_US, false),
        (-5 * SECOND_US, false),
        (-6 * SECOND_US, true),
        (25 * DAY_US, true),
    ];
    let expected: Vec<i64> =
        steps.iter().filter(|(_, is_told)| *is_told).map(|(by, _)| by / SECOND_US).collect();
    let mut now = OCTOBER_US;
    run_engine(&world, async {
        wait_until_idle().await;
        for (by, _) in steps {
            now += by;
            world.set_clock(now);
            wait_until_idle().await;
            // A check without a step.
            now += 2 * MINUTE_US;
            world.set_now(now);
            wait_until_idle().await;
        }
        assert_eq!(anomalies(&world).await, expected);
        assert_eq!(world.send(StatusShow {}).await.unwrap().ledger.clock, None);
    })
    .await;
    // While the engine is not running, only a clock that is behind can be detected.
    world.set_clock(now - HOUR_US);
    world.reopen().await.unwrap();
    assert!(world.send(StatusShow {}).await.unwrap().ledger.clock.is_some());
    run_engine(&world, wait_until_idle()).await;
    world.set_clock(now + DAY_US);
    world.reopen().await.unwrap();
    run_engine(&world, wait_until_idle()).await;
    let all: Vec<i64> = expected.into_iter().chain([-HOUR_US / SECOND_US]).collect();
    assert_eq!(anomalies(&world).await, all);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_change_never_extends_the_lease() {
    let step = async |world: &World| {
        world.send(StatusShow {}).await.unwrap().authority.lease.state.as_str()
    };
    for is_running in [true, false] {
        let mut world = World::new().await;
        world.lease = LEASE;
        world.reopen().await.unwrap();
        crash(&mut world, async |_| wait_until_idle().await).await;
        // Renewed while the clock is ahead and then corrected, with or without a running engine.
        let renew = async |world: &World| {
            world.set_clock(OCTOBER_US + 29 * DAY_US);
            wait_until_idle().await;
            world.send(LeaseRenew::default()).await.unwrap();
            world.set_clock(OCTOBER_US);
            wait_until_idle().await;
        };
        match is_running {
            true => crash(&mut world, renew).await,
            false => renew(&world).await,
        }
        crash(&mut world, async |world| {
            wait_until_idle().await;
            for (day, expected) in [(13, "full"), (14, "ask"), (27, "ask"), (28, "paused")] {
                set(world, day * DAY_US).await;
                assert_eq!(step(world).await, expected, "{day} {is_running}");
            }
        })
        .await;
        // An expired lease stays expired when the clock goes back, and a renewal counts from now.
        world.set_clock(OCTOBER_US + DAY_US);
        crash(&mut world, async |world| {
            wait_until_idle().await;
            world.send(LeaseRenew::default()).await.unwrap();
            for (day, expected) in [(14, "full"), (15, "ask"), (29, "paused")] {
                set(world, day * DAY_US).await;
                assert_eq!(step(world).await, expected, "{day} {is_running}");
            }
        })
        .await;
        verify_ledger(&world).await;
    }
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    crash(&mut world, async |world| {
        // The lease starts when the engine first runs.
        wait_until_idle().await;
        set(world, 28 * DAY_US).await;
    })
    .await;
    write(&world, "bob").await;
    world.set_clock(OCTOBER_US);
    assert_eq!(step(&world).await, "paused", "setting the clock back does not renew the lease");
}
