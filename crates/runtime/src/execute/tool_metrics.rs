//! Tool metrics: each tool call is counted once, whatever surface it came by.
//!
//! The first request of a call tells how it went; a call that makes no request, or fails afterwards, reports that by itself.
//!
//! A call that changes something, or was refused to, also gets a ledger entry of its own. Counts are written once a minute and
//! when the daemon stops, so that reading costs no flush. A crash loses the counts of the last minute, but no entry.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Code, Error, Request, Response};
use kernel::installation::ToolUsage;
use kernel::tool::{self, CallCounts, CallRecord, ToolName, ToolStats};
use kernel::{Actor, Event, EventBody, Noun};
use metrics::Registry;
use serde::Serialize;
use store::Commit;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::authorize::tool_catalog::ToolCatalog;
use crate::clock::{Time, whole_micros};
use crate::commit::codec;
use crate::commit::transaction::Transactions;
use crate::installation::Installation;

/// How often counts are written.
const WRITTEN_EVERY: Duration = Duration::from_secs(60);
/// Calls that get an entry of their own in that time; more are only counted.
const ENTRIES_MAX: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct ToolMetrics {
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) tools: Arc<ToolCatalog>,
    pub(crate) unwritten: Mutex<UnwrittenCounts>,
    pub(crate) metrics: Arc<Registry>,
}

/// Counts since they were last written.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenCounts {
    pub(crate) tools: BTreeMap<ToolName, CallCounts>,
    /// Calls that got an entry of their own.
    entries: u32,
}

/// How a tool call ended that no request accounts for.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) is_change: bool,
    pub(crate) code: Option<Code>,
    /// Whether the call is already counted as a success.
    pub(crate) is_counted: bool,
}

/// A tool call whose request is about to be handled.
#[derive(Debug)]
pub(crate) struct MeasuredCall {
    tool: ToolName,
    is_change: bool,
    bytes_in: u64,
    started: Duration,
}

impl ToolMetrics {
    /// Starts to measure a request, if one of our tools makes it.
    pub(crate) fn start(&self, tool: Option<&str>, request: &Request) -> Option<MeasuredCall> {
        let tool = self.known_tool(tool?)?;
        let (bytes_in, started) = (json_length(request), self.time.steady().unwrap_or_default());
        Some(MeasuredCall { tool, is_change: request.changes(), bytes_in, started })
    }

    /// Counts a request that was handled.
    pub(crate) async fn record(
        &self,
        actor: &Actor,
        call: MeasuredCall,
        response: &Result<Response, Error>,
    ) {
        let MeasuredCall { tool, is_change, bytes_in, started } = call;
        let took = self.time.steady().unwrap_or_default().saturating_sub(started);
        let took_us = whole_micros(took);
        let (code, bytes_out) = match response {
            Ok(response) => (None, json_length(response)),
            Err(error) => (Some(error.code), json_length(error)),
        };
        let (failures, longest_us) = (u64::from(code.is_some()), took_us);
        let counts =
            CallCounts { calls: 1, failures, took_us, longest_us, bytes_in, bytes_out, runs: 0 };
        self.metrics.tool_calls.add(&labels(is_change, code), 1);
        self.metrics.tool_call.observe(&labels(is_change, code), took_us);
        self.record_call(actor, tool, counts, code, is_change).await;
    }

    /// Counts a call that no request accounts for.
    pub(crate) async fn record_end(&self, actor: &Actor, tool: &str, end: CallEnd) {
        let Some(tool) = self.known_tool(tool) else { return };
        let CallEnd { is_change, code, is_counted } = end;
        if !is_counted {
            self.metrics.tool_calls.add(&labels(is_change, code), 1);
        }
        // A client could claim a change that never happened, so only a request gets an entry for a success.
        let is_change = is_change && code.is_some();
        let (calls, failures) = (u64::from(!is_counted), u64::from(code.is_some()));
        let counts = CallCounts { calls, failures, ..CallCounts::default() };
        self.record_call(actor, tool, counts, code, is_change).await;
    }

    /// Counts a call, and writes the entry of one that changes something.
    async fn record_call(
        &self,
        actor: &Actor,
        tool: ToolName,
        counts: CallCounts,
        code: Option<Code>,
        is_change: bool,
    ) {
        if !self.count(&tool, &counts, is_change) {
            return;
        }
        let CallCounts { took_us, bytes_in, bytes_out, .. } = counts;
        let (code, at) = (code.map(|code| code.name().to_owned()), self.time.now());
        let record = CallRecord { code, took_us, bytes_in, bytes_out, at };
        let mut body = EventBody::Tool(tool, tool::Event::Called(record));
        let event = Event { at, actor, cause: "", body: &mut body };
        let recorded = async {
            let drafts = vec![codec::draft_entry(event)?];
            self.transactions.append(Commit { drafts, ..Commit::default() }).await
        };
        if let Err(failed) = recorded.await {
            warn!(%failed, "failed to record a tool call");
        }
    }

    fn known_tool(&self, name: &str) -> Option<ToolName> {
        if self.tools.tools.is_known(name) { name.parse().ok() } else { None }
    }

    /// Counts a run whose work is a tool call.
    pub(crate) fn count_run(&self, tool: &str) {
        if let Ok(tool) = tool.parse() {
            self.count(&tool, &CallCounts { runs: 1, ..CallCounts::default() }, false);
        }
    }

    /// Writes the counts from time to time.
    pub(crate) async fn run(&self) {
        let mut every = interval(WRITTEN_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.tick().await;
        loop {
            every.tick().await;
            self.flush().await;
        }
    }

    /// Writes the counts.
    pub(crate) async fn flush(&self) {
        let unwritten = std::mem::take(&mut *self.unwritten()).tools.into_iter();
        let usage: Vec<ToolUsage> =
            unwritten.map(|(tool, tally)| ToolUsage { tool, tally }).collect();
        if usage.is_empty() {
            return;
        }
        let rows = usage.iter().map(|it| (Noun::Tool, it.tool.to_string())).collect();
        let instance = &self.installation.instance;
        let written = self.transactions.commit_own(rows, Vec::new(), |rows, now| {
            Ok(tool::summarize_calls(instance, |name| rows.get::<ToolStats>(name), &usage, now))
        });
        if let Err(failed) = written.await {
            warn!(%failed, "failed to write the counts of tool calls, trying again later");
            for ToolUsage { tool, tally } in &usage {
                self.count(tool, tally, false);
            }
        }
    }

    /// Writes the counts of a command that has changed something, before it ends.
    pub(crate) async fn flush_changes(&self) {
        if 0 < self.unwritten().entries {
            self.flush().await;
        }
    }

    pub(crate) fn unwritten(&self) -> MutexGuard<'_, UnwrittenCounts> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the call gets an entry of its own.
    fn count(&self, tool: &ToolName, counts: &CallCounts, is_change: bool) -> bool {
        let mut unwritten = self.unwritten();
        unwritten.tools.entry(tool.clone()).or_default().add(counts);
        let is_entry = is_change && unwritten.entries < ENTRIES_MAX;
        unwritten.entries += u32::from(is_entry);
        is_entry
    }
}

/// The labels of a call: whether its tool changes something, and how it went.
fn labels(is_change: bool, code: Option<Code>) -> [&'static str; 2] {
    let class = if is_change { "change" } else { "read" };
    let outcome = if code.is_some() { "error" } else { "ok" };
    [class, outcome]
}

/// Length on the wire.
fn json_length(value: &impl Serialize) -> u64 {
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
    // Requests and responses always serialise.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}
