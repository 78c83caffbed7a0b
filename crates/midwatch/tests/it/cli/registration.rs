//! What `agent add`, `agent edit` and schedules say about an agent that cannot work.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::world::{Outcome, World};

fn command_agent<'a>(name: &'a str, flags: &[&'a str], program: &'a str) -> Vec<&'a str> {
    [&["agent", "add", name, "--backend", "command"], flags, &["--", program]].concat()
}

/// The warnings of a command that did its work.
fn warnings(outcome: &Outcome) -> Vec<&str> {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let lines = outcome.stderr.lines();
    lines.filter_map(|line| line.strip_prefix("warning: ")).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn missing_parts_are_warnings_and_the_agent_is_registered() {
    let world = World::new();
    let root = world.root().to_str().unwrap().to_owned();
    let at = |name: &str| format!("{root}/{name}");
    let (file, tool, nothing) = (at("file"), at("tool"), at("nothing"));
    fs::write(&file, "text").unwrap();
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    for (flags, program, expected) in [
        (&[][..], tool.as_str(), None),
        (&[], "sh", None),
        (&["--cwd", &root], "./tool", None),
        (&[], "no-such-program", Some("this shell finds no program `no-such-program` in its PATH".to_owned())),
        (&[], &nothing, Some(format!("the program `{nothing}` does not exist"))),
        (&[], &file, Some(format!("`{file}` is not executable"))),
        (&[], &root, Some(format!("`{root}` is a directory, not a program"))),
        (&["--cwd", &nothing], "sh", Some(format!("the directory `{nothing}` does not exist"))),
        (&["--cwd", &file], "sh", Some(format!("`{file}` is not a directory"))),
        (&["--env", "NOT_SET"], "sh", Some("no daemon runs, and this shell has no variable `NOT_SET`; set it before `midwatch up`".to_owned())),
    ] {
        let added = world.run(&command_agent("ada", flags, program));
        let expected: Vec<&str> = expected.as_deref().into_iter().collect();
        assert_eq!(warnings(&added), expected, "{flags:?} {program}");
        assert_eq!(added.stdout, "agent `ada` registered (command, tier 1)\n");
        // The same by an edit that changes nothing, and for programs.
        assert_eq!(warnings(&world.run(&["agent", "edit", "ada", "--tier", "1"])), expected);
        let edited = world.json(&["agent", "edit", "ada", "--tier", "1"]);
        assert_eq!(texts(&edited["warnings"]), expected);
        world.ok(&["agent", "remove", "ada"]);
    }
    let script = ["agent", "add", "ada", "--backend", "builtin", "--script", &nothing];
    let added = world.json(&script);
    let expected = format!("the script `{nothing}` cannot be read: ");
    assert!(texts(&added["warnings"])[0].starts_with(&expected), "{added}");
}

/// The daemon prompts the agent, so its environment counts, not that of the command.
#[test]
fn the_environment_of_the_daemon_counts() {
    let mut world = World::new();
    let bin = world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("mine"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bin.join("mine"), fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", "/usr/bin:/bin");
    let daemon = world.up();
    let pid = daemon.pid();
    world.set("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    world.set("LETTA_API_KEY", "a key that only the shell has");
    let added = world.run(&command_agent("ada", &["--env", "LETTA_API_KEY"], "mine"));
    let no_variable = format!(
        "the daemon (pid {pid}) has no variable `LETTA_API_KEY`; set it there and restart the daemon"
    );
    let no_program =
        format!("the daemon (pid {pid}) finds no program `mine` in its PATH (/usr/bin:/bin)");
    assert_eq!(warnings(&added), [no_program.as_str(), no_variable.as_str()]);
    let tested = world.run(&["agent", "test", "ada"]);
    assert_eq!(tested.code, Some(1));
    assert!(
        tested.stdout.starts_with(&format!("x failed agent `ada`: {no_program} [")),
        "{tested:?}"
    );

    // The url refuses connections on any machine; the missing secret is told first, and once.
    let letta = ["agent", "add", "bob", "--backend", "letta", "--remote-id", "a", "--url"];
    let letta = [&letta[..], &["http://127.0.0.1:9", "--credential", "env:LETTA_API_KEY"]].concat();
    assert_eq!(warnings(&world.run(&letta)), [no_variable.as_str()]);
    let file = format!("file:{}", bin.join("key").display());
    let edited = world.run(&["agent", "edit", "bob", "--credential", &file]);
    let expected =
        format!("the daemon (pid {pid}) cannot read the secret file `{}/key`: ", bin.display());
    assert!(warnings(&edited)[0].starts_with(&expected), "{edited:?}");
    fs::write(bin.join("key"), "\n").unwrap();
    let edited = world.run(&["agent", "edit", "bob", "--credential", &file]);
    assert_eq!(warnings(&edited), [format!("the secret file `{}/key` is empty", bin.display())]);
    fs::write(bin.join("key"), "a key\n").unwrap();
    let refused =
        "http://127.0.0.1:9 refused the connection; is Letta running? `--url` names another";
    assert_eq!(warnings(&world.run(&["agent", "edit", "bob", "--credential", &file])), [refused]);
    drop(daemon);

    // Without a daemon this process would prompt it.
    let edited = world.run(&["agent", "edit", "ada", "--tier", "1"]);
    assert_eq!(warnings(&edited), Vec::<&str>::new(), "{edited:?}");
}

/// The egress rules of a prompt decide where to connect.
#[test]
fn a_webhook_that_cannot_be_reached_is_a_warning() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let open = format!("http://{}/hook", listener.local_addr().unwrap());
    let hook = |name, url| ["agent", "add", name, "--backend", "webhook", "--url", url];
    let private = |name, url| [&hook(name, url)[..], &["--allow-private"]].concat();

    // The port refuses connections on any machine.
    let added = world.run(&private("bob", "http://127.0.0.1:9/secret-path"));
    let refused = "http://127.0.0.1:9 refused the connection; `--url` names another";
    assert_eq!(warnings(&added), [refused]);
    assert_eq!(added.stdout, "agent `bob` registered (webhook, tier 2)\n");
    assert!(!added.stderr.contains("agent test"), "tier 2 is not tested: {added:?}");
    let forbidden = format!(
        "no request goes to {}: 127.0.0.1 is an address of this machine; `--allow-private` allows it",
        open.trim_end_matches("/hook")
    );
    assert_eq!(warnings(&world.run(&hook("ada", &open))), [forbidden.as_str()]);
    assert!(listener.accept().is_err(), "nothing connected to the forbidden address");

    let none: [&str; 0] = [];
    assert_eq!(warnings(&world.run(&private("eve", &open))), none);
    let (mut connection, _) = listener.accept().unwrap();
    let mut sent = Vec::new();
    connection.read_to_end(&mut sent).unwrap();
    assert_eq!(sent, b"", "a request could have an effect");
}

#[test]
fn schedules_repeat_the_warnings_about_their_agent() {
    let world = World::with_agent("works");
    world.run(&command_agent("ada", &[], "no-such-program"));
    let problem = "agent `ada`: this shell finds no program `no-such-program` in its PATH";
    let hourly = |name: &'static str, agent: &'static str| {
        ["schedule", "add", "--name", name, "--every", "1h", "--agent", agent, "--prompt", "go"]
    };
    assert_eq!(texts(&world.json(&hourly("good", "works"))["warnings"]), Vec::<&str>::new());
    let dry = [&hourly("bad", "ada")[..], &["--dry-run"]].concat();
    assert_eq!(texts(&world.json(&dry)["warnings"]), [problem]);
    assert!(world.ok(&hourly("bad", "ada")).contains(&format!("\nwarning: {problem}\n")));
    let edit = ["schedule", "edit", "good", "--agent", "ada"];
    assert_eq!(texts(&world.json(&edit)["warnings"]), [problem]);

    // One warning for all schedules of an agent in a list.
    let list = world.root().join("list.json");
    let schedule = |name: &str| {
        serde_json::json!({
            "name": name, "when": {"every": "2h"}, "action": {"agent": "ada", "prompt": "go"},
        })
    };
    fs::write(&list, serde_json::json!([schedule("a"), schedule("b")]).to_string()).unwrap();
    let added = world.json(&["schedule", "add", "--file", list.to_str().unwrap()]);
    assert_eq!(texts(&added["schedules"][0]["warnings"]), [problem]);
    assert_eq!(texts(&added["schedules"][1]["warnings"]), Vec::<&str>::new());
}
