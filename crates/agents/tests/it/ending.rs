//! How a program is ended, with all that it has started.

use std::time::Duration;

use agents::{AgentBackend, Ended, Work};
use rustix::process::{Signal, kill_process};
use tokio_util::sync::CancellationToken;

use crate::world::{World, exists, is_alive, said, sh, until};

/// Says who it is, and ends in time only when it is killed.
const STUBBORN: &str = r#"trap "" TERM; echo $$ >> pids; exec sleep 300"#;
/// Starts fifty such others and waits until they run.
const CROWD: &str = r#"
    for each in 1 2 3 4 5 6 7 8 9 10; do for one in 1 2 3 4 5; do
        sh -c 'trap "" TERM; echo $$ >> pids; exec sleep 300' &
    done; done
    while [ "$(cat pids 2>/dev/null | wc -l)" -lt 50 ]; do sleep 0.01; done
"#;

/// Runs a script and stops it as soon as it has said who it is.
async fn stopped(world: &World, script: &str, count: usize) -> Ended {
    let stop = CancellationToken::new();
    let stopping = async {
        world.pids("pids", count).await;
        stop.cancel();
    };
    tokio::join!(world.run_until(sh(script), stop.clone()), stopping).0
}

#[tokio::test]
async fn what_is_cancelled_before_it_starts_is_not_started() {
    let world = World::new();
    let stop = CancellationToken::new();
    stop.cancel();
    let ended = world.run_until(sh("touch made"), stop).await;
    assert_eq!(said(&ended.outcome), "cancelled");
    assert!(!world.root().join("made").exists());
}

#[tokio::test]
async fn a_program_is_asked_to_end_before_it_is_killed() {
    let world = World::new();
    let polite = r#"trap "echo bye; exit 0" TERM; echo $$ > pids; sleep 300 & wait"#;
    let ended = stopped(&world, polite, 1).await;
    assert_eq!(said(&ended.outcome), "cancelled");
    assert!(ended.output.text.ends_with("bye\n"), "{:?}", ended.output);
}

#[tokio::test]
async fn a_program_that_will_not_end_is_killed() {
    let world = World::new();
    let ended = stopped(&world, STUBBORN, 1).await;
    assert_eq!(said(&ended.outcome), "cancelled");
    assert!(!exists(world.pids("pids", 1).await[0]));
}

#[tokio::test]
async fn a_time_limit_ends_a_program_that_will_not_end() {
    let world = World::new();
    let ended = world.run(Work { time_max: Duration::from_secs(2), ..sh(STUBBORN) }).await;
    assert_eq!(said(&ended.outcome), "timeout passing: it took longer than 2s");
    assert!(!exists(world.pids("pids", 1).await[0]));
}

#[tokio::test]
async fn whoever_a_program_leaves_behind_is_killed() {
    let world = World::new();
    let ended = world.sh(&format!("{CROWD} exit 0")).await;
    let expected =
        "left_behind permanent: the program ended and left others running, which were killed";
    assert_eq!(said(&ended.outcome), expected);
    let crowd = world.pids("pids", 50).await;
    until(|| !crowd.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_crowd_is_stopped_whole() {
    let world = World::new();
    let ended = stopped(&world, &format!("{CROWD} wait"), 50).await;
    assert_eq!(said(&ended.outcome), "cancelled");
    let crowd = world.pids("pids", 50).await;
    until(|| !crowd.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn dropping_the_future_kills_the_crowd_and_buries_the_program() {
    let world = World::new();
    let script = format!("echo $$ > leader; {CROWD} wait");
    let working = world.backends.work(sh(&script), CancellationToken::new());
    tokio::select! {
        ended = working => panic!("{ended:?}"),
        _ = world.pids("pids", 50) => {}
    }
    let (leader, crowd) = (world.pids("leader", 1).await, world.pids("pids", 50).await);
    until(|| !crowd.iter().any(|pid| is_alive(*pid))).await;
    until(|| !exists(leader[0])).await;
}

/// Known and not mended here: who leaves the group outlives the run, because only a sandbox can
/// hold it. It must not hold us up all the same.
#[tokio::test]
async fn who_leaves_the_group_and_holds_the_pipe_does_not_hold_the_run() {
    let world = World::new();
    let script = r"
        setsid sh -c 'echo $$ > pids; exec sleep 300' &
        while [ ! -s pids ]; do sleep 0.01; done
        echo said
    ";
    let ended = world.sh(script).await;
    assert_eq!((said(&ended.outcome).as_str(), ended.output.text.as_str()), ("done", "said\n"));
    let left = world.pids("pids", 1).await[0];
    assert!(is_alive(left));
    kill_process(left, Signal::KILL).unwrap();
}

/// As before, but it never stops talking.
#[tokio::test]
async fn who_leaves_the_group_and_floods_the_pipe_does_not_hold_the_run() {
    let world = World::new();
    let script = r"
        setsid sh -c 'echo $$ > pids; exec yes' &
        while [ ! -s pids ]; do sleep 0.01; done
    ";
    assert_eq!(said(&world.sh(script).await.outcome), "done");
    let left = world.pids("pids", 1).await[0];
    until(|| !is_alive(left)).await;
}
