//! Completions and manual pages.

use std::fs;

use crate::support::world::World;

#[test]
fn completions_contain_the_commands() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.ok(&["completions", shell]);
        for word in
            ["midwatch", "agent", "checkpoint", "expect-checkpoint", "no-credential", "pause-after"]
        {
            assert!(script.contains(word), "{shell} does not know `{word}`");
        }
    }
    assert!(!world.data().exists());
}

#[test]
fn manual_pages_are_written_to_a_directory() {
    let world = World::new();
    let page = world.ok(&["man"]);
    assert!(page.contains(".TH midwatch 1"), "{page}");

    let dir = world.root().join("pages/man1");
    world.ok(&["man", dir.to_str().unwrap()]);
    let mut names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in ["midwatch.1", "midwatch-up.1", "midwatch-agent-add.1", "midwatch-ledger-verify.1"]
    {
        assert!(names.contains(&name.to_owned()), "{names:?}");
        let text = fs::read_to_string(dir.join(name)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{name}: {text}");
    }
    assert!(!world.data().exists());

    let file = world.root().join("file");
    fs::write(&file, "").unwrap();
    world.refused(&["man", file.join("below").to_str().unwrap()], "failed", 1);
}
