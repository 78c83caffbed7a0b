//! How tools do: each call of a tool is counted here once, whichever way it came. What it asks for first says how it
//! went; where it asks for nothing, or fails after that, it says so itself.
//!
//! A call that changes something, or was refused to, is an entry of its own, after the change. All calls are
//! counted, and the count is written once a minute and at the end of the watch, so that looking costs no
//! flush. What was counted in the minute before a crash is lost; the entries of changes are not. They are not
//! counted again from those: which of them the last count has seen, the log does not tell.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Answer, Error, Request, ToolTally, ToolUse};
use kernel::budget::day;
use kernel::tool::{self, Made, Tally, ToolName, Use};
use kernel::watch::Used;
use kernel::{Actor, Body, Event, Noun};
use serde::Serialize;
use store::Commit;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::errors;
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Engine;

/// How often the count is written.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);
/// Calls that are an entry of their own in that time; more are only counted.
const ENTRIES_MAX: u32 = 1_000;
/// Rows of tools that are read.
const TOOLS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    tools: BTreeMap<ToolName, Tally>,
    /// Calls that were written one by one.
    entries: u32,
}

/// A call that a tool makes, before it is carried out.
#[derive(Debug)]
pub(crate) struct Measured {
    tool: ToolName,
    is_change: bool,
    bytes_in: u64,
    began: Duration,
}

impl Engine {
    /// What is to be known of a call before it is made, if a tool of ours makes it.
    pub(crate) fn measured(&self, tool: Option<&str>, request: &Request) -> Option<Measured> {
        let name = tool.filter(|name| self.tools().is_some_and(|tools| tools.is_known(name)))?;
        let (bytes_in, began) = (length(request), self.clock().steady().unwrap_or_default());
        Some(Measured { tool: name.parse().ok()?, is_change: is_change(request), bytes_in, began })
    }

    /// Counts a call that was made.
    pub(crate) async fn tallied(
        &self,
        actor: &Actor,
        measured: Measured,
        answer: &Result<Answer, Error>,
    ) {
        let Measured { tool, is_change, bytes_in, began } = measured;
        let took = self.clock().steady().unwrap_or_default().saturating_sub(began);
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let (code, bytes_out) = match answer {
            Ok(Answer::ToolEnd(ended)) => (ended.code, 0),
            Ok(answer) => (None, length(answer)),
            Err(error) => (Some(error.code), length(error)),
        };
        let is_counted = matches!(answer, Ok(Answer::ToolEnd(ended)) if ended.counted);
        let (calls, failures) = (u64::from(!is_counted), u64::from(code.is_some()));
        let longest_us = took_us;
        let tally = Tally { calls, failures, took_us, longest_us, bytes_in, bytes_out, runs: 0 };
        if !self.tallies().count(&tool, &tally, is_change) {
            return;
        }
        let (code, at) = (code.map(|code| code.name().to_owned()), self.now());
        let made = Made { code, took_us, bytes_in, bytes_out, at };
        let mut body = Body::Tool(tool, tool::Event::Made(made));
        let event = Event { at, actor, cause: "", body: &mut body };
        let written = async {
            let drafts = vec![stored::draft(event)?];
            self.commit(Commit { drafts, ..Commit::default() }).await
        };
        if let Err(failed) = written.await {
            warn!(%failed, "the call of a tool could not be written down");
        }
    }

    /// A run has begun that is the call of a tool, and counts.
    pub(crate) fn tallied_run(&self, tool: &str) {
        if let Ok(tool) = tool.parse() {
            self.tallies().count(&tool, &Tally { runs: 1, ..Tally::default() }, false);
        }
    }

