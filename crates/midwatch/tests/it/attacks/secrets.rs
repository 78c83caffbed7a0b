//! What an agent can read has no credential of a person.

use std::fs;

use crate::access::secrets::files_with;
use crate::approvals::setup::{add_tier_2_schedule, request_approval};
use crate::support::world::World;

/// Prints what the program can find: its own and the daemon's variables, command lines, and every file of the data
/// directory.
const SEARCH: &str = r#"
env
for process in $$ $PPID; do tr '\0' '\n' < /proc/$process/environ; tr '\0' ' ' < /proc/$process/cmdline; done
find "$1" -type f -exec cat {} +
echo searched
"#;

#[test]
fn b3_program_finds_no_token_of_a_person() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    world.add_agent("echo");
    let (_, secret) = world.create_token("ada", "maintainer");
    let script = world.root().join("search.sh");
    fs::write(&script, SEARCH).unwrap();
    let daemon = world.up();
    // The token is used for a decision, so it has been everywhere that a token goes.
    let schedule = add_tier_2_schedule(&world, Some(&secret));
    let (run, approval) = request_approval(&world, &schedule);
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    assert_eq!(world.code_as(&secret, &approve), "ok");
    world.wait_for_state(&run, "done");

    let program = ["--", "sh", script.to_str().unwrap(), world.data().to_str().unwrap()];
    world.ok(&[&["agent", "add", "eve", "--backend", "command"], &program[..]].concat());
    let run = world.start_run(&world.add_daily("search", "eve", "hello"));
    let output = world.wait_for_state(&run, "done")["output"].clone();
    let bytes = fs::read(output["file"].as_str().unwrap()).unwrap();
    let found = String::from_utf8_lossy(&bytes);
    assert!(found.trim_end().ends_with("searched"), "the search was cut off");
    assert!(found.contains("MIDWATCH_RUN_ID="), "the search has no variables");
    // The output is redacted too, so look at the files themselves.
    assert!(!found.contains(&secret));
    assert!(!found.contains("mwt_[redacted]"), "a token was found and redacted");
    daemon.stop();
    let files = crate::access::secrets::files_with(world.root(), &secret, &[]);
    assert_eq!(files, Vec::<String>::new());
}

/// Wherever a url is given, a password in it is refused, and is in no file and no output.
#[test]
fn credentials_in_a_url_are_refused_and_not_repeated() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    world.ok(&["agent", "add", "ada", "--backend", "webhook", "--url", "https://127.0.0.1:9/x"]);
    let forms = [
        "https://me:hunter22@x",
        "https://hunter22@x",
        "https://me:hunter22/a@x",
        r"https://me:hunter22\a@x",
        "https://me%3Ahunter22%40x",
    ];
    let add = |name, backend, more: &[&'static str]| {
        let add: [&'static str; 5] = ["agent", "add", name, "--backend", backend];
        [&add[..], more].concat()
    };
    let commands = [
        vec!["agent", "edit", "ada"],
        add("bob", "webhook", &[]),
        add("bob", "letta", &["--remote-id", "agent-1"]),
    ];
    let mut daemon = None;
    for has_daemon in [false, true] {
        daemon = has_daemon.then(|| world.up());
        for form in forms {
            for command in &commands {
                let arguments = [&command[..], &["--url", form]].concat();
                let error = world.refused(&arguments, "invalid_input", 2);
                assert!(error.contains("the url contains credentials"), "{arguments:?}: {error}");
                assert!(error.contains("--credential"), "{arguments:?}: {error}");
                assert!(!error.contains("hunter22"), "{arguments:?}: {error}");
            }
        }
    }
    drop(daemon);
    for form in forms {
        let list = ["promptyoself", "agents"];
        let variables = [("LETTA_BASE_URL", form)];
        let output = world.command().envs(variables).args(list).output().unwrap();
        let output = [output.stdout, output.stderr].concat();
        let output = String::from_utf8_lossy(&output);
        assert!(output.contains("the url contains credentials"), "{form}: {output}");
        assert!(!output.contains("hunter22"), "{form}: {output}");
    }
    for (key, form) in forms.map(|form| ("notice.url", form)).into_iter().chain([
        ("store.url", "postgres://me:hunter22@x/db"),
        ("store.url", "postgres://me:hunter22/a@x/db"),
        ("store.url", "postgres://me%3Ahunter22@x/db"),
    ]) {
        let file = world.root().join("wrong.toml");
        fs::write(&file, format!("{key} = '{form}'\n")).unwrap();
        for command in [&["config", "check"][..], &["config", "show"], &["status"], &["up"]] {
            for format in [&[][..], &["--json"]] {
                let file = ["--config", file.to_str().unwrap()];
                let outcome = world.run(&[format, &file[..], command].concat());
                let output = format!("{}{}", outcome.stdout, outcome.stderr);
                assert_eq!(outcome.code, Some(2), "{form} {command:?}: {output}");
                assert!(output.contains(key), "{form} {command:?}: {output}");
                assert!(!output.contains("hunter22"), "{form} {command:?}: {output}");
            }
        }
    }
    assert_eq!(files_with(world.root(), "hunter22", &["wrong.toml"]), Vec::<String>::new());
    assert_eq!(world.agents(), ["ada"]);
}
