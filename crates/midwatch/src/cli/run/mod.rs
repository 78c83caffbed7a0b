//! `midwatch run …`

mod cancel;
mod events;
mod list;
mod output;
mod retry;
mod settle;
mod show;
mod start;
mod watch;

use std::process::ExitCode;

use api::{Error, RunChanged, RunState};
use clap::Subcommand;

use crate::context::Context;

pub(super) use start::render as render_started;

const ID: &str = "The run: its id, or the beginning of it, from `midwatch run list`";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Start(start::Start),
    List(list::List),
    Show(show::Show),
    Events(events::Events),
    Output(output::Output),
    Watch(watch::Watch),
    Cancel(cancel::Cancel),
    Retry(retry::Retry),
    Settle(settle::Settle),
}

impl Command {
    /// Whether it stays until the run ends.
    pub(super) fn follows(&self) -> bool {
        matches!(self, Command::Watch(_))
    }
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Start(start) => start::run(context, start).await,
        Command::List(list) => list::run(context, list).await,
        Command::Show(show) => show::run(context, show).await,
        Command::Events(events) => events::run(context, events).await,
        Command::Output(output) => output::run(context, output).await,
        Command::Watch(watch) => watch::run(context, watch).await,
        Command::Cancel(cancel) => cancel::run(context, cancel).await,
        Command::Retry(retry) => retry::run(context, retry).await,
        Command::Settle(settle) => settle::run(context, settle).await,
    }
}

/// The state of a run. Those that may need a person have a mark, which terminals show in colour.
fn marked(state: RunState) -> String {
    match state {
        RunState::Failed => "x failed".to_owned(),
        RunState::WaitingPermission => "! waiting".to_owned(),
        RunState::Unknown => "? unknown".to_owned(),
        RunState::Queued | RunState::Running | RunState::Done | RunState::Cancelled => {
            state.to_string()
        }
    }
}

/// The result of a change, such as `cancelled`, and the state of the run after it.
fn render_change(RunChanged { run, changed }: &RunChanged, result: &str) -> String {
    match changed {
        true => format!("run `{}` {result} ({})", run.id, run.state),
        false => format!("run `{}`: nothing to change ({})", run.id, run.state),
    }
}

#[cfg(test)]
mod tests {
    use api::Run;
    use serde_json::json;

    use super::*;

    pub(super) fn failed_run() -> Run {
        let document = json!({
            "id": "run_1",
            "state": "failed",
            "schedule_id": "sch_0a1b2c3d",
            "schedule_name": "standup",
            "slot": "2026-03-28T12:30:00Z",
            "origin": "slot",
            "agent": "ada",
            "attempt": 2,
            "queued_at": "2026-03-28T12:30:01Z",
            "started_at": "2026-03-28T12:30:02Z",
            "finished_at": "2026-03-28T12:30:03Z",
            "reason": "exit_code",
            "message": "the program ended with exit code 1",
            "output": {"text": "one\ntwo\n", "bytes": 8},
        });
        serde_json::from_value(document).unwrap()
    }

    pub(super) fn queued_run() -> Run {
        let document = json!({
            "id": "run_2",
            "state": "queued",
            "origin": "manual",
            "attempt": 0,
            "queued_at": "2026-03-28T12:40:00Z",
            "retry_at": "2026-03-28T12:41:00Z",
            "settled_by": "uid:1000",
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn change_differs_from_nothing_to_change() {
        let answer = RunChanged { run: failed_run(), changed: true };
        assert_eq!(render_change(&answer, "settled"), "run `run_1` settled (failed)");
        let answer = RunChanged { changed: false, ..answer };
        assert_eq!(render_change(&answer, "settled"), "run `run_1`: nothing to change (failed)");
    }
}