    /// Writes the count from time to time.
    pub(crate) async fn tell_tools(&self) {
        let mut every = interval(WRITTEN_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.tick().await;
        loop {
            every.tick().await;
            self.write_tallies().await;
        }
    }

    /// Writes what was counted, if there is something.
    pub(crate) async fn write_tallies(&self) {
        let counted = self.tallies().take();
        let used: Vec<Used> =
            counted.into_iter().map(|(tool, tally)| Used { tool, tally }).collect();
        if used.is_empty() {
            return;
        }
        let rows = used.iter().map(|it| (Noun::Tool, it.tool.to_string())).collect();
        let written = self.act(rows, Vec::new(), |rows, now| {
            Ok(tool::summary(self.instance(), |name| rows.tool(name), &used, now))
        });
        if let Err(failed) = written.await {
            warn!(%failed, "how often tools were called could not be written down yet");
            for Used { tool, tally } in &used {
                self.tallies().count(tool, tally, false);
            }
        }
    }

    /// The same by a command that leaves, if it has changed something by a tool.
    pub(crate) async fn leave_tallies(&self) {
        if 0 < self.tallies().counted().entries {
            self.write_tallies().await;
        }
    }

    /// How tools have done, with what is not written yet.
    pub(crate) async fn tool_list(&self) -> Result<api::Tools, Error> {
        let found = self.store().list(Noun::Tool.name(), "", TOOLS_MAX).await;
        let mut uses: BTreeMap<String, Use> = BTreeMap::new();
        for item in found.map_err(errors::store)? {
            let state =
                item.body.as_ref().map(|body| stored::state(Noun::Tool, body)).transpose()?;
            uses.extend(state.and_then(kernel::State::tool).map(|used| (item.id, used)));
        }
        let now = self.now();
        for (tool, tally) in &self.tallies().counted().tools {
            let used = uses.remove(tool.as_str());
            uses.insert(tool.to_string(), tool::add(used, tally, now));
        }
        let today = day(now);
        let tools = uses.into_iter().map(|(tool, used)| {
            let mut all = Tally::default();
            used.days.iter().for_each(|day| all.add(&day.tally));
            let today = used.days.iter().find(|it| it.day == today).map(|it| it.tally);
            let (today, all) = (wire(&today.unwrap_or_default()), wire(&all));
            ToolUse { tool, today, all, alerted_at: used.alerted_at.map(rfc3339) }
        });
        Ok(api::Tools { tools: tools.collect() })
    }
}

impl Tallies {
    /// Whether it is to be written by itself too.
    fn count(&self, tool: &ToolName, tally: &Tally, is_change: bool) -> bool {
        let mut counted = self.counted();
        counted.tools.entry(tool.clone()).or_default().add(tally);
        let is_entry = is_change && counted.entries < ENTRIES_MAX;
        counted.entries += u32::from(is_entry);
        is_entry
    }

    fn take(&self) -> BTreeMap<ToolName, Tally> {
        std::mem::take(&mut *self.counted()).tools
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request is meant to change something.
fn is_change(request: &Request) -> bool {
    use Request as Is;
    match request {
        Is::HealthAsk(_) | Is::StatusAsk(_) | Is::CheckAsk(_) | Is::ConfigAsk(_) => false,
        Is::BudgetList(_) | Is::ToolList(_) => false,
        Is::AgentList(_) | Is::AgentShow(_) | Is::ScheduleList(_) | Is::ScheduleShow(_) => false,
        Is::Why(_) | Is::RunList(_) | Is::RunShow(_) | Is::RunRead(_) | Is::RunWatch(_) => false,
        Is::ApprovalList(_) | Is::ApprovalShow(_) | Is::PolicyDecide(_) => false,
        Is::PolicyExplain(_) | Is::PolicyReplay(_) | Is::TokenList(_) | Is::LedgerTail(_) => false,
        Is::RunEvents(_) | Is::News(_) => false,
        Is::ScheduleAdd(asked) => !asked.dry_run,
        Is::ToolEnd(ended) => ended.changes,
        _ => true,
    }
}

/// How long it is on the wire.
fn length(what: &impl Serialize) -> u64 {
    struct Length(u64);
    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // Nothing that is asked or answered fails to be written.
    let _ = serde_json::to_writer(&mut length, what);
    length.0
}

fn wire(tally: &Tally) -> ToolTally {
    let Tally { calls, failures, took_us, longest_us, bytes_in, bytes_out, runs } = *tally;
    let mean_us = took_us.checked_div(calls).unwrap_or_default();
    ToolTally { calls, failures, mean_us, longest_us, bytes_in, bytes_out, runs }
}
