//! Budgets: no more runs start than the budget of a day allows, whatever the clock shows.

use api::{
    AgentAdd, AgentList, AgentSettings, AgentTest, BudgetLimit, BudgetList, Code, Error,
    ScheduleAdd, ScheduleEdit, ScheduleFire, StatusShow, Terms,
};
use kernel::budget::Limits;
use kernel::money::Money;
use kernel::{Actor, Role};

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, run_engine};

/// A world with schedules that fire every hour, for an agent whose runs count.
async fn busy(limits: Limits, schedules: usize, tier: u8) -> (World, Vec<String>) {
    let mut world = World::new().await;
    world.limits = limits;
    world.reopen().await.unwrap();
    world.send(of_tier(tier, builtin("ada"))).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..schedules {
        let schedule = named(&format!("s{number}"), "ada", every("1h", "hello"));
        ids.push(add(&world, schedule).await);
    }
    (world, ids)
}

async fn counted(world: &World) -> i64 {
    world.send(StatusShow {}).await.unwrap().budget.runs
}

#[tokio::test(start_paused = true)]
async fn two_hundred_concurrent_runs_start_only_ten() {
    for limits in [
        Limits { runs_per_agent: 10, ..Limits::default() },
        Limits { runs: 10, ..Limits::default() },
    ] {
        let (world, schedules) = busy(limits, 200, 1).await;
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!((started(&world), counted(&world).await), (10, 10));
        })
        .await;
        let mut skipped = 0;
        for schedule in &schedules {
            let explained = why(&world, schedule, HOUR_US).await;
            if explained.disposition.as_str() == "skipped_budget" {
                assert_eq!(explained.reason.as_deref(), Some("budget_used_up"));
                skipped += 1;
            }
        }
        assert_eq!(skipped, 190);
        verify_ledger(&world).await;
    }
}

/// A schedule that fires every ten seconds would otherwise make 8,640 runs a day that never start.
#[tokio::test(start_paused = true)]
async fn slots_over_a_budget_are_skipped_as_ranges() {
    let own = Terms { per_day: Some(2), ..Terms::default() };
    let of_agent = Limits { runs_per_agent: 2, ..Limits::default() };
    for (limits, terms) in [(of_agent, Terms::default()), (Limits::default(), own)] {
        let (world, _) = busy(limits, 0, 1).await;
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("10s", "hello")) };
        let schedule = add(&world, schedule).await;
        run_engine(&world, async {
            for slot in 1..=3 {
                set(&world, slot * 10_000_000).await;
            }
            let before = entries(&world).await;
            let next = super::steps::schedule(&world, &schedule).await.next_run_at;
            for slot in 4..=360 {
                set(&world, slot * 10_000_000).await;
            }
            assert_eq!(started(&world), 2);
            // Ten minutes are one range, and one run that finds out whether the budget was raised.
            let added = entries(&world).await - before;
            assert!(added <= 6 * 3 + 60, "{added} entries in an hour");
            assert_eq!(next.as_deref(), Some("2026-10-01T00:10:30Z"));
        })
        .await;
        for slot in [3, 4, 59, 62, 63, 359] {
            let explained = why(&world, &schedule, slot * 10_000_000).await;
            assert_eq!(explained.disposition.as_str(), "skipped_budget", "{slot}");
        }
        verify_ledger(&world).await;
    }
}

