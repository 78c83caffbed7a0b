//! `midwatch agent …`

use crate::support::transcript::Transcript;
use crate::support::world::World;

#[test]
fn agents_are_added_edited_shown_and_removed() {
    let world = World::new();
    drop(world.up());
    let mut transcript = Transcript::new(&world);
    // Refuses connections on any machine.
    let url = "http://127.0.0.1:9";
    let letta =
        ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-1", "--url", url];
    let hook = "http://127.0.0.1:9/hook";
    let other = "http://127.0.0.1:9/other";
    transcript
        .both(&["agent", "list"])
        .run(&letta)
        .run(&letta)
        .run(&["--json", "agent", "add", "bob", "--backend", "command", "--", "echo", "a b"])
        .run(&["--json", "agent", "add", "bob", "--backend", "command", "--", "echo", "a b"])
        .run(&["agent", "add", "cleo", "--backend", "webhook", "--url", other])
        .run(&["agent", "add", "dora", "--backend", "webhook", "--url", hook, "--tier", "1"])
        .run(&["agent", "add", "eve", "--backend", "builtin", "--credential", "env:EVE_KEY"])
        .run(&["agent", "add", "fay", "--backend", "command", "--tier", "2", "--", "cat", "-u"])
        .both(&["agent", "list"])
        .both(&["agent", "show", "ada"])
        .both(&["agent", "show", "bob"])
        .run(&["agent", "show", "eve"])
        .run(&["agent", "edit", "ada", "--tier", "2"])
        .run(&["agent", "edit", "ada", "--tier", "2"])
        .run(&["--json", "agent", "edit", "ada", "--remote-id", "agent-2"])
        .run(&["--json", "agent", "edit", "ada", "--remote-id", "agent-2"])
        .run(&["agent", "edit", "eve", "--no-credential"])
        .run(&["agent", "edit", "bob", "--backend", "builtin"])
        .run(&["agent", "show", "bob"])
        .run(&["agent", "remove", "ada"])
        .run(&["--json", "agent", "remove", "bob"])
        .both(&["agent", "list", "--limit", "2"])
        .both(&["agent", "list", "--limit", "2", "--cursor", "dora"]);
    insta::assert_snapshot!("agent", transcript.finish());
}

/// `agent remove` names the schedules that still need the agent.
#[test]
fn agent_remove_names_the_schedules_of_the_agent() {
    let world = World::new();
    let add = ["agent", "add", "ada", "--backend", "builtin"];
    world.ok(&add);
    assert_eq!(world.ok(&["agent", "remove", "ada"]).trim(), "agent `ada` removed");
    world.ok(&add);
    let nightly = ["--every", "1h", "--agent", "ada", "--prompt", "go on"];
    world.ok(&[&["schedule", "add", "--name", "nightly"], &nightly[..]].concat());
    let output = world.ok(&["agent", "remove", "ada"]);
    assert!(output.contains("; schedule `nightly` (sch_"), "{output}");
    assert!(output.contains("`midwatch schedule list --agent ada` lists all of them"), "{output}");
}

#[test]
fn flags_of_a_command_agent_are_stored_and_validated() {
    let mut world = World::new();
    world.set("CODEX_API_KEY", "a key");
    world.set("SSL_CERT_FILE", "a file");
    let [work, script] = ["work", "answers.toml"].map(|name| world.root().join(name));
    std::fs::create_dir(&work).unwrap();
    std::fs::write(&script, "[[answer]]\n").unwrap();
    let [work, script] = [&work, &script].map(|path| path.to_str().unwrap());
    drop(world.up());
    let mut transcript = Transcript::new(&world);
    let codex = ["agent", "add", "codex", "--backend", "command", "--cwd", work];
    let flags = ["--env", "CODEX_API_KEY", "--env", "SSL_CERT_FILE", "--time-limit", "1h30m"];
    let program = ["--prompt-as", "argument", "--repeatable", "--", "echo", "exec", "{prompt}"];
    let edit = ["agent", "edit", "codex"];
    transcript
        .run(&[&codex[..], &flags, &program].concat())
        .both(&["agent", "show", "codex"])
        .run(&[&edit[..], &["--cwd", "", "--env", "", "--not-repeatable"]].concat())
        .run(&["agent", "show", "codex"])
        .run(&[&edit[..], &["--prompt-as", "stdin"]].concat())
        .run(&[&edit[..], &["--prompt-as", "stdin", "--", "echo", "exec", "-"]].concat())
        .run(&["agent", "show", "codex"])
        .run(&[&edit[..], &["--prompt-as", "shell"]].concat())
        .run(&[&edit[..], &["--time-limit", "25h"]].concat())
        .run(&[&edit[..], &["--time-limit", "soon"]].concat())
        .run(&[&edit[..], &["--env", "TOKEN=secret"]].concat())
        .run(&[&edit[..], &["--script", script]].concat())
        .run(&[&edit[..], &["--repeatable", "--not-repeatable"]].concat())
        .run(&["agent", "add", "demo", "--backend", "builtin", "--script", script])
        .run(&["agent", "show", "demo"])
        .run(&["agent", "list"]);
    insta::assert_snapshot!("agent_program", transcript.finish());
}

/// Paths are stored as absolute paths.
#[test]
fn relative_path_is_resolved_against_the_working_directory() {
    let world = World::new();
    let add = ["agent", "add", "demo", "--backend", "builtin", "--script", "here/answers.toml"];
    let output = world.command().current_dir(world.root()).args(add).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = world.json(&["agent", "show", "demo"]);
    let expected = world.root().join("here/answers.toml");
    assert_eq!(shown["agent"]["script"].as_str(), expected.to_str());
}

/// Commands print the same with and without a daemon.
#[test]
fn agent_commands_print_the_same_with_and_without_a_daemon() {
    let transcript = |world: &World| {
        let mut transcript = Transcript::new(world);
        transcript
            .both(&["agent", "add", "ada", "--backend", "builtin"])
            .both(&["agent", "edit", "ada", "--tier", "1"])
            .both(&["agent", "list"])
            .both(&["agent", "show", "ada"])
            .both(&["agent", "show", "nobody"])
            .both(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"])
            .both(&["agent", "list", "--limit", "0"])
            .both(&["agent", "remove", "ada"])
            .both(&["agent", "remove", "ada"]);
        transcript.finish().to_owned()
    };
    let (without_daemon, with_daemon) = (World::new(), World::new());
    let daemon = with_daemon.up();
    assert_eq!(transcript(&without_daemon), transcript(&with_daemon));
    drop(daemon);
}
