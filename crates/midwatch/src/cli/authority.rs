//! `midwatch freeze`, `midwatch thaw` and `midwatch lease …`

use std::process::ExitCode;

use api::{Authority, AuthorityChanged, Error, Freeze, Lease, LeaseRenew, Said, Thaw};
use clap::{Args, Subcommand};

use crate::access::ask;
use crate::context::Context;
use api::words::on_one_line;

#[derive(Debug, Args)]
pub(super) struct Reason {
    /// Why, for those who read the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum LeaseCommand {
    /// Say that the watch may go on by itself, for as long as the configuration says
    Renew(Reason),
}

pub(super) async fn freeze(context: &Context, reason: Reason) -> Result<ExitCode, Error> {
    let answer = ask(context, Freeze { note: reason.reason }).await?;
    context.output.show(&answer, |it| match it.changed {
        true => {
            "frozen: what is at work is stopped, and nothing begins until `midwatch thaw`".into()
        }
        false => format!("it was frozen already{}", frozen_by(&it.authority)),
    });
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn thaw(context: &Context, reason: Reason) -> Result<ExitCode, Error> {
    let answer = ask(context, Thaw { note: reason.reason }).await?;
    context.output.show(&answer, |it| match it.changed {
        true => "thawed: what waits begins; runs that were stopped can be tried again with \
                 `midwatch run retry`"
            .into(),
        false => "it was not frozen".into(),
    });
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn lease(context: &Context, command: LeaseCommand) -> Result<ExitCode, Error> {
    let LeaseCommand::Renew(reason) = command;
    let answer = ask(context, LeaseRenew { note: reason.reason }).await?;
    context.output.show(&answer, |AuthorityChanged { authority, .. }| {
        format!("renewed; {}", until(&authority.lease))
    });
    Ok(ExitCode::SUCCESS)
}

/// What needs a human about the authority of the watch.
pub(super) fn attention(authority: &Authority) -> Option<String> {
    if authority.frozen.is_some() {
        return Some(format!("frozen{}: `midwatch thaw`", frozen_by(authority)));
    }
    let what = match authority.lease.step.as_str() {
        "ask" => "no human was here for long, so every run asks",
        "paused" => "no human was here for too long, so no run begins",
        _ => return None,
    };
    Some(format!("{what}: `midwatch lease renew`"))
}

/// How long the watch goes on by itself.
pub(super) fn until(lease: &Lease) -> String {
    match (&lease.asks_from, &lease.pauses_from) {
        (Some(asks), Some(pauses)) => {
            format!("without a human, runs ask from {asks} and none begins from {pauses}")
        }
        (Some(asks), None) => format!("without a human, runs ask from {asks}"),
        (None, Some(pauses)) => format!("without a human, none begins from {pauses}"),
        (None, None) => "it does not run out".to_owned(),
    }
}

fn frozen_by(authority: &Authority) -> String {
    let Some(Said { by, at, note }) = &authority.frozen else { return String::new() };
    let note = note.as_ref().map(|note| format!(" ({})", on_one_line(note))).unwrap_or_default();
    format!(" by {by} at {at}{note}")
}
