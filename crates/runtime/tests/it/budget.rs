//! Budgets: of many that want to begin at once, as many do as may, whatever the clock shows.

use api::{
    AgentAdd, AgentEdit, AgentList, AgentTest, BudgetList, Code, ScheduleAdd, ScheduleEdit,
    ScheduleFire, StatusAsk, Terms,
};
use kernel::budget::Limits;
use kernel::money::Money;

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

/// Whoever adds a schedule that stands still every day hears of it at once, also in a dry run.
#[tokio::test(start_paused = true)]
async fn a_schedule_that_exceeds_a_budget_alone_says_so() {
    let limits = Limits { runs: 2_000, runs_per_agent: 1_000, ..Limits::default() };
    let (world, _) = busy(limits, 0, 1).await;
    world.ask(builtin("reader")).await.unwrap();
    let warnings = async |schedule: ScheduleAdd| world.ask(schedule).await.unwrap().warnings;
    let both = warnings(ScheduleAdd { dry_run: true, ..every("1s", "hello") }).await;
    let asks = "it asks for 86400 runs a day, and";
    let rest = "the rest is left out until";
    assert_eq!(
        both,
        [
            format!("{asks} all agents together may have 2000: {rest} `budget.runs` is raised"),
            format!("{asks} agent `ada` may have 1000: {rest} `budget.runs_per_agent` is raised"),
        ]
    );
    assert_eq!(warnings(every("1m", "hello")).await.len(), 1);
    assert!(warnings(every("2m", "hello")).await.is_empty());
    assert!(warnings(named("free", "reader", every("1s", "x"))).await.is_empty(), "of tier 0");
    let terms = Terms { per_day: Some(1_000), ..Terms::default() };
    let kept = ScheduleAdd { terms, ..every("1s", "kept") };
    let id = {
        let added = world.ask(kept).await.unwrap();
        assert!(added.warnings.is_empty(), "it says how often itself");
        added.schedule.id
    };
    let unset = vec!["per_day".to_owned()];
    let edited = world.ask(ScheduleEdit { id, unset, ..ScheduleEdit::default() }).await.unwrap();
    assert_eq!(edited.warnings.len(), 2);
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

/// Tokens count for whatever is begun, though runs of tier 0 do not.
#[tokio::test(start_paused = true)]
async fn what_only_reads_begins_no_more_when_the_tokens_are_used() {
    let (world, _) = busy(Limits { tokens: 50, ..Limits::default() }, 0, 0).await;
    add(&world, named("s", "ada", every("1h", "use 49"))).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        set(&world, 2 * HOUR_US).await;
        assert_eq!((begun(&world), counted(&world).await), (1, 0));
    })
    .await;
    check_log(&world).await;
}

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

/// An agent that costs a millionth for each token.
fn paid(name: &str) -> AgentAdd {
    let price = Some("1.00".to_owned());
    AgentAdd { tier: Some(1), price_input: price.clone(), price_output: price, ..builtin(name) }
}

async fn spent(world: &World) -> String {
    world.ask(StatusAsk {}).await.unwrap().budget.money
}

