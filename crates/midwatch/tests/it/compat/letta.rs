//! Schedules that prompt a Letta agent or call a webhook: each run sends once, across crashes.

use std::time::Duration;

use serde_json::Value;

use crate::access::secrets::files_with;
use crate::support::http_stub;
use crate::support::stand_in::{Act, StandIn, with_status};
use crate::support::wait::wait_until;
use crate::support::world::{World, daily};

const KEY: &str = "canary-77aa10";

/// A world with an agent of this server and a schedule that a test starts by hand.
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
    world.add_schedule(&[&daily(agent, agent, prompt)[..], &["--overlap", "allow"]].concat())
}

#[test]
fn prompt_is_delivered_and_its_usage_counted() {
    let server = StandIn::new([]);
    let (world, schedule) = world(&server);
    let daemon = world.up();
    let run = world.start_run(&schedule);
    let shown = world.wait_for_state(&run, "done");
    assert_eq!(shown["output"]["text"], "heard: what is new?\n");
    assert_eq!((&shown["usage"]["input"], &shown["usage"]["output"]), (&12.into(), &3.into()));
    assert_eq!(world.json(&["status"])["budget"]["tokens"], 15);
    assert!(world.ok(&["run", "show", &run]).contains("12 in, 3 out"));
    let mut requests = server.asked();
    requests.retain(|request| request.method == "POST");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("idempotency-key"), Some(run.as_str()));
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    daemon.stop();
    world.verified();
}

/// The outcome is unknown, so the prompt is not sent again.
#[test]
fn daemon_killed_while_sending_does_not_send_again() {
    let server = StandIn::new([Act::Hang]);
    let (world, schedule) = world(&server);
    let daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until(|| server.count("/messages") == 1);
    daemon.kill();

    let daemon = world.up();
    let shown = world.wait_for_state(&run, "unknown");
    assert_eq!(shown["reason"], "interrupted");
    world.checked();
    daemon.stop();
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
    world.ok(&["run", "settle", &run, "--as", "failed", "--reason", "its history has nothing"]);
    world.verified();
}

#[test]
fn server_failures_are_recorded_with_a_reason() {
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
        let shown = world.wait_for_state(&world.start_run(&schedule), state);
        assert_eq!(shown["reason"].as_str(), reason, "{acts:?}: {shown}");
        assert_eq!(server.count("/messages"), sent, "{acts:?}");
        daemon.stop();
    }
}

/// The next run would fail alike; a schedule that is never paused continues.
#[test]
fn schedule_is_paused_at_once_when_payment_is_required() {
    let credits = "insufficient_credits";
    let payment_required = Act::Raw(with_status(402, "", "your credits are used up"));
    for (act, reason) in [(Act::Stop(credits), credits), (payment_required, "payment_required")] {
        let server = StandIn::new([act]);
        let (world, schedule) = world(&server);
        let daemon = world.up();
        let shown = world.wait_for_state(&world.start_run(&schedule), "failed");
        assert_eq!((&shown["reason"], &shown["attempt"]), (&reason.into(), &1.into()), "{shown}");
        let paused = world.json(&["schedule", "show", &schedule])["schedule"].clone();
        assert_eq!((&paused["status"], &paused["failures"]), (&"paused".into(), &1.into()));
        let note = paused["paused"]["note"].as_str().unwrap();
        assert!(note.starts_with("its agent needs payment"), "{note}");
        world.ok(&["schedule", "edit", &schedule, "--pause-after", "0"]);
        world.ok(&["schedule", "resume", &schedule]);
        world.wait_for_state(&world.start_run(&schedule), "failed");
        let active = world.json(&["schedule", "show", &schedule])["schedule"]["status"].clone();
        assert_eq!(active, "active");
        daemon.stop();
    }
}

