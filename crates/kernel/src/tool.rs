//! Midwatch's own tools: the resolved call of a schedule, and statistics of recent calls.
//!
//! The ledger records each call that changes something. The daemon counts all calls and once a minute records
//! one summary for all tools; the statistics row of each tool is derived from it and covers its last days.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::EventBody;
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::budget::day;
use crate::event::kinds;
use crate::installation::{self, ToolUsage, ToolsUsed};
use crate::noun::{ChangedRow, NounEvent, NounState};
use crate::schedule::{self, RaiseCounts, highest_raise};
use crate::time::Timestamp;

/// Days that the statistics of a tool cover.
pub const DAYS_MAX: usize = 14;
const NAME_BYTES_MAX: usize = 64;
const HOUR_US: i64 = 3_600_000_000;
/// Fewer calls in an hour raise no alert.
const ALERT_CALLS_MIN: u64 = 10;
/// How many times its usual failure rate raises an alert.
const ALERT_TIMES: u64 = 3;

/// The name of a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid tool name `{0}`")]
pub struct InvalidToolName(String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Called(CallRecord),
    Alerted(Alerted),
}

/// A call, successful or not, of a tool that changes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// Error code, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub took_us: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub at: Timestamp,
}

/// A tool fails far more often than usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alerted {
    /// Calls in the current hour.
    pub calls: u64,
    pub failures: u64,
    /// Calls before this hour, as far as the statistics go back.
    pub usual_calls: u64,
    pub usual_failures: u64,
    pub at: Timestamp,
}

/// Counts of the calls of a tool in some period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCounts {
    pub calls: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// Sum over all calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_us: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longest_us: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_in: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_out: u64,
    /// Calls by runs that counted in the day's budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: u64,
}

/// Statistics of the recent calls of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolStats {
    /// The last days with calls, newest last.
    pub days: Vec<DayCounts>,
    /// Hour of the last call, counted from 1970.
    pub hour: i64,
    /// Calls in that hour.
    pub calls: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<Timestamp>,
    /// Schedules with calls of the tool that people gave tier 1.
    #[serde(default, skip_serializing_if = "is_none_raised")]
    pub raised_to_1: u32,
    /// The same for tier 2.
    #[serde(default, skip_serializing_if = "is_none_raised")]
    pub raised_to_2: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DayCounts {
    /// UTC days since 1970.
    pub day: i64,
    pub tally: CallCounts,
}

/// Returns the event that records the calls since the last summary, and an alert for each tool that fails
/// too often.
pub fn summarize_calls<'a>(
    instance: &str,
    row: impl Fn(&ToolName) -> Option<&'a ToolStats>,
    used: &[ToolUsage],
    now: Timestamp,
) -> Vec<EventBody> {
    let summary = ToolsUsed { tools: used.to_vec(), at: now };
    let alerts = used.iter().filter_map(|used| {
        let after = add_calls(row(&used.tool).cloned(), &used.tally, now);
        Some(EventBody::Tool(used.tool.clone(), Event::Alerted(after.alert(now)?)))
    });
    let summary =
        EventBody::Installation(instance.to_owned(), installation::Event::ToolsUsed(summary));
    [summary].into_iter().chain(alerts).collect()
}

/// Returns the statistics after an event of the tool.
fn apply(used: Option<ToolStats>, event: &Event) -> Option<ToolStats> {
    match event {
        Event::Called(_) => used,
        Event::Alerted(alerted) => used.map(|it| ToolStats { alerted_at: Some(alerted.at), ..it }),
    }
}

/// Returns the statistics after a summary.
fn apply_summary(used: Option<ToolStats>, name: &str, summary: &ToolsUsed) -> Option<ToolStats> {
    match summary.tools.iter().find(|it| it.tool.as_str() == name) {
        Some(it) => Some(add_calls(used, &it.tally, summary.at)),
        None => used,
    }
}

/// Returns the statistics after a person raised or lowered the tier of a schedule with calls of the tool.
fn apply_schedule_event(
    used: Option<ToolStats>,
    name: &str,
    event: &schedule::Event,
) -> Option<ToolStats> {
    let mut used = used.unwrap_or_default();
    let counts = RaiseCounts { to_1: &mut used.raised_to_1, to_2: &mut used.raised_to_2 };
    counts.count(event, |raise| raise.is_of_tool(name));
    Some(used)
}

