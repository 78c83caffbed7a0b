//! `midwatch ledger tail`

use std::ops::ControlFlow;

use api::{Error, Event, Events, LedgerTail};
use clap::Args;

use super::follow::{Feed, follow};
use super::list_limit;
use crate::access::ask;
use crate::context::Context;
use crate::output::Output;

#[derive(Debug, Args)]
pub(super) struct Tail {
    /// Most events to show
    #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Show what comes after this event [default: the newest]
    #[arg(long, value_name = "SEQ", value_parser = place, allow_negative_numbers = true)]
    cursor: Option<u64>,
    /// Go on with whatever happens
    #[arg(long, short)]
    follow: bool,
}

fn place(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "give the number of an event, or 0 for the beginning")
}

pub(super) async fn run(context: &Context, tail: Tail) -> Result<(), Error> {
    let asked = LedgerTail { after: tail.cursor, limit: tail.limit, wait_ms: 0 };
    if tail.follow {
        return follow(context, &mut Log { asked, output: context.output }).await;
    }
    let answer = ask(context, asked).await?;
    context.output.show(&answer, |answer| match answer.events.is_empty() {
        true => format!("nothing after event {}", answer.cursor),
        false => lines(&answer.events),
    });
    Ok(())
}

/// The log, from the first event that is shown on.
struct Log {
    asked: LedgerTail,
    output: Output,
}

impl Feed for Log {
    type Request = LedgerTail;
    type End = ();

    fn next(&self, wait_ms: u32) -> LedgerTail {
        // The newest are there without waiting.
        let wait_ms = if self.asked.after.is_some() { wait_ms } else { 0 };
        LedgerTail { wait_ms, ..self.asked.clone() }
    }

    fn take(&mut self, Events { events, cursor }: Events) -> ControlFlow<()> {
        for event in &events {
            if self.output.show_line(event, line).is_err() {
                // Nobody reads it.
                return ControlFlow::Break(());
            }
        }
        self.asked = LedgerTail { after: Some(cursor), ..LedgerTail::default() };
        ControlFlow::Continue(())
    }
}

pub(super) fn lines(events: &[Event]) -> String {
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(event: &Event) -> String {
    let Event { seq, at, kind, actor, id, body, .. } = event;
    format!("{seq:>7}  {at}  {kind:<18} {actor}  {id}  {body}")
}
