//! `midwatch run cancel`

use std::process::ExitCode;

use api::{Code, Error, RunCancel, RunCancelled, RunChanged, RunShow, RunState};
use clap::Args;
use kernel::RunId;
use runtime::StopTarget;

use super::{ID, render_change};
use crate::access::{Stopped, send, send_stop};
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
    let run = full_id(context, id).await?;
    let request = RunCancel { id: run.to_string(), note: note.clone() };
    match send_stop(context, request, StopTarget::Run(&run), note.as_deref()).await? {
        Stopped::Answered(answer) => context.output.say(&answer, |it| render(&run, it)),
        Stopped::Marked(why) => stop::show_marked(context, &why),
    }
    Ok(ExitCode::SUCCESS)
}

/// A marker needs the whole id, so the beginning of one is completed first.
async fn full_id(context: &Context, id: String) -> Result<RunId, Error> {
    if let Ok(id) = id.parse() {
        return Ok(id);
    }
    let run = send(context, RunShow { id }).await?.run;
    run.id.parse().map_err(|invalid| Error::new(Code::Failed, invalid))
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
