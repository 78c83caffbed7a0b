//! How a program is ended, together with the processes it started.

use std::time::Duration;

use agents::{AgentBackend, Attempt, AttemptResult};
use rustix::process::{Signal, kill_process};
use tokio_util::sync::CancellationToken;

use crate::world::{World, describe, exists, is_running, sh, until};

/// Writes its process id, and ignores SIGTERM.
const STUBBORN: &str = r#"trap "" TERM; echo $$ >> pids; exec sleep 300"#;
/// Starts fifty such processes and waits until they run.
const CROWD: &str = r#"
    for each in 1 2 3 4 5 6 7 8 9 10; do for one in 1 2 3 4 5; do
        sh -c 'trap "" TERM; echo $$ >> pids; exec sleep 300' &
    done; done
    while [ "$(cat pids 2>/dev/null | wc -l)" -lt 50 ]; do sleep 0.01; done
"#;

/// Runs a script and stops it as soon as `count` process ids are written.
async fn run_and_stop(world: &World, script: &str, count: usize) -> AttemptResult {
    let stop = CancellationToken::new();
    let stopping = async {
        world.pids("pids", count).await;
        stop.cancel();
    };
    tokio::join!(world.run_until(sh(script), stop.clone()), stopping).0
}

#[tokio::test]
async fn cancelled_attempt_is_not_started() {
    let world = World::new();
    let stop = CancellationToken::new();
    stop.cancel();
    let result = world.run_until(sh("touch made"), stop).await;
    assert_eq!(describe(&result.outcome), "cancelled");
    assert!(!world.root().join("made").exists());
}

#[tokio::test]
async fn program_gets_sigterm_before_sigkill() {
    let world = World::new();
    let polite = r#"trap "echo bye; exit 0" TERM; echo $$ > pids; sleep 300 & wait"#;
    let result = run_and_stop(&world, polite, 1).await;
    assert_eq!(describe(&result.outcome), "cancelled");
    assert!(result.output.text.ends_with("bye\n"), "{:?}", result.output);
}

#[tokio::test]
async fn program_that_ignores_sigterm_is_killed() {
    let world = World::new();
    let result = run_and_stop(&world, STUBBORN, 1).await;
    assert_eq!(describe(&result.outcome), "cancelled");
    assert!(!exists(world.pids("pids", 1).await[0]));
}

#[tokio::test]
async fn time_limit_kills_a_program_that_ignores_sigterm() {
    let world = World::new();
    let result = world.run(Attempt { time_max: Duration::from_secs(2), ..sh(STUBBORN) }).await;
    assert_eq!(describe(&result.outcome), "timeout transient: timed out after 2s");
    assert!(!exists(world.pids("pids", 1).await[0]));
}

#[tokio::test]
async fn leftover_processes_are_killed() {
    let world = World::new();
    let result = world.sh(&format!("{CROWD} exit 0")).await;
    let expected =
        "left_behind permanent: the program exited and left processes running, which were killed";
    assert_eq!(describe(&result.outcome), expected);
    let crowd = world.pids("pids", 50).await;
    until(|| !crowd.iter().any(|pid| is_running(*pid))).await;
}

#[tokio::test]
async fn stop_kills_the_whole_process_group() {
    let world = World::new();
    let result = run_and_stop(&world, &format!("{CROWD} wait"), 50).await;
    assert_eq!(describe(&result.outcome), "cancelled");
    let crowd = world.pids("pids", 50).await;
    until(|| !crowd.iter().any(|pid| is_running(*pid))).await;
}

#[tokio::test]
async fn dropping_the_future_kills_the_group_and_reaps_the_program() {
    let world = World::new();
    let script = format!("echo $$ > leader; {CROWD} wait");
    let working = world.backends.run(sh(&script), CancellationToken::new());
    tokio::select! {
        result = working => panic!("{result:?}"),
        _ = world.pids("pids", 50) => {}
    }
    let (leader, crowd) = (world.pids("leader", 1).await, world.pids("pids", 50).await);
    until(|| !crowd.iter().any(|pid| is_running(*pid))).await;
    until(|| !exists(leader[0])).await;
}

/// A known limitation: a process that leaves the group outlives the run, because only a sandbox can contain it.
/// It must not block the run.
#[tokio::test]
async fn process_outside_the_group_that_holds_the_pipe_does_not_block_the_run() {
    let world = World::new();
    let script = r"
        setsid sh -c 'echo $$ > pids; exec sleep 300' &
        while [ ! -s pids ]; do sleep 0.01; done
        echo done
    ";
    let result = world.sh(script).await;
    assert_eq!(
        (describe(&result.outcome).as_str(), result.output.text.as_str()),
        ("done", "done\n")
    );
    let left = world.pids("pids", 1).await[0];
    assert!(is_running(left));
    kill_process(left, Signal::KILL).unwrap();
}

/// As before, but it never stops writing.
#[tokio::test]
async fn process_outside_the_group_that_floods_the_pipe_does_not_block_the_run() {
    let world = World::new();
    let script = r"
        setsid sh -c 'echo $$ > pids; exec yes' &
        while [ ! -s pids ]; do sleep 0.01; done
    ";
    assert_eq!(describe(&world.sh(script).await.outcome), "done");
    let left = world.pids("pids", 1).await[0];
    until(|| !is_running(left)).await;
}
