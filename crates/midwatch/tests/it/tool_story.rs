//! Schedules that call tools of our own, with a real daemon that is killed while they do.

use serde_json::{Value, json};

use crate::world::{World, wait_for};

const ROUNDS: usize = 8;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// A schedule that prompts by itself after years, and one that calls a tool on it.
fn scheduled(world: &World, tool: &str) -> (String, String) {
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let target = ["schedule", "add", "--name", "report", "--at", "2090-01-01T00:00:00Z"];
    let target =
        [&target[..], &["--agent", "ada", "--prompt", "Hello.", "--per-day", "99"]].concat();
    let target = text(&world.json(&target)["schedule"]["id"]);
    let payload = match tool {
        "run_start" => json!({"schedule_id": target}).to_string(),
        _ => json!({"id": target}).to_string(),
    };
    let caller = ["schedule", "add", "--name", "call", "--every", "1000h", "--tool", tool];
    let caller = world.json(&[&caller[..], &["--payload", &payload, "--per-day", "99"]].concat());
    (target, text(&caller["schedule"]["id"]))
}

fn runs(world: &World, schedule: &str) -> Vec<Value> {
    let listed = world.json(&["run", "list", "--schedule", schedule, "--limit", "1000"]);
    listed["runs"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

fn once(world: &World, run: &str, state: &str) -> Value {
    wait_for(|| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == state).then_some(shown)
    })
}

/// Each run of the one starts the other once, though the daemon dies as soon as that is in the log.
#[test]
fn a_tool_takes_effect_once_for_each_run_whenever_the_daemon_is_killed() {
    let world = World::new();
    let (target, caller) = scheduled(&world, "run_start");
    let queued = "SELECT count(*) FROM entry WHERE kind = 'run.queued' AND actor LIKE 'tool:%'";
    let mut daemon = world.up();
    let database = world.database();
    for round in 1..=ROUNDS {
        let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
        wait_for(|| {
            let count: usize = database.query_row(queued, (), |row| row.get(0)).unwrap();
            (count == round).then_some(())
        });
        daemon.kill();
        daemon = world.up();
        let done = once(&world, &run, "done");
        let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
        let started = runs(&world, &target);
        assert_eq!(started.len(), round, "{started:?}");
        let newest = started.iter().find(|it| it["id"] == answer["run"]["id"]);
        assert!(newest.is_some(), "{answer} is none of {started:?}");
    }
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

#[test]
fn a_call_is_shown_with_its_answer_and_in_the_log_with_its_run() {
    let world = World::new();
    let (target, caller) = scheduled(&world, "schedule_pause");
    let shown = world.json(&["schedule", "show", &caller]);
    assert_eq!(shown["orders"]["by_itself"], true, "{shown}");
    let daemon = world.up();
    let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
    let done = once(&world, &run, "done");
    let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&answer["changed"], &answer["schedule"]["id"]), (&json!(true), &json!(target)));
    let paused = &world.json(&["schedule", "show", &target])["schedule"]["paused"];
    assert_eq!(paused["by"], format!("tool:{run}"));
    let explained = world.ok(&["policy", "explain", "--run", &run]);
    assert!(explained.contains("allowed it"), "{explained}");
    // An error of the tool is why its run fails.
    world.ok(&["schedule", "remove", &target]);
    let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
    assert_eq!(once(&world, &run, "failed")["reason"], "not_found");
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

#[test]
fn what_no_schedule_can_call_is_refused_when_it_is_added() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let add = |tool: &str, payload: &str| {
        let add = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", tool];
        world.refused(&[&add[..], &["--payload", payload]].concat(), "invalid_input", 2)
    };
    let unknown = add("mail_send", "{}");
    assert!(unknown.starts_with("there is no tool `mail_send`\na schedule can call "), "{unknown}");
    for (tool, payload, why) in [
        ("run_wait", r#"{"run_id": "run_1"}"#, "it waits for news"),
        ("permission_decide", r#"{"tool_name": "Bash"}"#, "it answers whoever"),
        ("approval_call_human", r#"{"id": "apr_1"}"#, "it gives words to pass on"),
        ("schedule_pause", "{}", "missing field `id`"),
        ("schedule_pause", r#"{"id": "sch_1", "idd": 1}"#, "unknown field `idd`"),
        ("schedule_pause", r#"{"id": 7}"#, "invalid type"),
        ("schedule_pause", r#"{"id": "sch_1", "idempotency_key": "k"}"#, "leave it out"),
        ("schedule_pause", "[]", "the payload is no object"),
        ("approval_decide", "{}", "there is no tool"),
        ("freeze", "{}", "there is no tool"),
    ] {
        let said = add(tool, payload);
        assert!(said.contains(why), "{tool} {payload}: {said}");
    }
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}
