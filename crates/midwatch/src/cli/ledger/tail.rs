//! `midwatch ledger tail`

use std::ops::ControlFlow;

use api::{Error, Events, LedgerTail};
use clap::Args;

use super::event_text::{render_event, render_events};
use crate::access::send;
use crate::cli::support::follow::{Feed, follow};
use crate::cli::support::value_parsers::list_limit;
use crate::context::Context;
use crate::output::Output;
use crate::view::View;

/// Show the newest events, or those after a cursor
///
/// Long texts and hashes are cut off; `--json` prints every field as it is recorded. `midwatch timeline` says what happened
/// in plain words.
#[derive(Debug, Args)]
pub(in crate::cli) struct Tail {
    /// The most events to show
    #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Show events after this one [default: the newest events]
    #[arg(long, value_name = "SEQ", value_parser = event_number, allow_negative_numbers = true)]
    cursor: Option<u64>,
    /// Keep printing new events
    #[arg(long, short)]
    follow: bool,
}

impl Tail {
    pub(super) fn follows(&self) -> bool {
        self.follow
    }
}

fn event_number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "write the number of an event, or 0 for the beginning")
}

pub(super) async fn run(context: &Context, tail: Tail) -> Result<(), Error> {
    let request = LedgerTail { after: tail.cursor, limit: tail.limit, ..LedgerTail::default() };
    if tail.follow {
        let mut feed = EventFeed { request, output: context.output, view: &context.view };
        return follow(context, &mut feed).await;
    }
    let answer = send(context, request).await?;
    context.output.show(&answer, |answer| match answer.events.is_empty() {
        true => format!("no events after {}", answer.cursor),
        false => render_events(&answer.events, &context.view),
    });
    Ok(())
}

/// The events of the ledger, from the first one shown.
struct EventFeed<'a> {
    request: LedgerTail,
    output: Output,
    view: &'a View,
}

impl Feed for EventFeed<'_> {
    type Request = LedgerTail;
    type End = ();

    fn next(&self, wait_ms: u32) -> LedgerTail {
        // The first request is for the newest events, which exist already.
        let wait_ms = if self.request.after.is_some() { wait_ms } else { 0 };
        LedgerTail { wait_ms, ..self.request.clone() }
    }

    fn take(&mut self, Events { events, cursor, .. }: Events) -> ControlFlow<()> {
        for event in &events {
            if self.output.show_line(event, |event| render_event(event, self.view)).is_err() {
                // Stdout is closed.
                return ControlFlow::Break(());
            }
        }
        self.request = LedgerTail { after: Some(cursor), ..LedgerTail::default() };
        ControlFlow::Continue(())
    }
}
