//! Budgets: of many that want to begin at once, as many do as may, whatever the clock shows.

use api::{AgentAdd, ScheduleFire, StatusAsk};
use kernel::budget::Limits;

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, keep};

/// A world with so many schedules that fire every hour, for an agent whose runs are counted.
async fn busy(limits: Limits, schedules: usize, tier: u8) -> (World, Vec<String>) {
    let mut world = World::new().await;
    world.limits = limits;
    world.reopen().await.unwrap();
    world.ask(AgentAdd { tier: Some(tier), ..builtin("ada") }).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..schedules {
        let schedule = named(&format!("s{number}"), "ada", every("1h", "hello"));
        ids.push(add(&world, schedule).await);
    }
    (world, ids)
}

async fn counted(world: &World) -> i64 {
    world.ask(StatusAsk {}).await.unwrap().budget.runs
}

#[tokio::test(start_paused = true)]
async fn c10_of_two_hundred_at_once_ten_begin() {
    for limits in [
        Limits { runs_per_agent: 10, ..Limits::default() },
        Limits { runs: 10, ..Limits::default() },
    ] {
        let (world, schedules) = busy(limits, 200, 1).await;
        keep(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!((begun(&world), counted(&world).await), (10, 10));
        })
        .await;
        let mut skipped = 0;
        for schedule in &schedules {
            let told = why(&world, schedule, HOUR_US).await;
            if told.disposition == "skipped_budget" {
                assert_eq!(told.reason.as_deref(), Some("budget_used_up"));
                skipped += 1;
            }
        }
        assert_eq!(skipped, 190);
        check_log(&world).await;
    }
}

/// Budgets go by days of UTC, in which there is no summer time; nor has a clock that counts microseconds since
/// 1970 a leap second. What is left are steps.
#[tokio::test(start_paused = true)]
async fn c11_a_day_has_one_budget_however_often_the_clock_shows_it() {
    let limits = Limits { runs_per_agent: 3, ..Limits::default() };
    let (mut world, schedules) = busy(limits, 5, 1).await;
    // Every schedule fires once, as far as the standing orders and the budgets let it.
    let at = async |world: &World, us: i64| {
        world.set_clock(OCTOBER_US + us);
        settle().await;
        for schedule in &schedules {
            let _ = world.ask(ScheduleFire { id: schedule.clone() }).await;
        }
        settle().await;
        begun(world)
    };
    crash(&mut world, async |world| {
        settle().await;
        assert_eq!(at(world, HOUR_US).await, 3);
        assert_eq!(at(world, 2 * HOUR_US).await, 3, "the day is not over");
        assert_eq!(at(world, DAY_US + HOUR_US).await, 6, "it is another day");
        assert_eq!(at(world, 3 * HOUR_US).await, 6, "and now the first again");
        assert_eq!(at(world, -DAY_US).await, 6, "and one that was never shown");
        assert_eq!(at(world, DAY_US + 2 * HOUR_US).await, 6, "and the second");
    })
    .await;
    crash(&mut world, async |world| {
        settle().await;
        assert_eq!(at(world, -2 * DAY_US).await, 6, "a restart gives nothing back");
        assert_eq!(at(world, DAY_US + 3 * HOUR_US).await, 6);
        assert_eq!(at(world, 2 * DAY_US + HOUR_US).await, 9);
    })
    .await;
    let told = world.kinds().await.iter().filter(|kind| *kind == "watch.clock_anomaly").count();
    assert_eq!(told, 9, "each step once, and that a start found the clock behind");
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn what_only_reads_is_not_counted() {
    let limits = Limits { runs: 1, runs_per_agent: 1, ..Limits::default() };
    let (world, _) = busy(limits, 5, 0).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!((begun(&world), counted(&world).await), (5, 0));
    })
    .await;
    check_log(&world).await;
}

/// What is used is known when it is over; whatever begins after that is refused, and nothing is given back.
#[tokio::test(start_paused = true)]
async fn tokens_that_were_used_keep_others_from_beginning() {
    for limits in [
        Limits { tokens_per_agent: 100, ..Limits::default() },
        Limits { tokens: 100, ..Limits::default() },
    ] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.ask(AgentAdd { tier: Some(1), ..builtin("ada") }).await.unwrap();
        let schedule = add(&world, named("s", "ada", every("1h", "use 49"))).await;
        let used = async || world.ask(StatusAsk {}).await.unwrap().budget.tokens;
        keep(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!((begun(&world), used().await), (1, 50));
            set(&world, 2 * HOUR_US).await;
            assert_eq!((begun(&world), used().await), (2, 100));
            set(&world, 3 * HOUR_US).await;
            assert_eq!((begun(&world), used().await), (2, 100), "as much as may be");
            set(&world, DAY_US + HOUR_US).await;
            assert_eq!((begun(&world), used().await), (3, 50), "it is another day");
        })
        .await;
        let told = why(&world, &schedule, 3 * HOUR_US).await;
        assert_eq!(told.disposition, "skipped_budget");
        assert!(told.sentence.contains("tokens"), "{}", told.sentence);
        check_log(&world).await;
    }
}
