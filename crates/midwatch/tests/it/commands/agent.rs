//! `midwatch agent …`

use super::Transcript;
use crate::world::World;

#[test]
fn agents_are_registered_changed_shown_and_removed() {
    let world = World::new();
    drop(world.up());
    let mut transcript = Transcript::new(&world);
    let letta = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-1"];
    let hook = "https://example.org/hook";
    let ollama = "http://localhost:11434/v1";
    transcript
        .both(&["agent", "list"])
        .run(&letta)
        .run(&letta)
        .run(&["--json", "agent", "add", "bob", "--backend", "command", "--", "echo", "a b"])
        .run(&["--json", "agent", "add", "bob", "--backend", "command", "--", "echo", "a b"])
        .run(&["agent", "add", "cleo", "--backend", "openai", "--model", "m", "--url", ollama])
        .run(&["agent", "add", "dora", "--backend", "webhook", "--url", hook, "--tier", "1"])
        .run(&["agent", "add", "eve", "--backend", "builtin", "--credential", "env:EVE_KEY"])
        .run(&["agent", "add", "fay", "--backend", "mcp", "--", "server", "--stdio"])
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

/// The same words mean the same with a daemon and without one.
#[test]
fn a_daemon_makes_no_difference() {
    let said = |world: &World| {
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
    let (alone, kept) = (World::new(), World::new());
    let daemon = kept.up();
    assert_eq!(said(&alone), said(&kept));
    drop(daemon);
}
