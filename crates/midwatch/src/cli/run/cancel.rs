//! `midwatch run cancel`

use std::process::ExitCode;

use api::{Code, Error, RunCancel, RunCancelled, RunChanged, RunState};
use clap::Args;
use kernel::RunId;
use runtime::StopTarget;

use super::{ID, render_change};
use crate::access::{Stopped, send_stop};
use crate::cli::support::stop;
use crate::context::Context;

/// Cancel a run, before it starts or while it runs
#[derive(Debug, Args)]
pub(in crate::cli) struct Cancel {
    #[arg(help = ID)]
    id: String,
    /// Why; recorded in the ledger
    #[arg(long, alias = "note", value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, cancel: Cancel) -> Result<ExitCode, Error> {
    let Cancel { id, reason: note } = cancel;
    let unknown =
        |invalid| Error::new(Code::NotFound, invalid).hint("`midwatch run list` shows the runs");
    let run: RunId = id.parse().map_err(unknown)?;
    let request = RunCancel { id, note: note.clone() };
    match send_stop(context, request, StopTarget::Run(&run), note.as_deref()).await? {
        Stopped::Answered(answer) => context.output.show(&answer, |it| render(&run, it)),
        Stopped::Marked(why) => stop::show_marked(context, &why),
    }
    Ok(ExitCode::SUCCESS)
}

fn render(id: &RunId, RunCancelled { run, changed, recorded }: &RunCancelled) -> String {
    match (run, recorded) {
        (Some(run), true) => {
            let is_cancelled = run.state == RunState::Cancelled;
            let result = if is_cancelled { "cancelled" } else { "is being cancelled" };
            render_change(&RunChanged { run: run.clone(), changed: *changed }, result)
        }
        _ => format!(
            "run `{id}` is being cancelled\n\
             not recorded yet: the ledger cannot be written; the daemon records it as soon as it can"
        ),
    }
}