/// Two registered agents with the same agent of Letta, and a schedule for each.
#[test]
fn one_letta_agent_gets_one_prompt_at_a_time() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(50))]);
    let (world, first) = world(&server);
    let alias = ["agent", "add", "bob", "--backend", "letta", "--remote-id", "agent-123"];
    world.ok(&[&alias[..], &["--url", &server.url().replace("127.0.0.1", "localhost")]].concat());
    let second = schedule(&world, "bob", "and you?");
    let daemon = world.up();
    let runs: Vec<String> =
        (0..6).map(|n| world.start_run(if n % 2 == 0 { &first } else { &second })).collect();
    for run in &runs {
        let has_ended =
            |run: &Value| ["done", "cancelled", "failed"].contains(&run["state"].as_str().unwrap());
        world.wait_for_run(run, has_ended);
    }
    assert!(2 <= server.count("/messages"), "{:?}", server.asked());
    assert_eq!(server.most_at_work(), 1);
    daemon.stop();
}

#[test]
fn agent_test_reports_server_and_response() {
    let server = StandIn::new([Act::Say("ready".into()), Act::Stop("insufficient_credits")]);
    let (world, _) = world(&server);
    let tested = world.json(&["agent", "test", "ada"])["test"].clone();
    assert_eq!((&tested["passed"], &tested["said"]), (&true.into(), &"ready".into()), "{tested}");
    let seen = tested["server"].to_string();
    assert!(
        seen.contains("Letta 0.16.8") && seen.contains("it has agent `agent-123`, named `scout`"),
        "{seen}"
    );

    let daemon = world.up();
    let outcome = world.run(&["agent", "test", "ada", "--prompt", "still there?"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("insufficient_credits"), "{outcome:?}");
    world.add_agent("echo");
    assert_eq!(world.json(&["agent", "test", "echo", "--prompt", "a"])["test"]["said"], "a");
    world.refused(&["agent", "test", "nobody"], "not_found", 3);
    world.ok(&["freeze"]);
    world.refused(&["agent", "test", "echo"], "not_now", 4);
    daemon.stop();
    let tested = world.count_events("agent.tested");
    assert_eq!(tested, 3, "a refused test was recorded");
    world.verified();
}

/// `agent add` and `agent test` name the kind of server, and warn if the agent uses the API of the other.
#[test]
fn l7_agent_add_names_the_kind_of_server() {
    let v1 = "the V1 server, Letta 0.16.8";
    let app = "the App Server of Letta Code 0.34.12";
    let warning = "without approval";
    let (is_v1, is_app) = (format!("it is {v1}"), format!("it is {app}"));
    let (needs_rest, needs_openai) = (
        format!("the server is {v1}: it needs `--api rest`"),
        format!("the server is {app}: it needs `--api openai`"),
    );
    for (server, api, fact, problem, is_warned) in [
        (StandIn::new([]), "rest", Some(&is_v1), None, false),
        (StandIn::app_server([]), "openai", Some(&is_app), None, true),
        (StandIn::new([]), "openai", None, Some(&needs_rest), true),
        (StandIn::app_server([]), "rest", None, Some(&needs_openai), false),
    ] {
        let world = World::new();
        let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
        let added = world.run(&[&letta[..], &["--url", &server.url(), "--api", api]].concat());
        assert_eq!(added.code, Some(0), "{added:?}");
        let has_line = |text: &str, line: String| text.lines().any(|it| it == line);
        let is_told = |it: &String| has_line(&added.stdout, format!("server: {it}"));
        assert!(fact.is_none_or(is_told), "{added:?}");
        let is_told = |it: &String| has_line(&added.stderr, format!("warning: {it}"));
        assert!(problem.is_none_or(is_told), "{added:?}");
        assert_eq!(added.stdout.contains(warning), is_warned, "{added:?}");
        assert_eq!(server.asked().iter().filter(|it| it.method == "POST").count(), 0, "no prompt");
        let tested = world.run(&["--json", "agent", "test", "ada"]);
        let told = fact.or(problem).unwrap();
        assert!(tested.stdout.contains(told.as_str()), "{tested:?}");
    }
    // The agent is also added if no server responds.
    let world = World::new();
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    let added = world.run(&[&letta[..], &["--url", "http://127.0.0.1:9"]].concat());
    assert_eq!((added.code, added.stdout.lines().next()), (Some(0), Some(REGISTERED)), "{added:?}");
    let warning = "warning: http://127.0.0.1:9 refused the connection; is Letta running? `--url` names another";
    assert_eq!(added.stderr.lines().filter(|line| *line == warning).count(), 1, "{added:?}");
}

const REGISTERED: &str = "agent `ada` registered (letta, tier 1)";

/// Any server that answers 200 to everything, such as that of another program.
#[test]
fn a_server_that_is_not_lettas_is_named_so() {
    let (stub, _requests) =
        http_stub::serve(std::iter::repeat(http_stub::ok("<html>hello</html>")));
    let world = World::new();
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    let added = world.run(&[&letta[..], &["--url", &stub]].concat());
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stderr.contains("with something that is not Letta's API"), "{added:?}");
    let tested = world.run(&["agent", "test", "ada"]);
    assert_eq!(tested.code, Some(1), "{tested:?}");
    let failed = "x failed agent `ada`: the server answered something that is not Letta's API";
    assert!(tested.stdout.starts_with(failed), "{tested:?}");
}

