//! A clock that is a month or more ahead: it decides nothing, writes no wrong time, and a person finds the way back.

use api::{ApprovalList, Code, Freeze, LeaseRenew, ScheduleFire, ScheduleList, StatusShow};
use kernel::authority::Lease;
use kernel::budget::Limits;
use kernel::posture::Check;

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, run_engine};

const YEAR_US: i64 = 365 * DAY_US;

/// Every entry has a time before this.
async fn check_entries_before(world: &World, micros: i64) {
    let latest = after(micros);
    for event in world.events().await {
        assert!(event.at < latest, "{} {} {}", event.seq, event.kind, event.at);
    }
}

async fn clock_status(world: &World) -> Option<String> {
    world.send(StatusShow {}).await.unwrap().ledger.clock
}

async fn check_only_stops_work(world: &World) {
    assert!(world.send(ScheduleList::default()).await.is_ok(), "reads work");
    let refused = world.send(builtin("bob")).await.unwrap_err();
    assert_eq!(refused.code, Code::UnsafeSetup, "{refused:?}");
    assert!(refused.message.contains("`clock ahead`"), "{refused:?}");
    assert!(refused.hint.unwrap().contains("midwatch up --accept-clock"));
    assert!(clock_status(world).await.unwrap().contains("days ahead"));
    let frozen = world.send(Freeze::default()).await.unwrap();
    assert!(frozen.changed && frozen.recorded);
}

