//! Sensitive schedules: what they tell is known to whoever is told, to operators and to nobody else; whatever
//! is written, listed, logged, exported or said of them does not show it.

use std::fs;

use serde_json::{Value, json};

use crate::secrets::files_with;
use crate::stand_in::{Act, StandIn, with_status};
use crate::world::{World, wait_for};

const FIRST: &str = "sentinel-a41c: tell ada what the doctor said";
const SECOND: &str = "sentinel-b52d: and what it costs";
const SENTINELS: [&str; 2] = ["sentinel-a41c", "sentinel-b52d"];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// All that was said where it must not be.
#[derive(Default)]
struct Heard(String);

impl Heard {
    /// What a command says, with a token or without.
    fn run(&mut self, world: &World, token: Option<&str>, arguments: &[&str]) -> Value {
        let mut command = world.command();
        command.envs(token.map(|token| ("MIDWATCH_TOKEN", token)));
        let human = command.args(arguments).output().unwrap();
        let told = command.arg("--json").output().unwrap();
        for bytes in [human.stdout, human.stderr, told.stdout.clone(), told.stderr] {
            self.0 += &String::from_utf8(bytes).unwrap();
        }
        serde_json::from_slice(&told.stdout).unwrap_or_default()
    }
}

fn started(world: &World, schedule: &str) -> String {
    text(&world.json(&["run", "start", schedule])["run"]["id"])
}

fn once(world: &World, run: &str, state: &str) -> Value {
    wait_for(|| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == state).then_some(shown)
    })
}

fn add<'a>(name: &'a str, agent: &'a str, prompt: &'a str) -> Vec<&'a str> {
    let when = ["schedule", "add", "--name", name, "--daily", "03:00", "--tz", "UTC"];
    [&when[..], &["--agent", agent, "--prompt", prompt, "--sensitive"]].concat()
}

#[test]
fn what_is_sensitive_reaches_its_agent_and_is_written_nowhere() {
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
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let create = ["token", "create", "--name", "eve", "--role", "observer"];
    let observer = text(&world.json(&create)["token"]["secret"]);
    let mut heard = Heard::default();

    // Added again it is the same one, though nobody can compare the words.
    let added = world.json(&add("visit", "ada", FIRST));
    let schedule = text(&added["schedule"]["id"]);
    assert_eq!((&added["created"], &added["schedule"]["sensitive"]), (&true.into(), &true.into()));
    assert_eq!(heard.run(&world, None, &add("visit", "ada", FIRST))["created"], false);
    let daemon = world.up();
    let echoing = text(&heard.run(&world, None, &add("echo", "echo", SECOND))["schedule"]["id"]);

    let run = started(&world, &schedule);
    let shown = once(&world, &run, "done");
    assert_eq!(shown["output"]["text"], format!("heard: {FIRST}\n"), "operators see it");
    let long = started(&world, &echoing);
    assert_eq!(once(&world, &long, "done")["output"]["text"], SECOND);

    // A failure is told by its code: what the server said about it repeats the words.
    let run = started(&world, &schedule);
    let failed = once(&world, &run, "failed");
    assert_eq!(failed["reason"], "request_refused");
    heard.0 += &failed.to_string();
    let run = started(&world, &schedule);
    heard.0 += &once(&world, &run, "unknown").to_string();
    heard.run(&world, None, &["run", "watch", &run]);

    let edited = heard.run(&world, None, &["schedule", "edit", &schedule, "--prompt", SECOND]);
    assert_eq!(edited["changed"], false, "the first of both did it: {edited}");
    daemon.kill();
    let daemon = world.up();
    let run = started(&world, &schedule);
    once(&world, &run, "done");
    let sent: Vec<String> = server.asked().iter().map(|asked| asked.body.clone()).collect();
    let told = |words: &str| sent.iter().filter(|body| body.contains(words)).count();
    assert_eq!((told(FIRST), told(SECOND)), (3, 1), "{sent:?}");

    // Whoever has to say yes sees to what.
    world.ok(&["agent", "edit", "echo", "--tier", "2"]);
    let run = started(&world, &echoing);
    let approval = text(&once(&world, &run, "waiting_permission")["approval_id"]);
    assert!(world.ok(&["approval", "show", &approval]).contains(&format!("  | {SECOND}")));
    heard.run(&world, Some(&observer), &["approval", "show", &approval]);
    heard.run(&world, None, &["approval", "list"]);
    wait_for(|| fs::read_to_string(&notices).ok().filter(|told| told.contains(&approval)));
    world.ok(&["approval", "approve", &approval]);
    once(&world, &run, "done");
    world.ok(&["agent", "edit", "echo", "--tier", "1"]);

    assert_eq!(
        world.json(&["schedule", "show", &schedule])["schedule"]["action"]["prompt"],
        SECOND
    );
    let hidden = heard.run(&world, Some(&observer), &["schedule", "show", &schedule]);
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
        heard.run(&world, None, arguments);
        heard.run(&world, Some(&observer), arguments);
    }
    heard.run(&world, Some(&observer), &["run", "show", &long]);
    heard.0 += &fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    heard.0 += &said;
    world.ok(&["ledger", "export"]);
    world.ok(&["ledger", "rebuild"]);
    world.verified();
    assert_eq!(
        world.json(&["schedule", "show", &schedule])["schedule"]["action"]["prompt"],
        SECOND
    );
    for sentinel in SENTINELS {
        let told: Vec<&str> = heard.0.lines().filter(|line| line.contains(sentinel)).collect();
        assert!(told.is_empty(), "{told:#?}");
        assert_eq!(files_with(world.root(), sentinel, &[]), Vec::<String>::new());
    }
}