/// Adds calls to the statistics of a tool.
pub fn add_calls(used: Option<ToolStats>, tally: &CallCounts, at: Timestamp) -> ToolStats {
    let mut used = used.unwrap_or_default();
    let (today, hour) = (day(at), at.as_micros().div_euclid(HOUR_US));
    match used.days.last_mut() {
        // After the clock was set back, calls count towards the latest day.
        Some(last) if today <= last.day => last.tally.add(tally),
        _ => {
            used.days.push(DayCounts { day: today, tally: *tally });
            used.days.drain(..used.days.len().saturating_sub(DAYS_MAX));
        }
    }
    if hour != used.hour {
        (used.hour, used.calls, used.failures) = (hour, 0, 0);
    }
    used.calls += tally.calls;
    used.failures += tally.failures;
    used
}

impl NounState for ToolStats {
    type Id = ToolName;

    fn apply(name: &str, used: Option<ToolStats>, body: &EventBody) -> Option<ToolStats> {
        match body {
            EventBody::Tool(_, event) => apply(used, event),
            EventBody::Installation(_, installation::Event::ToolsUsed(summary)) => {
                apply_summary(used, name, summary)
            }
            EventBody::Schedule(_, event) => apply_schedule_event(used, name, event),
            _ => used,
        }
    }
}

kinds! {
    Event:
    "tool.called" 1 Called;
    "tool.alerted" 1 Alerted;
}

impl NounEvent for Event {
    type State = ToolStats;

    fn changed_rows(&self, name: &ToolName) -> Vec<ChangedRow> {
        match self {
            Event::Called(_) => Vec::new(),
            Event::Alerted(_) => vec![ChangedRow::existing::<ToolStats>(name)],
        }
    }
}

impl ToolStats {
    /// The highest tier that people gave a schedule with calls of the tool.
    pub const fn raised_tier(&self) -> Option<Tier> {
        highest_raise(self.raised_to_1, self.raised_to_2)
    }

    /// Returns an alert if at least half of the hour's calls failed, of enough calls, and far more than usual;
    /// at most one per hour.
    fn alert(&self, now: Timestamp) -> Option<Alerted> {
        let ToolStats { calls, failures, .. } = *self;
        let all = self.days.iter().fold(CallCounts::default(), |all, day| {
            let mut all = all;
            all.add(&day.tally);
            all
        });
        let usual_calls = all.calls.saturating_sub(calls);
        let usual_failures = all.failures.saturating_sub(failures);
        let is_many = ALERT_CALLS_MIN <= calls && calls <= 2 * failures;
        let is_unusual = ALERT_TIMES * usual_failures * calls <= failures * usual_calls;
        let is_known =
            self.alerted_at.is_some_and(|at| at.as_micros().div_euclid(HOUR_US) == self.hour);
        (is_many && is_unusual && !is_known).then_some(Alerted {
            calls,
            failures,
            usual_calls,
            usual_failures,
            at: now,
        })
    }
}

impl CallCounts {
    pub fn add(&mut self, other: &CallCounts) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.took_us += other.took_us;
        self.longest_us = self.longest_us.max(other.longest_us);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.runs += other.runs;
    }
}

impl ToolName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ToolName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for ToolName {
    type Err = InvalidToolName;

    fn from_str(text: &str) -> Result<ToolName, InvalidToolName> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain) {
            true => Ok(ToolName(text.to_owned())),
            false => Err(InvalidToolName(text.chars().take(80).collect())),
        }
    }
}

impl TryFrom<String> for ToolName {
    type Error = InvalidToolName;

    fn try_from(text: String) -> Result<ToolName, InvalidToolName> {
        text.parse()
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> String {
        name.0
    }
}

fn is_none_raised(count: &u32) -> bool {
    *count == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The tool call of a schedule, resolved against the tool as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Hash of the tool's description.
    pub hash: String,
    /// The capability class of the call.
    pub capability: String,
    /// Tier of the capability class.
    pub tier: Tier,
    /// Agent of the schedule or run that the call acts on.
    pub agent: Option<AgentName>,
    /// Id of the schedule or run that the call acts on.
    pub resource: Option<String>,
}
