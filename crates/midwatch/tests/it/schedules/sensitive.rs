//! Sensitive schedules: only the agent and operators see the prompt and the output; no file, list, log line or
//! export contains them.

use std::fs;

use serde_json::{Value, json};

use crate::access::secrets::files_with;
use crate::support::stand_in::{Act, StandIn, with_status};
use crate::support::wait::wait_until;
use crate::support::world::{World, daily};

const FIRST: &str = "sentinel-a41c: tell ada what the doctor said";
const SECOND: &str = "sentinel-b52d: and what it costs";
const SENTINELS: [&str; 2] = ["sentinel-a41c", "sentinel-b52d"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// Output that must not contain a sentinel.
#[derive(Default)]
struct Output(String);

impl Output {
    /// Runs a command twice, for people and as JSON, with or without a token. Returns the document.
    fn run(&mut self, world: &World, token: Option<&str>, arguments: &[&str]) -> Value {
        let mut command = world.command();
        command.envs(token.map(|token| ("MIDWATCH_TOKEN", token)));
        let human = command.args(arguments).output().unwrap();
        let json = command.arg("--json").output().unwrap();
        for bytes in [human.stdout, human.stderr, json.stdout.clone(), json.stderr] {
            self.0 += &String::from_utf8(bytes).unwrap();
        }
        serde_json::from_slice(&json.stdout).unwrap_or_default()
    }
}

fn add<'a>(name: &'a str, agent: &'a str, prompt: &'a str) -> Vec<&'a str> {
    [&["schedule", "add"], &daily(name, agent, prompt)[..], &["--sensitive"]].concat()
}