async fn thaw(world: &World) {
    world.send_as(kernel::Role::Maintainer, api::Thaw::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn clock_set_a_year_ahead_starts_nothing_until_it_is_set_right() {
    let world = world().await;
    let id = add(&world, every("1h", "hello")).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!(started(&world), 1);
        let waiting = fire(&world, &add(&world, every("1d", "wait")).await).await;
        let retried = fire(&world, &add(&world, every("1d", "fail")).await).await;
        wait_until_idle().await;
        assert!(shown(&world, &retried).await.retry_at.is_some());
        world.set_clock(OCTOBER_US + YEAR_US);
        wait_until_idle().await;
        assert_eq!(started(&world), 3, "a slot of the wrong year fired");
        assert!(clock_status(&world).await.unwrap().contains("364 days ahead"));
        let refused = world.send(ScheduleFire { id: id.clone() }).await.unwrap_err();
        assert_eq!(refused.code, Code::UnsafeSetup, "{refused:?}");
        // A slot and a retry are due by the time that has really passed; they wait, too. A run that is running may end.
        world.set_now(OCTOBER_US + YEAR_US + HOUR_US + MINUTE_US);
        world.backend.release(1);
        wait_until_idle().await;
        assert_eq!(shown(&world, &waiting).await.state.as_str(), "done");
        assert_eq!((started(&world), runs(&world).await.len()), (3, 3), "a slot fired");
        world.set_clock(OCTOBER_US + 2 * HOUR_US + MINUTE_US);
        wait_until_idle().await;
        assert_eq!(started(&world), 5, "both go on by themselves");
        assert_eq!(clock_status(&world).await, None);
        world.set_clock(OCTOBER_US + YEAR_US);
        wait_until_idle().await;
        check_only_stops_work(&world).await;
        world.set_clock(OCTOBER_US + 2 * HOUR_US + MINUTE_US);
        wait_until_idle().await;
        thaw(&world).await;
    })
    .await;
    check_entries_before(&world, 3 * HOUR_US).await;
    let set = world.kinds().await.iter().filter(|kind| *kind == "watch.clock_anomaly").count();
    assert_eq!(set, 4, "each step is recorded once");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn clock_less_than_thirty_days_ahead_is_trusted() {
    for (ahead, starts) in [(30 * DAY_US - 1, true), (30 * DAY_US, false)] {
        let world = world().await;
        add(&world, every("1h", "hello")).await;
        run_engine(&world, async {
            wait_until_idle().await;
            world.set_clock(OCTOBER_US + ahead);
            wait_until_idle().await;
            assert_eq!(started(&world) == 1, starts, "{ahead}");
            world.set_clock(OCTOBER_US);
        })
        .await;
    }
}

/// The steady clock counts while a machine is suspended.
#[tokio::test(start_paused = true)]
async fn machine_that_was_suspended_for_a_year_goes_on() {
    let world = world().await;
    add(&world, every("1h", "hello")).await;
    run_engine(&world, async {
        wait_until_idle().await;
        set(&world, YEAR_US).await;
        assert_eq!(started(&world), 1, "the missed slots are merged");
        assert_eq!(clock_status(&world).await, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn command_without_a_daemon_changes_nothing_by_a_clock_far_ahead() {
    let mut world = world().await;
    world.set_now(OCTOBER_US + 60 * DAY_US);
    check_only_stops_work(&world).await;
    check_entries_before(&world, HOUR_US).await;
    let found = world.engine.findings().await.unwrap();
    assert!(found.iter().any(|it| it.check == Check::ClockAhead), "{found:?}");
    // The person was away for two months, and starts the daemon by this clock.
    crash(&mut world, async |_| wait_until_idle().await).await;
    thaw(&world).await;
    world.send(builtin("bob")).await.unwrap();
    assert_eq!(clock_status(&world).await, None);
    verify_ledger(&world).await;
}

/// A world whose daemon has run by a clock that was three years ahead: slots of that year are decided, its budget is used
/// up, and an approval is open. Now the clock is right again.
async fn world_of_a_wrong_year() -> (World, String) {
    let mut world = World::new().await;
    world.limits = Limits { runs_per_agent: 3, ..Limits::default() };
    world.lease = Lease { ask_after_us: 0, pause_after_us: 28 * DAY_US };
    world.reopen().await.unwrap();
    world.send(of_tier(1, builtin("ada"))).await.unwrap();
    world.send(of_tier(2, builtin("eve"))).await.unwrap();
    let id = add(&world, every("1h", "hello")).await;
    let asks = add(&world, named("asks", "eve", every("1d", "x"))).await;
    crash(&mut world, async |_| wait_until_idle().await).await;
    world.set_clock(OCTOBER_US + 3 * YEAR_US);
    crash(&mut world, async |world| {
        wait_until_idle().await;
        world.send(LeaseRenew::default()).await.unwrap();
        fire(world, &asks).await;
        for _ in 0..4 {
            fire(world, &id).await;
            wait_until_idle().await;
        }
    })
    .await;
    assert_eq!(started(&world), 3, "the budget of the wrong day is used up");
    assert_eq!(world.send(ApprovalList::default()).await.unwrap().approvals.len(), 1);
    world.set_clock(OCTOBER_US + DAY_US);
    world.reopen().await.unwrap();
    (world, id)
}

#[tokio::test(start_paused = true)]
async fn corrected_clock_that_is_not_accepted_revives_nothing() {
    let (world, id) = world_of_a_wrong_year().await;
    run_engine(&world, async {
        wait_until_idle().await;
        set(&world, DAY_US + 2 * HOUR_US).await;
        fire(&world, &id).await;
        wait_until_idle().await;
        assert_eq!(started(&world), 3);
    })
    .await;
    assert!(clock_status(&world).await.is_some());
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn accepted_clock_is_the_way_back_from_a_wrong_year() {
    let (mut world, id) = world_of_a_wrong_year().await;
    world.engine.accept_clock();
    crash(&mut world, async |world| {
        wait_until_idle().await;
        assert_eq!(clock_status(world).await, None);
        let open = world.send(ApprovalList::default()).await.unwrap().approvals;
        assert_eq!(open, [], "approvals of the wrong year expire");
        set(world, DAY_US + HOUR_US).await;
        assert_eq!(started(world), 4, "schedules fire, and the budget has a new day");
        let lease = world.send(StatusShow {}).await.unwrap().authority.lease;
        assert_eq!(lease.pauses_from.as_deref(), Some(&*after(29 * DAY_US)));
    })
    .await;
    // The tables are the same when they are made from the ledger again.
    verify_ledger(&world).await;
    // Another start needs no flag, and a command works.
    let clock = async |world: &World| {
        let found = world.engine.findings().await.unwrap();
        let of_clock = |check| matches!(check, Check::Clock | Check::ClockAhead);
        found.into_iter().map(|it| it.check).find(|it| of_clock(*it))
    };
    world.set_now(OCTOBER_US + 2 * DAY_US);
    assert_eq!(clock(&world).await, None);
    world.send(builtin("bob")).await.unwrap();
    crash(&mut world, async |world| {
        wait_until_idle().await;
        // The lease expires by the accepted clock …
        set(world, 30 * DAY_US).await;
        let before = started(world);
        set(world, 30 * DAY_US + 2 * HOUR_US).await;
        assert_eq!(started(world), before);
    })
    .await;
    // … and setting the clock back, without accepting that, does not revive it.
    world.set_clock(OCTOBER_US + 20 * DAY_US);
    assert_eq!(clock(&world).await, Some(Check::Clock));
    let before = started(&world);
    crash(&mut world, async |world| {
        wait_until_idle().await;
        fire(world, &id).await;
        wait_until_idle().await;
        assert_eq!(started(world), before);
    })
    .await;
    // A clock that is a month ahead of the accepted one is not trusted.
    world.set_clock(OCTOBER_US + YEAR_US);
    assert_eq!(world.send(builtin("eva")).await.unwrap_err().code, Code::UnsafeSetup);
    world.set_clock(OCTOBER_US + 31 * DAY_US);
    verify_ledger(&world).await;
}