/// The file is all that it takes, and nothing works without it.
#[test]
fn without_the_key_nothing_is_told_and_nobody_is_told_anything_else() {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let schedule = text(&world.json(&add("visit", "echo", FIRST))["schedule"]["id"]);
    let (key, aside) = (world.data().join("sealing.key"), world.root().join("aside"));
    fs::rename(&key, &aside).unwrap();
    world.refused(&["schedule", "show", &schedule], "key_missing", 4);
    world.refused(&["schedule", "edit", &schedule, "--unset", "sensitive"], "key_missing", 4);
    let daemon = world.up();
    let run = started(&world, &schedule);
    let failed = once(&world, &run, "failed");
    assert_eq!((&failed["reason"], &failed["output"]), (&"words_unreadable".into(), &Value::Null));
    assert!(text(&failed["message"]).ends_with("sealing.key` is not there"), "{failed}");
    fs::rename(&aside, &key).unwrap();
    let run = started(&world, &schedule);
    assert_eq!(once(&world, &run, "done")["output"]["text"], FIRST);
    assert_eq!(daemon.stop().0, Some(0));
}

#[test]
fn a_schedule_becomes_sensitive_and_is_so_no_more() {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let mut plain = add("visit", "echo", "hello");
    assert_eq!(plain.pop(), Some("--sensitive"));
    let id = text(&world.json(&plain)["schedule"]["id"]);
    let edit = |flags: &[&str]| world.json(&[&["schedule", "edit", &id], flags].concat());
    let shown = || world.json(&["schedule", "show", &id])["schedule"].clone();
    let listed = || world.json(&["schedule", "list"])["schedules"][0].clone();

    assert_eq!(edit(&["--sensitive"])["changed"], true);
    assert_eq!(edit(&["--sensitive"])["changed"], false);
    assert_eq!(edit(&["--name", "other"])["schedule"]["sensitive"], true, "it stays so");
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
    assert!(world.refused(&empty, "invalid_input", 2).starts_with("a prompt is not empty"));
}

/// Everybody on a machine can read the arguments of a program.
#[test]
fn what_is_sensitive_is_no_argument_of_a_program() {
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
    let run = started(&world, &schedule);
    assert_eq!(once(&world, &run, "failed")["reason"], "not_allowed");
    assert!(!fs::exists(&effect).unwrap(), "nothing was started");
    assert_eq!(daemon.stop().0, Some(0));
}
