//! Ctrl-c at a command that waits: it says what goes on without you, and what does not.

use std::path::PathBuf;

use crate::support::terminal::Terminal;
use crate::support::wait::wait_until;
use crate::support::world::World;

/// Says that it has begun, and works until it is stopped.
const WORK: &str = r#"touch "$0"; exec sleep 600"#;

/// A world with the agent `ada`, and the file that it makes when it begins.
fn with_slow_agent() -> (World, PathBuf) {
    let world = World::new();
    let begun = world.root().join("begun");
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c", WORK];
    world.ok(&[&agent[..], &[begun.to_str().unwrap()]].concat());
    (world, begun)
}

#[test]
fn run_watch_says_that_the_run_goes_on() {
    let (world, begun) = with_slow_agent();
    let schedule = world.add_daily("nightly", "ada", "go");
    let _daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until(|| begun.exists());
    let mut terminal = Terminal::start(&world, &["run", "watch", &run]);
    terminal.wait_for("running");
    terminal.press_ctrl_c();
    terminal.wait_for(&format!("the run goes on without you: `midwatch run watch {run}` follows"));
    assert_eq!(terminal.wait().0, Some(130));
    assert_eq!(world.show_run(&run)["state"], "running");
    world.ok(&["run", "cancel", &run]);
}

#[test]
fn agent_test_says_whether_the_test_goes_on() {
    let (world, begun) = with_slow_agent();
    let interrupted = |expected: &str| {
        let mut terminal = Terminal::start(&world, &["agent", "test", "ada"]);
        wait_until(|| begun.exists());
        std::fs::remove_file(&begun).unwrap();
        terminal.press_ctrl_c();
        terminal.wait_for(expected);
        assert_eq!(terminal.wait().0, Some(130));
    };
    interrupted("the test was stopped, and its program with it");
    let _daemon = world.up();
    interrupted("the test goes on in the daemon; its result is not shown");
}
