//! `midwatch stop`

use std::process::ExitCode;
use std::time::Duration;

use api::{Code, DaemonStop, DaemonStopping, Error, Run};
use calendar::distance;
use clap::Args;
use serde::Serialize;
use tokio::time::sleep;

use super::support::NOTHING_TO_DO;
use crate::access::send_to_daemon;
use crate::context::Context;
use crate::directory::Directory;
use crate::run_text::{describe_cut_off, describe_running};

const POLL: Duration = Duration::from_millis(50);

/// Stop the daemon of the data directory, and wait until it has ended
///
/// No run starts any more. Running runs have the time of `runs.drain` to finish, 5 minutes by default; those that are cut
/// off after that are named. A run that has not started stays queued, and starts after the next `midwatch up`.
#[derive(Debug, Args)]
pub(super) struct Stop {
    /// Cut off running runs at once
    #[arg(long)]
    now: bool,
}

#[derive(Serialize)]
struct Stopped {
    was_running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The runs that were running when the daemon was asked to stop.
    waited_for: Vec<Run>,
    /// Those that it cut off, and what became of them.
    cut_off: Vec<Run>,
}

pub(super) async fn run(context: &Context, stop: Stop) -> Result<ExitCode, Error> {
    let Stop { now } = stop;
    // With `--now` one request does it all: a second one could come after the end.
    let Some(stopping) = send_to_daemon(context, DaemonStop { now, wait: now }).await? else {
        let none = Stopped { was_running: false, pid: None, waited_for: vec![], cut_off: vec![] };
        let data = context.directory.path().display();
        context.output.say(&none, |_| format!("no daemon is running in {data}"));
        return Ok(ExitCode::from(NOTHING_TO_DO));
    };
    if !stopping.running.is_empty() && !now {
        context.output.show_text(&render_waiting(&stopping, context));
    }
    let DaemonStopping { pid, running: waited_for, cut_off, .. } = stopping;
    let cut_off = if now { cut_off } else { wait_for_runs(context).await? };
    wait_for_end(&context.directory, pid).await?;
    let stopped = Stopped { was_running: true, pid: Some(pid), waited_for, cut_off };
    context.output.say(&stopped, |stopped| {
        let mut lines = describe_cut_off(&stopped.cut_off);
        lines.push("stopped; `midwatch up` starts it again".to_owned());
        lines.join("\n")
    });
    Ok(ExitCode::SUCCESS)
}

/// Waits until the daemon executes no run any more. Returns those that it cut off. A daemon that ends before it answers has
/// cut off nothing that it could name.
async fn wait_for_runs(context: &Context) -> Result<Vec<Run>, Error> {
    match send_to_daemon(context, DaemonStop { now: false, wait: true }).await {
        Ok(drained) => Ok(drained.map(|drained| drained.cut_off).unwrap_or_default()),
        Err(lost) if lost.code == Code::Unreachable => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn render_waiting(stopping: &DaemonStopping, context: &Context) -> String {
    let drain_us = i64::try_from(stopping.drain_s).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    format!(
        "waiting up to {} for {}; `midwatch stop --now` does not wait",
        distance(drain_us),
        describe_running(&stopping.running, &context.view),
    )
}

/// Returns when this process does not own the directory any more. The daemon itself limits how long that takes.
async fn wait_for_end(directory: &Directory, pid: u32) -> Result<(), Error> {
    while directory.owner() == Some(pid) && directory.try_lock()?.is_none() {
        sleep(POLL).await;
    }
    Ok(())
}
