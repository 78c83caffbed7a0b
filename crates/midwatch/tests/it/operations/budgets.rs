//! Budgets of money: what a run costs, what an interrupted run keeps reserved, and how `status` shows a used-up
//! budget.

use crate::support::world::World;

/// Prints its prompt, or hangs if the prompt is `hang`.
const PROGRAM: &str = r#"read -r prompt; [ "$prompt" = hang ] && exec sleep 20; echo "$prompt""#;

#[test]
fn used_up_money_budget_cancels_runs_and_is_shown() {
    check_money_budget(World::new());
}

#[test]
fn used_up_money_budget_cancels_runs_on_postgresql() {
    check_money_budget(World::on_postgres());
}

fn check_money_budget(mut world: World) {
    world.set("MIDWATCH_BUDGET_MONEY", "0.50");
    let world = &world;
    let add = ["agent", "add", "ada", "--backend", "command", "--price-run"];
    for amount in ["-1", "1e9", "NaN", "0.0000001"] {
        let wrong = [&add[..], &[amount, "--", "true"]].concat();
        let hint = world.refused(&wrong, "invalid_input", 2);
        assert!(hint.contains("six decimals"), "{hint}");
    }
    world.ok(&[&add[..], &["0.25", "--", "sh", "-c", PROGRAM]].concat());
    assert!(world.ok(&["agent", "show", "ada"]).contains("0.25 per attempt"));
    let schedule = |name: &str| world.add_daily(name, "ada", name);
    let (quick, hang) = (schedule("quick"), schedule("hang"));
    let run = |id: &str| world.show_run(id);
    let money = || world.json(&["status"])["budget"]["money"].clone();

    let daemon = world.up();
    assert!(world.ok(&["status", "--budgets"]).contains("no budget is used today"));
    let first = world.start_run(&quick);
    world.wait_for_state(&first, "done");
    assert_eq!((run(&first)["cost"].clone(), money()), ("0.25".into(), "0.25".into()));

    // The outcome is unknown, so the price stays counted.
    let second = world.start_run(&hang);
    world.wait_for_state(&second, "running");
    daemon.kill();
    let daemon = world.up();
    world.wait_for_state(&second, "unknown");
    assert_eq!((run(&second)["cost"].clone(), money()), ("0.25".into(), "0.50".into()));

    let third = world.start_run(&quick);
    world.wait_for_state(&third, "cancelled");
    let third = run(&third);
    assert_eq!(third["reason"], "budget_used_up");
    let message = "all agents together have spent 0.50 of 0.50 today, and may spend no more before \
                midnight UTC";
    assert_eq!(third["message"], message);

    let status = world.json(&["status"]);
    let until = status["budget"]["until"].as_str().unwrap();
    let page = world.ok(&["status", "--utc"]);
    let used_up =
        "ATTENTION      today's budget of money is used up (0.50 of 0.50); nothing starts before";
    assert!(page.contains(&format!("{used_up} {until}")), "{page}");
    let page = world.ok(&["status", "--budgets", "--utc"]);
    let line = page.lines().find(|line| line.contains("money") && line.contains("installation"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(words, ["installation", "money", "0.50", "0.50", "USED", "UP"]);
    assert!(page.contains(until), "{page}");
    let shown = world.json(&["status", "--budgets"]);
    assert_eq!(shown["budgets"][0]["used_up"], true, "{shown}");
    assert_eq!(shown["budgets"][1]["used_up"], false, "{shown}");
    drop(daemon);
    world.verified();
}