/// Otherwise an agent could fill the disk, and with it the ledger that everything else waits for.
#[tokio::test(start_paused = true)]
async fn an_agent_adds_only_so_much_to_the_ledger_in_a_day() {
    let changes = Limits { changes_per_agent: 5, ..Limits::default() };
    let bytes = Limits { bytes_per_agent: 1_000, ..Limits::default() };
    for (limits, what, key) in [
        (changes, "changes", "`budget.changes_per_agent`"),
        (bytes, "bytes", "`budget.bytes_per_agent`"),
    ] {
        let (world, _) = busy(limits, 1, 1).await;
        let ada = Actor::token_holder("ada".parse().unwrap(), Role::Runner);
        let ada = world.engine.handle(ada);
        let add_as_ada = async |number: u32| -> Result<(), Error> {
            let schedule = named(&format!("own{number}"), "ada", every("30d", "hello"));
            api::send(&ada, schedule).await.map(drop)
        };
        let mut made = 0;
        let refused = loop {
            match add_as_ada(made).await {
                Ok(()) => made += 1,
                Err(refused) => break refused,
            }
            assert!(made <= 5, "{what} are not limited");
        };
        assert_eq!(refused.code, Code::BudgetExhausted);
        assert!(refused.message.contains("`ada`") && refused.message.contains(key), "{refused}");
        let before = entries(&world).await;
        assert!(add_as_ada(made).await.is_err());
        assert_eq!(entries(&world).await, before, "a refused request adds nothing");
        let budgets = world.send(BudgetList {}).await.unwrap().budgets;
        assert!(budgets.iter().any(|it| it.what == what && it.name.as_deref() == Some("ada")));
        // People, and the agent's scheduled runs, are not limited by it.
        add(&world, named("people", "ada", every("30d", "hello"))).await;
        run_engine(&world, set(&world, HOUR_US)).await;
        assert_eq!(started(&world), 1);
        set(&world, DAY_US).await;
        add_as_ada(made).await.unwrap();
        verify_ledger(&world).await;
    }
}

/// Also in a dry run.
#[tokio::test(start_paused = true)]
async fn adding_a_schedule_that_exceeds_a_budget_returns_a_warning() {
    let limits = Limits { runs: 2_000, runs_per_agent: 1_000, ..Limits::default() };
    let (world, _) = busy(limits, 0, 1).await;
    world.send(builtin("reader")).await.unwrap();
    let warnings = async |schedule: ScheduleAdd| world.send(schedule).await.unwrap().warnings;
    let both = warnings(ScheduleAdd { dry_run: true, ..every("1s", "hello") }).await;
    let scheduled = "the schedule has 86400 runs a day, and";
    let rest = "the rest is skipped until";
    assert_eq!(
        both,
        [
            format!(
                "{scheduled} the limit of all agents together is 2000: {rest} `budget.runs` is raised"
            ),
            format!(
                "{scheduled} the limit of agent `ada` is 1000: {rest} `budget.runs_per_agent` is raised"
            ),
        ]
    );
    assert_eq!(warnings(every("1m", "hello")).await.len(), 1);
    assert!(warnings(every("2m", "hello")).await.is_empty());
    assert!(
        warnings(named("free", "reader", every("1s", "x"))).await.is_empty(),
        "tier 0 does not count"
    );
    let terms = Terms { per_day: Some(1_000), ..Terms::default() };
    let limited = ScheduleAdd { terms, ..every("1s", "limited") };
    let id = {
        let added = world.send(limited).await.unwrap();
        assert!(added.warnings.is_empty(), "its own limit is within the budget");
        added.schedule.id
    };
    let unset = vec!["per_day".to_owned()];
    let edited = world.send(ScheduleEdit { id, unset, ..ScheduleEdit::default() }).await.unwrap();
    assert_eq!(edited.warnings.len(), 2);
}