#[test]
fn sensitive_prompt_reaches_its_agent_and_is_in_no_file_and_no_output() {
    let echo = |status| Act::Raw(with_status(status, "", &format!("no: {FIRST} {SECOND}")));
    let server = StandIn::new([
        Act::Say(format!("heard: {FIRST}")),
        echo(422),
        echo(200),
        Act::Stop("end_turn"),
    ]);
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let notices = world.root().join("notices.txt");
    let hook = json!(["sh", "-c", r#"cat >> "$0""#, notices]).to_string();
    world.set("MIDWATCH_NOTICE_COMMAND", hook);
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-123"];
    world.ok(&[&letta[..], &["--url", &server.url()]].concat());
    world.add_agent("echo");
    let (_, observer) = world.create_token("eve", "observer");
    let mut output = Output::default();

    // Adding it again adds nothing, although the stored prompt is sealed.
    let added = world.json(&add("visit", "ada", FIRST));
    let schedule = text(&added["schedule"]["id"]);
    assert_eq!((&added["created"], &added["schedule"]["sensitive"]), (&true.into(), &true.into()));
    assert_eq!(output.run(&world, None, &add("visit", "ada", FIRST))["created"], false);
    let daemon = world.up();
    let echoing = text(&output.run(&world, None, &add("echo", "echo", SECOND))["schedule"]["id"]);

    let run = world.start_run(&schedule);
    let shown = world.wait_for_state(&run, "done");
    assert_eq!(shown["output"]["text"], format!("heard: {FIRST}\n"), "operators see it");
    let long = world.start_run(&echoing);
    assert_eq!(world.wait_for_state(&long, "done")["output"]["text"], SECOND);

    // A failure shows only its code, because the server's message repeats the prompt.
    let run = world.start_run(&schedule);
    let failed = world.wait_for_state(&run, "failed");
    assert_eq!(failed["reason"], "request_refused");
    output.0 += &failed.to_string();
    let run = world.start_run(&schedule);
    output.0 += &world.wait_for_state(&run, "unknown").to_string();
    output.run(&world, None, &["run", "watch", &run]);

    let edited = output.run(&world, None, &["schedule", "edit", &schedule, "--prompt", SECOND]);
    assert_eq!(edited["changed"], false, "the first of both commands edited it: {edited}");
    daemon.kill();
    let daemon = world.up();
    let run = world.start_run(&schedule);
    world.wait_for_state(&run, "done");
    let sent: Vec<String> = server.asked().iter().map(|request| request.body.clone()).collect();
    let count = |prompt: &str| sent.iter().filter(|body| body.contains(prompt)).count();
    assert_eq!((count(FIRST), count(SECOND)), (3, 1), "{sent:?}");

    // The approver sees the prompt.
    world.ok(&["agent", "edit", "echo", "--tier", "2"]);
    let run = world.start_run(&echoing);
    let approval = text(&world.wait_for_state(&run, "waiting_permission")["approval_id"]);
    assert!(world.ok(&["approval", "show", &approval]).contains(&format!("  | {SECOND}")));
    output.run(&world, Some(&observer), &["approval", "show", &approval]);
    output.run(&world, None, &["approval", "list"]);
    wait_until(|| fs::read_to_string(&notices).is_ok_and(|text| text.contains(&approval)));
    world.approve(&approval);
    world.wait_for_state(&run, "done");
    world.ok(&["agent", "edit", "echo", "--tier", "1"]);

    assert_eq!(
        world.json(&["schedule", "show", &schedule])["schedule"]["action"]["prompt"],
        SECOND
    );
    let hidden = output.run(&world, Some(&observer), &["schedule", "show", &schedule]);
    assert_eq!(hidden["schedule"]["sensitive"], true, "{hidden}");
    for arguments in [
        &["schedule", "list"][..],
        &["run", "list"],
        &["ledger", "tail", "--limit", "1000"],
        &["approval", "list", "--all"],
        &["promptyoself", "list", "--all"],
        &["status"],
        &["why", &schedule],
        &["schedule", "pause", &schedule],
        &["schedule", "resume", &schedule],
        &["schedule", "fire", &echoing],
        &["ledger", "rebuild"],
        &["ledger", "export"],
    ] {
        output.run(&world, None, arguments);
        output.run(&world, Some(&observer), arguments);
    }
    output.run(&world, Some(&observer), &["run", "show", &long]);
    output.0 += &fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    output.0 += &daemon.stop();
    world.ok(&["ledger", "export"]);
    world.ok(&["ledger", "rebuild"]);
    world.verified();
    assert_eq!(
        world.json(&["schedule", "show", &schedule])["schedule"]["action"]["prompt"],
        SECOND
    );
    for sentinel in SENTINELS {
        let leaks: Vec<&str> = output.0.lines().filter(|line| line.contains(sentinel)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
        assert_eq!(files_with(world.root(), sentinel, &[]), Vec::<String>::new());
    }
}

/// Without `sealing.key` the prompt can be neither shown nor sent.
#[test]
fn sensitive_run_fails_without_the_sealing_key() {
    let world = World::new();
    world.add_agent("echo");
    let schedule = text(&world.json(&add("visit", "echo", FIRST))["schedule"]["id"]);
    let (key, aside) = (world.data().join("sealing.key"), world.root().join("aside"));
    fs::rename(&key, &aside).unwrap();
    world.refused(&["schedule", "show", &schedule], "key_missing", 4);
    world.refused(&["schedule", "edit", &schedule, "--unset", "sensitive"], "key_missing", 4);
    let daemon = world.up();
    let run = world.start_run(&schedule);
    let failed = world.wait_for_state(&run, "failed");
    assert_eq!((&failed["reason"], &failed["output"]), (&"words_unreadable".into(), &Value::Null));
    assert!(text(&failed["message"]).ends_with("sealing.key` does not exist"), "{failed}");
    fs::rename(&aside, &key).unwrap();
    let run = world.start_run(&schedule);
    assert_eq!(world.wait_for_state(&run, "done")["output"]["text"], FIRST);
    daemon.stop();
}

#[test]
fn schedule_is_made_sensitive_and_plain_again() {
    let world = World::new();
    world.add_agent("echo");
    let mut plain = add("visit", "echo", "hello");
    assert_eq!(plain.pop(), Some("--sensitive"));
    let id = text(&world.json(&plain)["schedule"]["id"]);
    let edit = |flags: &[&str]| world.json(&[&["schedule", "edit", &id], flags].concat());
    let shown = || world.json(&["schedule", "show", &id])["schedule"].clone();
    let listed = || world.json(&["schedule", "list"])["schedules"][0].clone();

    assert_eq!(edit(&["--sensitive"])["changed"], true);
    assert_eq!(edit(&["--sensitive"])["changed"], false);
    assert_eq!(
        edit(&["--name", "other"])["schedule"]["sensitive"],
        true,
        "the edit made it readable"
    );
    assert_eq!(
        (&listed()["action"], &shown()["action"]["prompt"]),
        (&json!({"agent": "echo"}), &"hello".into(),)
    );
    assert!(world.ok(&["schedule", "show", &id]).contains("sensitive      yes"));
    assert_eq!(edit(&["--prompt", "hello again"])["schedule"]["sensitive"], true);
    assert_eq!(shown()["action"]["prompt"], "hello again");
    assert_eq!(edit(&["--unset", "sensitive"])["changed"], true);
    assert_eq!(listed()["action"]["prompt"], "hello again");

    let tool = ["schedule", "add", "--name", "mail", "--every", "1h", "--tool", "run_list"];
    let payload = ["--payload", r#"{"limit": 5}"#, "--sensitive"];
    let tool = world.json(&[&tool[..], &payload].concat())["schedule"].clone();
    assert_eq!((&tool["action"], &tool["sensitive"]), (&json!({"tool": "run_list"}), &true.into()));
    let id = text(&tool["id"]);
    let shown = world.json(&["schedule", "show", &id])["schedule"]["action"].clone();
    assert_eq!(shown["payload"], r#"{"limit":5}"#);

    let empty = add("visit", "echo", " ");
    assert!(world.refused(&empty, "invalid_input", 2).starts_with("the prompt is empty"));
}

/// Every user of the machine can read the arguments of a program.
#[test]
fn sensitive_prompt_is_never_passed_as_an_argument() {
    let world = World::new();
    let effect = world.root().join("effect").display().to_string();
    let cat = ["agent", "add", "cat", "--backend", "command", "--prompt-as"];
    let program = ["--", "/bin/sh", "-c", r#"touch "$0""#, &effect];
    world.ok(&[&cat[..], &["argument"], &program].concat());
    let refused = world.refused(&add("visit", "cat", FIRST), "invalid_input", 2);
    assert!(refused.contains("as an argument"), "{refused}");
    world.ok(&["agent", "edit", "cat", "--prompt-as", "stdin"]);
    let schedule = text(&world.json(&add("visit", "cat", FIRST))["schedule"]["id"]);
    world.ok(&["agent", "edit", "cat", "--prompt-as", "argument"]);
    let daemon = world.up();
    let run = world.start_run(&schedule);
    assert_eq!(world.wait_for_state(&run, "failed")["reason"], "not_allowed");
    assert!(!fs::exists(&effect).unwrap(), "the program was started");
    daemon.stop();
}
