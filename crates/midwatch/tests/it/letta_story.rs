//! Schedules that prompt a Letta agent, or call a webhook: once each, whatever happens to the daemon.

use std::time::Duration;

use serde_json::Value;

use crate::secrets::files_with;
use crate::stand_in::{Act, StandIn, with_status};
use crate::world::{World, wait_for};

const KEY: &str = "canary-77aa10";

/// A world with an agent of this server's, and a schedule that prompts it only by hand.
fn world(server: &StandIn) -> (World, String) {
    let mut world = World::new();
    world.set("LETTA_KEY", KEY);
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    let there = ["--url", &server.url(), "--credential", "env:LETTA_KEY"];
    world.ok(&[&letta[..], &there].concat());
    let schedule = schedule(&world, "ada", "what is new?");
    (world, schedule)
}

fn schedule(world: &World, agent: &str, prompt: &str) -> String {
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", agent, "--prompt", prompt];
    let name = ["schedule", "add", "--overlap", "allow", "--name", agent];
    let added = world.json(&[&name[..], &what].concat());
    added["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
}

pub(crate) fn start(world: &World, schedule: &str) -> String {
    let started = world.json(&["run", "start", schedule]);
    started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

/// The run, once it is in this state.
pub(crate) fn once(world: &World, run: &str, state: &str) -> Value {
    wait_for(|| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == state).then_some(shown)
    })
}

#[test]
fn a_prompt_is_delivered_and_what_it_used_is_counted() {
    let server = StandIn::new([]);
    let (world, schedule) = world(&server);
    let daemon = world.up();
    let run = start(&world, &schedule);
    let shown = once(&world, &run, "done");
    assert_eq!(shown["output"]["text"], "heard: what is new?\n");
    assert_eq!((&shown["usage"]["input"], &shown["usage"]["output"]), (&12.into(), &3.into()));
    assert_eq!(world.json(&["status"])["budget"]["tokens"], 15);
    assert!(world.ok(&["run", "show", &run]).contains("12 in, 3 out"));
    let mut asked = server.asked();
    asked.retain(|asked| asked.method == "POST");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("idempotency-key"), Some(run.as_str()));
    assert_eq!(asked[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

/// Nobody knows whether the agent has done its work, so a human is asked and nothing is sent again.
#[test]
fn a_daemon_that_is_killed_in_the_middle_of_a_send_does_not_send_again() {
    let server = StandIn::new([Act::Hang]);
    let (world, schedule) = world(&server);
    let daemon = world.up();
    let run = start(&world, &schedule);
    wait_for(|| (server.count("/messages") == 1).then_some(()));
    daemon.kill();

    let daemon = world.up();
    let shown = once(&world, &run, "unknown");
    assert_eq!(shown["reason"], "interrupted");
    world.checked();
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
    world.ok(&["run", "settle", &run, "--as", "failed", "--note", "its history has nothing"]);
    world.verified();
}

#[test]
fn what_a_server_does_is_recorded_and_explained() {
    let wait = with_status(429, "retry-after: 1\r\n", "slow down");
    let dates =
        "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
    let until = with_status(503, dates, "slow down");
    for (acts, state, reason, sent) in [
        (vec![Act::Raw(Vec::new())], "unknown", Some("connection_lost"), 1),
        (vec![Act::Stop("llm_api_error")], "failed", Some("llm_api_error"), 1),
        (
            vec![Act::Raw(with_status(401, "", "who are you?"))],
            "failed",
            Some("credentials_refused"),
            1,
        ),
        (vec![Act::Raw(with_status(200, "", "<html>"))], "unknown", Some("answer_unreadable"), 1),
        (vec![Act::Raw(wait), Act::Stop("end_turn")], "done", None, 2),
        (vec![Act::Raw(until), Act::Stop("end_turn")], "done", None, 2),
        (vec![Act::Flood(100)], "unknown", Some("answer_too_long"), 1),
        (vec![Act::Drip], "unknown", Some("timeout"), 1),
        (vec![Act::Hang], "unknown", Some("timeout"), 1),
    ] {
        let server = StandIn::new(acts.clone());
        let (world, schedule) = world(&server);
        world.ok(&["agent", "edit", "ada", "--time-limit", "5s"]);
        let daemon = world.up();
        let shown = once(&world, &start(&world, &schedule), state);
        assert_eq!(shown["reason"].as_str(), reason, "{acts:?}: {shown}");
        assert_eq!(server.count("/messages"), sent, "{acts:?}");
        assert_eq!(daemon.stop().0, Some(0));
    }
}

/// The next run would only say so again; a schedule that is never to be paused goes on.
#[test]
fn a_schedule_that_nobody_pays_for_is_paused_at_once_and_says_so() {
    let credits = "insufficient_credits";
    let unpaid = Act::Raw(with_status(402, "", "your credits are used up"));
    for (act, reason) in [(Act::Stop(credits), credits), (unpaid, "payment_required")] {
        let server = StandIn::new([act]);
        let (world, schedule) = world(&server);
        let daemon = world.up();
        let shown = once(&world, &start(&world, &schedule), "failed");
        assert_eq!((&shown["reason"], &shown["attempt"]), (&reason.into(), &1.into()), "{shown}");
        let paused = world.json(&["schedule", "show", &schedule])["schedule"].clone();
        assert_eq!((&paused["status"], &paused["failures"]), (&"paused".into(), &1.into()));
        let note = paused["paused"]["note"].as_str().unwrap();
        assert!(note.starts_with("nobody pays for its agent any more"), "{note}");
        world.ok(&["schedule", "edit", &schedule, "--pause-after", "0"]);
        world.ok(&["schedule", "resume", &schedule]);
        once(&world, &start(&world, &schedule), "failed");
        let active = world.json(&["schedule", "show", &schedule])["schedule"]["status"].clone();
        assert_eq!(active, "active");
        assert_eq!(daemon.stop().0, Some(0));
    }
}

/// Two agents of ours that lead to one of Letta's, and a schedule for each.
#[test]
fn one_agent_is_spoken_to_by_one_at_a_time() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(50))]);
    let (world, first) = world(&server);
    let alias = ["agent", "add", "bob", "--backend", "letta", "--remote-id", "agent-123"];
    world.ok(&[&alias[..], &["--url", &server.url().replace("127.0.0.1", "localhost")]].concat());
    let second = schedule(&world, "bob", "and you?");
    let daemon = world.up();
    let runs: Vec<String> =
        (0..6).map(|n| start(&world, if n % 2 == 0 { &first } else { &second })).collect();
    for run in &runs {
        wait_for(|| {
            let state = world.json(&["run", "show", run])["run"]["state"].clone();
            ["done", "cancelled", "failed"].iter().any(|it| state == *it).then_some(())
        });
    }
    assert!(2 <= server.count("/messages"), "{:?}", server.asked());
    assert_eq!(server.most_at_work(), 1);
    assert_eq!(daemon.stop().0, Some(0));
}