/// Budgets use days of UTC, which have no daylight saving and, in microseconds since 1970, no leap seconds. So only steps of
/// the clock remain.
#[tokio::test(start_paused = true)]
async fn setting_the_clock_back_does_not_renew_the_budget() {
    let limits = Limits { runs_per_agent: 3, ..Limits::default() };
    let (mut world, schedules) = busy(limits, 5, 1).await;
    // Every schedule fires once, if policy and budgets allow it.
    let at = async |world: &World, us: i64| {
        world.set_clock(OCTOBER_US + us);
        wait_until_idle().await;
        for schedule in &schedules {
            let _ = world.send(ScheduleFire { id: schedule.clone() }).await;
        }
        wait_until_idle().await;
        started(world)
    };
    crash(&mut world, async |world| {
        wait_until_idle().await;
        assert_eq!(at(world, HOUR_US).await, 3);
        assert_eq!(at(world, 2 * HOUR_US).await, 3, "the day is not over");
        assert_eq!(at(world, DAY_US + HOUR_US).await, 6, "the next day has a new budget");
        assert_eq!(at(world, 3 * HOUR_US).await, 6, "the first day again");
        assert_eq!(at(world, -DAY_US).await, 6, "an earlier day");
        assert_eq!(at(world, DAY_US + 2 * HOUR_US).await, 6, "the second day again");
    })
    .await;
    crash(&mut world, async |world| {
        wait_until_idle().await;
        assert_eq!(at(world, -2 * DAY_US).await, 6, "a restart refunds nothing");
        assert_eq!(at(world, DAY_US + 3 * HOUR_US).await, 6);
        assert_eq!(at(world, 2 * DAY_US + HOUR_US).await, 9);
    })
    .await;
    let anomalies = world.kinds().await;
    let anomalies = anomalies.iter().filter(|kind| *kind == "watch.clock_anomaly").count();
    assert_eq!(anomalies, 9, "each step once, and a start with the clock behind");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn read_only_runs_do_not_count_as_runs() {
    let limits = Limits { runs: 1, runs_per_agent: 1, ..Limits::default() };
    let (world, _) = busy(limits, 5, 0).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!((started(&world), counted(&world).await), (5, 0));
    })
    .await;
    verify_ledger(&world).await;
}

/// The usage is known when an attempt ends; later runs are refused, and nothing is refunded.
#[tokio::test(start_paused = true)]
async fn used_tokens_prevent_further_runs() {
    for limits in [
        Limits { tokens_per_agent: 100, ..Limits::default() },
        Limits { tokens: 100, ..Limits::default() },
    ] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.send(of_tier(1, builtin("ada"))).await.unwrap();
        let schedule = add(&world, named("s", "ada", every("1h", "use 49"))).await;
        let used = async || world.send(StatusShow {}).await.unwrap().budget.tokens;
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!((started(&world), used().await), (1, 50));
            set(&world, 2 * HOUR_US).await;
            assert_eq!((started(&world), used().await), (2, 100));
            set(&world, 3 * HOUR_US).await;
            assert_eq!((started(&world), used().await), (2, 100), "the budget is used up");
            set(&world, DAY_US + HOUR_US).await;
            assert_eq!((started(&world), used().await), (3, 50), "the next day has a new budget");
        })
        .await;
        let explained = why(&world, &schedule, 3 * HOUR_US).await;
        assert_eq!(explained.disposition.as_str(), "skipped_budget");
        assert!(explained.sentence.contains("tokens"), "{}", explained.sentence);
        verify_ledger(&world).await;
    }
}

/// Tokens count for every tier, runs only above tier 0.
#[tokio::test(start_paused = true)]
async fn used_tokens_prevent_read_only_runs() {
    let (world, _) = busy(Limits { tokens: 50, ..Limits::default() }, 0, 0).await;
    add(&world, named("s", "ada", every("1h", "use 49"))).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        set(&world, 2 * HOUR_US).await;
        assert_eq!((started(&world), counted(&world).await), (1, 0));
    })
    .await;
    verify_ledger(&world).await;
}

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

/// An agent with a price of one millionth per token.
fn paid(name: &str) -> AgentAdd {
    let price = Some("1.00".to_owned());
    let (price_input, price_output) = (price.clone(), price);
    let settings =
        AgentSettings { tier: Some(1), price_input, price_output, ..AgentSettings::default() };
    AgentAdd { settings, ..builtin(name) }
}

async fn spent(world: &World) -> String {
    world.send(StatusShow {}).await.unwrap().budget.money
}