/// What a run costs is worked out when it is over; at the limit one still begins, and past it none.
#[tokio::test(start_paused = true)]
async fn money_that_was_spent_keeps_others_from_beginning() {
    let (of_agent, of_all) = (
        |most| Limits { money_per_agent: money(most), ..Limits::default() },
        |most| Limits { money: money(most), ..Limits::default() },
    );
    for (limits, runs, used) in [
        (of_agent("0.0001"), 2, "0.0001"),
        (of_all("0.0001"), 2, "0.0001"),
        // Another is expected to cost as much as the first, and so one millionth too much.
        (of_agent("0.000099"), 1, "0.00005"),
        (of_all("0.000099"), 1, "0.00005"),
        // What costs more than a day may is known after the first, which is then the only one of a day.
        (of_agent("0.00001"), 1, "0.00005"),
    ] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.ask(paid("ada")).await.unwrap();
        world.ask(AgentAdd { tier: Some(1), ..builtin("eve") }).await.unwrap();
        let schedule = add(&world, named("s", "ada", every("1h", "use 49"))).await;
        keep(&world, async {
            for hour in 1..=3 {
                set(&world, hour * HOUR_US).await;
            }
            assert_eq!((begun(&world), spent(&world).await.as_str()), (runs, used), "{limits:?}");
            // Whoever has no price costs nothing.
            let free = add(&world, named("free", "eve", every("30d", "use 49"))).await;
            fire(&world, &free).await;
            settle().await;
            assert_eq!(begun(&world), runs + 1);
            set(&world, DAY_US + HOUR_US).await;
            assert_eq!(begun(&world), runs + 2, "it is another day");
        })
        .await;
        let told = why(&world, &schedule, 3 * HOUR_US).await;
        assert_eq!(told.disposition, "skipped_budget");
        assert_eq!(told.reason.as_deref(), Some("budget_used_up"));
        assert!(told.sentence.contains("spent"), "{}", told.sentence);
        let first = &super::steps::runs(&world).await[0];
        assert_eq!(first.cost.as_deref(), Some("0.00005"));
        check_log(&world).await;
    }
}

/// The price of a try is known before, and held back with the beginning: of many at once as many begin as
/// can be paid.
#[tokio::test(start_paused = true)]
async fn of_many_at_once_as_many_begin_as_can_be_paid() {
    for (most, begin) in [("0.75", 3), ("0.749999", 2), ("0.24", 0)] {
        let limits = Limits { money: money(most), ..Limits::default() };
        let (world, schedules) = busy(limits, 20, 1).await;
        let price = Some("0.25".to_owned());
        let priced = AgentEdit { name: "ada".into(), price_run: price, ..AgentEdit::default() };
        world.ask(priced).await.unwrap();
        keep(&world, async {
            set(&world, HOUR_US).await;
            assert_eq!(begun(&world), begin, "{most}");
        })
        .await;
        let mut skipped = 0;
        for schedule in &schedules {
            let told = why(&world, schedule, HOUR_US).await;
            skipped += usize::from(told.disposition == "skipped_budget");
        }
        assert_eq!(skipped, 20 - begin);
        check_log(&world).await;
    }
}

/// Nobody knows what they will use, and all of them may use very much: a share of the day is held back for
/// each, so that no more begin than have one.
#[tokio::test(start_paused = true)]
async fn of_many_first_runs_at_once_each_holds_back_a_share_of_the_day() {
    let mut world = World::new().await;
    world.limits = Limits { tokens: 1_000, ..Limits::default() };
    world.reopen().await.unwrap();
    for number in 0..30 {
        let agent = AgentAdd {
            name: format!("letta-{number}"),
            backend: "letta".into(),
            remote_id: Some(format!("agent-{number}")),
            ..AgentAdd::default()
        };
        let name = agent.name.clone();
        world.ask(agent).await.unwrap();
        add(&world, named(&name, &name, every("1h", "wait"))).await;
    }
    let used = async || world.ask(StatusAsk {}).await.unwrap().budget.tokens;
    keep(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!((begun(&world), used().await), (20, 1_000));
        world.hands.let_go(20);
        settle().await;
        assert_eq!(used().await, 0, "they told nothing, and what was held back is free again");
        set(&world, 2 * HOUR_US).await;
        assert_eq!(begun(&world), 40, "the next hour is nobody's last");
        world.hands.let_go(20);
        settle().await;
    })
    .await;
    check_log(&world).await;
}

