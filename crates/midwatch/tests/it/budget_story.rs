//! Money, as people use it: what a run costs, what a kill -9 in the middle of one leaves held back, and that
//! whoever looks sees what is used up and until when.

use crate::world::{World, wait_for};

/// Says what it is told, unless it is told to hang.
const PROGRAM: &str = r#"read -r told; [ "$told" = hang ] && exec sleep 20; echo "$told""#;

#[test]
fn money_runs_out_and_says_so() {
    story(World::new());
}

#[test]
fn money_runs_out_and_says_so_on_postgresql() {
    story(World::on_postgres());
}

fn story(mut world: World) {
    world.set("MIDWATCH_BUDGET_MONEY", "0.50");
    let world = &world;
    let add = ["agent", "add", "ada", "--backend", "command", "--price-run"];
    for amount in ["-1", "1e9", "NaN", "0.0000001"] {
        let wrong = [&add[..], &[amount, "--", "true"]].concat();
        let hint = world.refused(&wrong, "invalid_input", 2);
        assert!(hint.contains("six decimals"), "{hint}");
    }
    world.ok(&[&add[..], &["0.25", "--", "sh", "-c", PROGRAM]].concat());
    assert!(world.ok(&["agent", "show", "ada"]).contains("0.25 for each try"));
    let schedule = |name: &str| {
        let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", name];
        let added = world.json(&[&["schedule", "add", "--name", name], &what[..]].concat());
        added["schedule"]["id"].as_str().unwrap().to_owned()
    };
    let (quick, hang) = (schedule("quick"), schedule("hang"));
    let start = |schedule: &str| {
        world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned()
    };
    let run = |id: &str| world.json(&["run", "show", id])["run"].clone();
    let is = |id: &str, state: &str| wait_for(|| (run(id)["state"] == state).then_some(()));
    let money = || world.json(&["status"])["budget"]["money"].clone();

    let daemon = world.up();
    assert!(world.ok(&["status", "--budgets"]).contains("nothing that is limited is used today"));
    let first = start(&quick);
    is(&first, "done");
    assert_eq!((run(&first)["cost"].clone(), money()), ("0.25".into(), "0.25".into()));

    // Nobody knows what it came to: the price stays counted.
    let second = start(&hang);
    is(&second, "running");
    daemon.kill();
    let daemon = world.up();
    is(&second, "unknown");
    assert_eq!((run(&second)["cost"].clone(), money()), ("0.25".into(), "0.50".into()));

    let third = start(&quick);
    is(&third, "cancelled");
    let third = run(&third);
    assert_eq!(third["reason"], "budget_used_up");
    let said = "all agents together have spent 0.50 of 0.50 today, and may spend no more before \
                midnight UTC";
    assert_eq!(third["message"], said);

    let status = world.json(&["status"]);
    let until = status["budget"]["until"].as_str().unwrap();
    let page = world.ok(&["status"]);
    assert!(page.contains(&format!("used up until {until}: money of installation")), "{page}");
    let page = world.ok(&["status", "--budgets"]);
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
