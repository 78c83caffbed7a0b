//! `midwatch run events`

use std::process::ExitCode;

use api::{Error, RunEventList, RunEvents};
use clap::Args;

use super::ID;
use crate::access::send;
use crate::cli::ledger::event_text::render_events;
use crate::context::Context;
use crate::view::View;

/// Show the events of a run, attempt by attempt, from the ledger
#[derive(Debug, Args)]
pub(in crate::cli) struct Events {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, events: Events) -> Result<ExitCode, Error> {
    let answer = send(context, RunEvents { id: events.id }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &RunEventList, view: &View) -> String {
    let events = render_events(&answer.events, view);
    match answer.more_after {
        Some(seq) => format!(
            "{events}\nthere may be more: continue with `midwatch ledger tail --cursor {seq}`"
        ),
        None => events,
    }
}