/// A human who tries an agent out uses what its runs would.
#[tokio::test(start_paused = true)]
async fn a_test_counts_as_a_run_does() {
    let of_runs = Limits { runs_per_agent: 2, ..Limits::default() };
    let of_tokens = Limits { tokens: 100, ..Limits::default() };
    let of_money = Limits { money_per_agent: money("0.0001"), ..Limits::default() };
    for (limits, word) in [(of_runs, "runs"), (of_tokens, "tokens"), (of_money, "spent")] {
        let mut world = World::new().await;
        world.limits = limits;
        world.reopen().await.unwrap();
        world.watch.set_doer(world.doer());
        world.ask(paid("ada")).await.unwrap();
        let test = || AgentTest { name: "ada".into(), prompt: Some("use 49".into()) };
        for _ in 0..2 {
            world.ask(test()).await.unwrap();
        }
        let refused = world.ask(test()).await.unwrap_err();
        assert_eq!(refused.code, Code::BudgetExhausted, "{refused:?}");
        assert!(refused.message.contains(word), "{refused:?}");
        assert_eq!(begun(&world), 2);
        let budget = world.ask(StatusAsk {}).await.unwrap().budget;
        assert_eq!((budget.runs, budget.tokens, &*budget.money), (2, 100, "0.0001"));
        check_log(&world).await;
    }
}

/// What is not known of a try is counted as what was held back; what was not begun costs nothing.
#[tokio::test(start_paused = true)]
async fn what_nobody_tells_stays_held_back() {
    let mut world = World::new().await;
    let price = Some("0.25".to_owned());
    world.ask(AgentAdd { price_run: price, ..program("smith") }).await.unwrap();
    let cut_off = add(&world, named("cut off", "smith", every("30d", "hang"))).await;
    crash(&mut world, async |world| {
        settle().await;
        fire(world, &cut_off).await;
        settle().await;
        assert_eq!(spent(world).await, "0.25", "while it is at work");
    })
    .await;
    let lost = add(&world, named("lost", "smith", every("30d", "lose"))).await;
    keep(&world, async {
        settle().await;
        assert_eq!(states(&world).await, ["unknown"]);
        assert_eq!(spent(&world).await, "0.25");
        fire(&world, &lost).await;
        settle().await;
        assert_eq!(spent(&world).await, "0.50");
    })
    .await;
    for run in super::steps::runs(&world).await {
        assert_eq!(run.cost.as_deref(), Some("0.25"));
    }
    check_log(&world).await;
}

/// Of a try whose end is in doubt, what the one before it used is held back for good; one that failed and
/// told nothing has used nothing.
#[tokio::test(start_paused = true)]
async fn what_is_in_doubt_counts_as_much_as_the_one_before() {
    for (prompt, expected) in [("lose", "0.00005"), ("fail for good", "0.00")] {
        let world = World::new().await;
        let price = Some("1.00".to_owned());
        let smith =
            AgentAdd { price_input: price.clone(), price_output: price, ..program("smith") };
        world.ask(smith).await.unwrap();
        let schedule = add(&world, named("s", "smith", every("30d", "use 49"))).await;
        keep(&world, async {
            settle().await;
            fire(&world, &schedule).await;
            settle().await;
            let action = api::Action { prompt: Some(prompt.into()), ..api::Action::default() };
            let edit = ScheduleEdit { id: schedule.clone(), action, ..ScheduleEdit::default() };
            world.ask(edit).await.unwrap();
            fire(&world, &schedule).await;
            settle().await;
        })
        .await;
        let costs = super::steps::runs(&world).await.into_iter().map(|run| run.cost.unwrap());
        assert_eq!(costs.collect::<Vec<_>>(), ["0.00005", expected], "{prompt}");
        let expected = if prompt == "lose" { "0.0001" } else { "0.00005" };
        assert_eq!(spent(&world).await, expected, "{prompt}");
        check_log(&world).await;
    }
}