/// The cost of a run is computed when it ends. A run starts if its expected cost reaches the limit exactly, and not if it exceeds it.
#[tokio::test(start_paused = true)]
async fn spent_money_prevents_further_runs() {
    let (of_agent, of_all) = (
        |most| Limits { money_per_agent: money(most), ..Limits::default() },
        |most| Limits { money: money(most), ..Limits::default() },
    );
    for (limits, runs, used) in [
        (of_agent("0.0001"), 2, "0.0001"),
        (of_all("0.0001"), 2, "0.0001"),
        // The next run is expected to cost as much as the first, which is one millionth too much.
        (of_agent("0.000099"), 1, "0.00005"),
        (of_all("0.000099"), 1, "0.00005"),
        // A run that costs more than the limit of a day may still start once a day.
        (of_agent("0.00001"), 1, "0.00005"),
    ] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.send(paid("ada")).await.unwrap();
        world.send(of_tier(1, builtin("eve"))).await.unwrap();
        let schedule = add(&world, named("s", "ada", every("1h", "use 49"))).await;
        run_engine(&world, async {
            for hour in 1..=3 {
                set(&world, hour * HOUR_US).await;
            }
            assert_eq!((started(&world), spent(&world).await.as_str()), (runs, used), "{limits:?}");
            // An agent without a price costs nothing.
            let free = add(&world, named("free", "eve", every("30d", "use 49"))).await;
            fire(&world, &free).await;
            wait_until_idle().await;
            assert_eq!(started(&world), runs + 1);
            set(&world, DAY_US + HOUR_US).await;
            assert_eq!(started(&world), runs + 2, "the next day has a new budget");
        })
        .await;
        let explained = why(&world, &schedule, 3 * HOUR_US).await;
        assert_eq!(explained.disposition.as_str(), "skipped_budget");
        assert_eq!(explained.reason.as_deref(), Some("budget_used_up"));
        assert!(explained.sentence.contains("spent"), "{}", explained.sentence);
        let first = &super::steps::runs(&world).await[0];
        assert_eq!(first.cost.as_deref(), Some("0.00005"));
        verify_ledger(&world).await;
    }
}

/// The price of an attempt is known before, and reserved at its start.
#[tokio::test(start_paused = true)]
async fn concurrent_runs_start_only_while_the_money_suffices() {
    for (most, begin) in [("0.75", 3), ("0.749999", 2), ("0.24", 0)] {
        let limits = Limits { money: money(most), ..Limits::default() };
        let (world, schedules) = busy(limits, 20, 1).await;
        let price = Some("0.25".to_owned());
        let priced =
            edit_settings("ada", AgentSettings { price_run: price, ..AgentSettings::default() });
        world.send(priced).await.unwrap();
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!(started(&world), begin, "{most}");
        })
        .await;
        let mut skipped = 0;
        for schedule in &schedules {
            let explained = why(&world, schedule, HOUR_US).await;
            skipped += usize::from(explained.disposition.as_str() == "skipped_budget");
        }
        assert_eq!(skipped, 20 - begin);
        verify_ledger(&world).await;
    }
}

/// Their usage is unknown and may be large, so each start reserves a share of the day.
#[tokio::test(start_paused = true)]
async fn each_concurrent_first_run_reserves_a_share_of_the_day() {
    let mut world = World::new().await;
    world.limits = Limits { tokens: 1_000, ..Limits::default() };
    world.reopen().await.unwrap();
    for number in 0..30 {
        let agent = AgentAdd {
            name: format!("letta-{number}"),
            backend: "letta".into(),
            settings: AgentSettings {
                remote_id: Some(format!("agent-{number}")),
                ..AgentSettings::default()
            },
            look: false,
        };
        let name = agent.name.clone();
        world.send(agent).await.unwrap();
        add(&world, named(&name, &name, every("1h", "wait"))).await;
    }
    let used = async || world.send(StatusShow {}).await.unwrap().budget.tokens;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!((started(&world), used().await), (20, 1_000));
        world.backend.release(20);
        wait_until_idle().await;
        assert_eq!(used().await, 0, "they reported no usage, and the reservations are released");
        set(&world, 2 * HOUR_US).await;
        assert_eq!(started(&world), 40, "all may start again in the next hour");
        world.backend.release(20);
        wait_until_idle().await;
    })
    .await;
    verify_ledger(&world).await;
}