#[test]
fn a_test_of_an_agent_says_what_was_seen() {
    let server = StandIn::new([Act::Say("ready".into()), Act::Stop("insufficient_credits")]);
    let (world, _) = world(&server);
    let tested = world.json(&["agent", "test", "ada"])["test"].clone();
    assert_eq!((&tested["passed"], &tested["said"]), (&true.into(), &"ready".into()), "{tested}");
    let seen = tested["server"].to_string();
    assert!(
        seen.contains("Letta 0.16.8") && seen.contains("it knows `agent-123` as `scout`"),
        "{seen}"
    );

    let daemon = world.up();
    let outcome = world.run(&["agent", "test", "ada", "--prompt", "still there?"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("insufficient_credits"), "{outcome:?}");
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    assert_eq!(world.json(&["agent", "test", "echo", "--prompt", "a"])["test"]["said"], "a");
    world.refused(&["agent", "test", "nobody"], "not_found", 3);
    world.ok(&["freeze"]);
    world.refused(&["agent", "test", "echo"], "not_now", 4);
    assert_eq!(daemon.stop().0, Some(0));
    let tested = world.kinds().into_iter().filter(|kind| kind == "agent.tested").count();
    assert_eq!(tested, 3, "what was refused was not sent, and so is not in the log");
    world.verified();
}

/// Whoever takes one server of Letta's for the other is told so, when the agent is added and when it is tested.
#[test]
fn l7_an_agent_that_is_added_says_what_server_it_has() {
    let v1 = "it is the V1 server, Letta 0.16.8";
    let app = "it is the App Server of Letta Code 0.34.12";
    let asks_nobody = "without asking anybody";
    for (server, api, expected, is_warned) in [
        (StandIn::new([]), "rest", v1.to_owned(), false),
        (StandIn::app_server([]), "openai", app.to_owned(), true),
        (StandIn::new([]), "openai", format!("{v1}: `--api rest` speaks to it"), true),
        (StandIn::app_server([]), "rest", format!("{app}: `--api openai` speaks to it"), false),
    ] {
        let world = World::new();
        let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
        let added = world.ok(&[&letta[..], &["--url", &server.url(), "--api", api]].concat());
        assert!(added.lines().any(|line| line == format!("server: {expected}")), "{added}");
        assert_eq!(added.contains(asks_nobody), is_warned, "{added}");
        assert_eq!(server.asked().iter().filter(|it| it.method == "POST").count(), 0, "no prompt");
        let tested = world.json(&["agent", "test", "ada"])["test"]["server"].clone();
        assert_eq!(tested[0], expected, "{tested}");
    }
    // It is added also where nobody answers.
    let world = World::new();
    let nobody = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    let added = world.ok(&[&nobody[..], &["--url", "http://127.0.0.1:9"]].concat());
    assert!(added.contains("agent `ada` registered") && added.contains("nobody was reached"));
}

/// The key comes back in answers, errors and redirects, and is nowhere but in the requests.
#[test]
fn g4_a_key_is_in_nothing_that_is_written_or_said() {
    let echo = |status, text: &str| {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        Act::Raw(with_status(
            status,
            &format!("location: /{KEY}\r\n"),
            &format!("{text}{KEY} {hex}"),
        ))
    };
    let server = StandIn::new([
        Act::Say(format!("your key is {KEY}, I think: {KEY}")),
        echo(401, "no: "),
        echo(302, ""),
        echo(200, "{"),
        echo(200, "taken "),
    ]);
    let (mut world, schedule_id) = world(&server);
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let hook = ["agent", "add", "hook", "--backend", "webhook", "--tier", "1", "--allow-private"];
    let there = ["--url", &format!("{}/in", server.url()), "--credential", "env:LETTA_KEY"];
    world.ok(&[&hook[..], &there].concat());
    let daemon = world.up();
    let mut heard = String::new();
    for state in ["done", "failed", "failed", "unknown"] {
        let run = start(&world, &schedule_id);
        once(&world, &run, state);
        heard += &world.ok(&["run", "show", &run]);
    }
    let run = start(&world, &schedule(&world, "hook", "go"));
    once(&world, &run, "done");
    heard += &world.ok(&["run", "show", &run]);
    let called = server.asked().pop().unwrap();
    assert!(
        called.header("midwatch-signature").is_some() && called.header("authorization").is_none()
    );
    for arguments in [&["agent", "test", "ada"][..], &["agent", "show", "ada"], &["ledger", "tail"]]
    {
        let outcome = world.run(arguments);
        heard += &format!("{}{}", outcome.stdout, outcome.stderr);
    }
    heard += &std::fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world.ok(&["ledger", "export"]);
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for secret in [KEY, &hex] {
        assert!(!heard.contains(secret) && !said.contains(secret), "{heard}\n{said}");
        assert_eq!(files_with(world.root(), secret, &[]), Vec::<String>::new());
    }
    assert!(heard.contains("env:LETTA_KEY"), "the reference is no secret");
}

/// A call into the world asks, and one to this machine is not made unless the operator allows it.
#[test]
fn a_webhook_asks_and_does_not_reach_inside() {
    let server = StandIn::new([]);
    let world = World::new();
    let hook = ["agent", "add", "hook", "--backend", "webhook", "--url", &server.url()];
    world.ok(&hook);
    let daily = schedule(&world, "hook", "go");
    let daemon = world.up();
    let run = start(&world, &daily);
    once(&world, &run, "waiting_permission");
    world.ok(&["agent", "edit", "hook", "--tier", "1"]);
    world.ok(&["run", "cancel", &run]);
    let run = start(&world, &daily);
    let shown = once(&world, &run, "failed");
    assert_eq!(shown["reason"], "not_allowed");
    assert!(server.asked().is_empty());
    world.ok(&["agent", "edit", "hook", "--allow-private"]);
    once(&world, &start(&world, &daily), "done");
    assert_eq!(server.asked().len(), 1);
    world.ok(&["agent", "edit", "hook", "--public-only"]);
    once(&world, &start(&world, &daily), "failed");
    assert_eq!(daemon.stop().0, Some(0));
}