/// A server that answers prompts, but describes its agents in a way of its own: the test passes, and says no other.
#[test]
fn a_passed_test_does_not_say_that_the_answer_is_wrong() {
    let (list, health) = ("[]", r#"{"version": "0.16.8"}"#);
    let answer = r#"{"messages": [{"message_type": "assistant_message", "content": "ready"}],
        "stop_reason": {"stop_reason": "end_turn"}}"#;
    let responses = [list, health, list, health, answer].map(http_stub::ok);
    let (server, _requests) = http_stub::serve(responses);
    let world = World::new();
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    world.run(&[&letta[..], &["--url", &server]].concat());
    let tested = world.run(&["agent", "test", "ada"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(
        tested.stdout.starts_with("agent `ada` works: it answered what is below"),
        "{tested:?}"
    );
    let warning = "warning: the server answered `GET /v1/agents/agent-123` with something that is not Letta's \
                   API; the prompt worked all the same";
    assert!(tested.stdout.contains(warning), "{tested:?}");
}

/// The server repeats the key in responses, errors and redirects; it appears nowhere but in the requests.
#[test]
fn g4_letta_key_is_in_no_file_and_no_output() {
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
    let mut output = String::new();
    for state in ["done", "failed", "failed", "unknown"] {
        let run = world.start_run(&schedule_id);
        world.wait_for_state(&run, state);
        output += &world.ok(&["run", "show", &run]);
    }
    let run = world.start_run(&schedule(&world, "hook", "go"));
    world.wait_for_state(&run, "done");
    output += &world.ok(&["run", "show", &run]);
    let called = server.asked().pop().unwrap();
    assert!(
        called.header("midwatch-signature").is_some() && called.header("authorization").is_none()
    );
    for arguments in [&["agent", "test", "ada"][..], &["agent", "show", "ada"], &["ledger", "tail"]]
    {
        let outcome = world.run(arguments);
        output += &format!("{}{}", outcome.stdout, outcome.stderr);
    }
    output += &std::fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    let stderr = daemon.stop();
    world.ok(&["ledger", "export"]);
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for secret in [KEY, &hex] {
        assert!(!output.contains(secret) && !stderr.contains(secret), "{output}\n{stderr}");
        assert_eq!(files_with(world.root(), secret, &[]), Vec::<String>::new());
    }
    assert!(output.contains("env:LETTA_KEY"), "the reference is missing");
}

/// A webhook needs approval by default, and reaches private addresses only if the operator allows it.
#[test]
fn webhook_needs_approval_and_cannot_reach_private_addresses() {
    let server = StandIn::new([]);
    let world = World::new();
    let hook = ["agent", "add", "hook", "--backend", "webhook", "--url", &server.url()];
    world.ok(&hook);
    let daily = schedule(&world, "hook", "go");
    let daemon = world.up();
    let run = world.start_run(&daily);
    world.wait_for_state(&run, "waiting_permission");
    world.ok(&["agent", "edit", "hook", "--tier", "1"]);
    world.ok(&["run", "cancel", &run]);
    let run = world.start_run(&daily);
    let shown = world.wait_for_state(&run, "failed");
    assert_eq!(shown["reason"], "not_allowed");
    assert!(server.asked().is_empty());
    world.ok(&["agent", "edit", "hook", "--allow-private"]);
    world.wait_for_state(&world.start_run(&daily), "done");
    assert_eq!(server.asked().len(), 1);
    world.ok(&["agent", "edit", "hook", "--public-only"]);
    world.wait_for_state(&world.start_run(&daily), "failed");
    daemon.stop();
}