/// An agent test uses the same budgets as a run.
#[tokio::test(start_paused = true)]
async fn an_agent_test_counts_against_the_budgets() {
    let of_runs = Limits { runs_per_agent: 2, ..Limits::default() };
    let of_tokens = Limits { tokens: 100, ..Limits::default() };
    let of_money = Limits { money_per_agent: money("0.0001"), ..Limits::default() };
    for (limits, word) in [(of_runs, "runs"), (of_tokens, "tokens"), (of_money, "spent")] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.send(paid("ada")).await.unwrap();
        let test = || AgentTest { name: "ada".into(), prompt: Some("use 49".into()) };
        for _ in 0..2 {
            world.send(test()).await.unwrap();
        }
        let refused = world.send(test()).await.unwrap_err();
        assert_eq!(refused.code, Code::BudgetExhausted, "{refused:?}");
        assert!(refused.message.contains(word), "{refused:?}");
        assert_eq!(started(&world), 2);
        let budget = world.send(StatusShow {}).await.unwrap().budget;
        assert_eq!((budget.runs, budget.tokens, &*budget.money), (2, 100, "0.0001"));
        verify_ledger(&world).await;
    }
}

/// An attempt without reported usage counts with its reservation; a run that did not start costs nothing.
#[tokio::test(start_paused = true)]
async fn a_reservation_stays_if_no_usage_is_reported() {
    let mut world = World::new().await;
    let price = Some("0.25".to_owned());
    let smith = program("smith");
    let settings = AgentSettings { price_run: price, ..smith.settings };
    world.send(AgentAdd { settings, ..smith }).await.unwrap();
    let cut_off = add(&world, named("cut off", "smith", every("30d", "hang"))).await;
    crash(&mut world, async |world| {
        wait_until_idle().await;
        fire(world, &cut_off).await;
        wait_until_idle().await;
        assert_eq!(spent(world).await, "0.25", "while it runs");
    })
    .await;
    let lost = add(&world, named("lost", "smith", every("30d", "lose"))).await;
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(states(&world).await, ["unknown"]);
        assert_eq!(spent(&world).await, "0.25");
        fire(&world, &lost).await;
        wait_until_idle().await;
        assert_eq!(spent(&world).await, "0.50");
    })
    .await;
    for run in super::steps::runs(&world).await {
        assert_eq!(run.cost.as_deref(), Some("0.25"));
    }
    verify_ledger(&world).await;
}

/// The reservation of an indeterminate attempt stays; a failed attempt without reported usage used nothing.
#[tokio::test(start_paused = true)]
async fn an_indeterminate_attempt_counts_the_usage_of_the_previous_one() {
    for (prompt, expected) in [("lose", "0.00005"), ("fail for good", "0.00")] {
        let world = World::new().await;
        let price = Some("1.00".to_owned());
        let smith = program("smith");
        let (price_input, price_output) = (price.clone(), price);
        let settings = AgentSettings { price_input, price_output, ..smith.settings };
        world.send(AgentAdd { settings, ..smith }).await.unwrap();
        let schedule = add(&world, named("s", "smith", every("30d", "use 49"))).await;
        run_engine(&world, async {
            wait_until_idle().await;
            fire(&world, &schedule).await;
            wait_until_idle().await;
            let action = api::Action { prompt: Some(prompt.into()), ..api::Action::default() };
            let edit = ScheduleEdit { id: schedule.clone(), action, ..ScheduleEdit::default() };
            world.send(edit).await.unwrap();
            fire(&world, &schedule).await;
            wait_until_idle().await;
        })
        .await;
        let costs = super::steps::runs(&world).await.into_iter().map(|run| run.cost.unwrap());
        assert_eq!(costs.collect::<Vec<_>>(), ["0.00005", expected], "{prompt}");
        let expected = if prompt == "lose" { "0.0001" } else { "0.00005" };
        assert_eq!(spent(&world).await, expected, "{prompt}");
        verify_ledger(&world).await;
    }
}