/// A schedule has limits of its own, which keep no other from anything.
#[tokio::test(start_paused = true)]
async fn a_schedule_has_tokens_and_money_of_its_own() {
    let tokens = Terms { tokens_per_day: Some(50), ..Terms::default() };
    let money = Terms { money_per_day: Some("0.00005".into()), ..Terms::default() };
    for (terms, word) in [(tokens, "tokens"), (money, "spent")] {
        let world = World::new().await;
        world.ask(paid("ada")).await.unwrap();
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "use 49")) };
        let limited = add(&world, schedule).await;
        let free = add(&world, named("t", "ada", every("1h", "use 49"))).await;
        keep(&world, async {
            set(&world, HOUR_US).await;
            set(&world, 2 * HOUR_US).await;
        })
        .await;
        let told = why(&world, &limited, 2 * HOUR_US).await;
        assert_eq!(told.disposition, "skipped_budget");
        assert!(told.sentence.contains(word), "{}", told.sentence);
        assert_eq!(why(&world, &limited, HOUR_US).await.disposition, "ran");
        assert_eq!(why(&world, &free, 2 * HOUR_US).await.disposition, "ran");
        // Whoever looks sees which one it is, and until when.
        let shown = world.ask(BudgetList {}).await.unwrap();
        assert_eq!(shown.until, "2026-10-02T00:00:00Z");
        let first = &shown.budgets[0];
        assert_eq!((first.scope.as_str(), first.name.as_ref()), ("schedule", Some(&limited)));
        assert!(first.used_up && shown.budgets[1..].iter().all(|it| !it.used_up), "{shown:?}");
        let status = world.ask(StatusAsk {}).await.unwrap();
        assert_eq!(status.budget.used_up, std::slice::from_ref(first));
        check_log(&world).await;
    }
}

/// A status names what is used up.
#[tokio::test(start_paused = true)]
async fn a_status_says_what_is_used_up_and_until_when() {
    let limits =
        Limits { runs_per_agent: 1, tokens: 1_000, money: money("0.00005"), ..Limits::default() };
    let mut world = World::new().await;
    world.limits = limits;
    world.reopen().await.unwrap();
    world.ask(paid("ada")).await.unwrap();
    let schedule = add(&world, named("s", "ada", every("30d", "use 49"))).await;
    let used_up = async || {
        let budget = world.ask(StatusAsk {}).await.unwrap().budget;
        let told = budget.used_up.into_iter().map(|it| {
            let whose = it.name.unwrap_or(it.scope);
            format!("{} of {} of {whose}", it.used, it.what)
        });
        (told.collect::<Vec<_>>(), budget.until)
    };
    keep(&world, async {
        assert_eq!(used_up().await.0, [""; 0]);
        fire(&world, &schedule).await;
        settle().await;
        let (told, until) = used_up().await;
        assert_eq!(told, ["0.00005 of money of installation", "1 of runs of ada"]);
        assert_eq!(until, after(DAY_US));
        set(&world, DAY_US).await;
        assert_eq!(used_up().await, (Vec::new(), after(2 * DAY_US)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_amount_is_no_price_and_no_limit() {
    let world = World::new().await;
    world.ask(paid("ada")).await.unwrap();
    let hostile =
        ["1e9", "-1", "0.0000001", "NaN", "", "1,5", "100000000.000001", "9".repeat(400).leak()];
    for text in hostile {
        let price = AgentAdd { price_run: Some(text.into()), ..builtin("eve") };
        let refused = world.ask(price).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{text}");
        assert!(refused.hint.is_some() && refused.message.len() < 100, "{refused:?}");
        let price = AgentEdit {
            name: "ada".into(),
            price_input: Some(text.into()),
            ..AgentEdit::default()
        };
        assert_eq!(world.ask(price).await.unwrap_err().code, Code::InvalidInput, "{text}");
        let terms = Terms { money_per_day: Some(text.into()), ..Terms::default() };
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "hello")) };
        assert_eq!(world.ask(schedule).await.unwrap_err().code, Code::InvalidInput, "{text}");
    }
    for terms in [
        Terms { money_per_day: Some("0".into()), ..Terms::default() },
        Terms { tokens_per_day: Some(0), ..Terms::default() },
    ] {
        let schedule = ScheduleAdd { terms, ..named("s", "ada", every("1h", "hello")) };
        let refused = world.ask(schedule).await.unwrap_err();
        assert_eq!(refused.message, "a schedule that may use nothing never runs");
    }
    assert_eq!(world.ask(AgentList::default()).await.unwrap().agents.len(), 1);
}