/// The limits of a schedule do not affect other schedules.
#[tokio::test(start_paused = true)]
async fn a_schedule_has_its_own_token_and_money_limits() {
    let tokens = Terms { tokens_per_day: Some(50), ..Terms::default() };
    let money = Terms { money_per_day: Some("0.00005".into()), ..Terms::default() };
    for (terms, word) in [(tokens, "tokens"), (money, "spent")] {
        let world = World::new().await;
        world.send(paid("ada")).await.unwrap();
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "use 49")) };
        let limited = add(&world, schedule).await;
        let free = add(&world, named("t", "ada", every("1h", "use 49"))).await;
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            set(&world, 2 * HOUR_US).await;
        })
        .await;
        let explained = why(&world, &limited, 2 * HOUR_US).await;
        assert_eq!(explained.disposition.as_str(), "skipped_budget");
        assert!(explained.sentence.contains(word), "{}", explained.sentence);
        assert_eq!(why(&world, &limited, HOUR_US).await.disposition.as_str(), "ran");
        assert_eq!(why(&world, &free, 2 * HOUR_US).await.disposition.as_str(), "ran");
        // `status` names the exhausted limit and its reset time.
        let shown = world.send(BudgetList {}).await.unwrap();
        assert_eq!(shown.until, "2026-10-02T00:00:00Z");
        let first = &shown.budgets[0];
        assert_eq!((first.scope.as_str(), first.name.as_ref()), ("schedule", Some(&limited)));
        assert!(first.used_up && shown.budgets[1..].iter().all(|it| !it.used_up), "{shown:?}");
        let status = world.send(StatusShow {}).await.unwrap();
        let named = BudgetLimit { schedule_name: Some("s".into()), ..first.clone() };
        assert_eq!(status.budget.used_up, [named]);
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn status_lists_exhausted_budgets_and_their_reset_time() {
    let limits =
        Limits { runs_per_agent: 1, tokens: 1_000, money: money("0.00005"), ..Limits::default() };
    let mut world = World::new().await;
    world.limits = limits;
    world.reopen().await.unwrap();
    world.send(paid("ada")).await.unwrap();
    let schedule = add(&world, named("s", "ada", every("30d", "use 49"))).await;
    let used_up = async || {
        let budget = world.send(StatusShow {}).await.unwrap().budget;
        let lines = budget.used_up.into_iter().map(|it| {
            let whose = it.name.unwrap_or(it.scope);
            format!("{} of {} of {whose}", it.used, it.what)
        });
        (lines.collect::<Vec<_>>(), budget.until)
    };
    run_engine(&world, async {
        assert_eq!(used_up().await.0, [""; 0]);
        fire(&world, &schedule).await;
        wait_until_idle().await;
        let (lines, until) = used_up().await;
        assert_eq!(lines, ["0.00005 of money of installation", "1 of runs of ada"]);
        assert_eq!(until, after(DAY_US));
        set(&world, DAY_US).await;
        assert_eq!(used_up().await, (Vec::new(), after(2 * DAY_US)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_amounts_are_refused_as_price_and_as_limit() {
    let world = World::new().await;
    world.send(paid("ada")).await.unwrap();
    let hostile =
        ["1e9", "-1", "0.0000001", "NaN", "", "1,5", "100000000.000001", "9".repeat(400).leak()];
    for text in hostile {
        let settings = AgentSettings { price_run: Some(text.into()), ..AgentSettings::default() };
        let eve = AgentAdd { settings, ..builtin("eve") };
        let refused = world.send(eve).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{text}");
        assert!(refused.hint.is_some() && refused.message.len() < 100, "{refused:?}");
        let settings = AgentSettings { price_input: Some(text.into()), ..AgentSettings::default() };
        let edit = edit_settings("ada", settings);
        assert_eq!(world.send(edit).await.unwrap_err().code, Code::InvalidInput, "{text}");
        let terms = Terms { money_per_day: Some(text.into()), ..Terms::default() };
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "hello")) };
        assert_eq!(world.send(schedule).await.unwrap_err().code, Code::InvalidInput, "{text}");
    }
    for terms in [
        Terms { money_per_day: Some("0".into()), ..Terms::default() },
        Terms { tokens_per_day: Some(0), ..Terms::default() },
    ] {
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "hello")) };
        let refused = world.send(schedule).await.unwrap_err();
        assert_eq!(refused.message, "a schedule with a budget of 0 never runs");
    }
    assert_eq!(world.send(AgentList::default()).await.unwrap().agents.len(), 1);
}
