//! A tool of our own: what a schedule's call of it comes to, and how tools have done of late.
//!
//! What changes something is in the log call by call. Calls of all kinds are counted by whoever keeps the watch, and
//! once a minute the count is written: one entry for all tools, from which a row for each tool is derived, with so
//! many of the last days.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::backend::Tier;
use crate::budget::day;
use crate::event::Body;
use crate::time::Timestamp;
use crate::watch::{self, ToolsUsed, Used};

/// Days of which it is known how a tool has done.
pub const DAYS_MAX: usize = 14;
const NAME_BYTES_MAX: usize = 64;
const HOUR_US: i64 = 3_600_000_000;
/// Fewer calls in an hour say nothing.
const ALERT_CALLS_MIN: u64 = 10;
/// How much more often than usual a tool fails that calls for a human.
const ALERT_TIMES: u64 = 3;

/// What a tool is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool's name")]
pub struct InvalidToolName(String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Made(Made),
    Alerted(Alerted),
}

/// Somebody has called a tool that changes something, or has tried to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// The code of the error, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub took_us: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub at: Timestamp,
}

/// A tool fails far more often than it used to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alerted {
    /// In the hour so far.
    pub calls: u64,
    pub failures: u64,
    /// Before that, as far as it is known.
    pub usual_calls: u64,
    pub usual_failures: u64,
    pub at: Timestamp,
}

/// How often a tool was called in some time, and how that went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub calls: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    /// Of all together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_us: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub longest_us: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_in: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_out: u64,
    /// Runs that were its call, and counted in the budget of the day.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: u64,
}

/// How a tool has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The last ones on which it was called, the newest last.
    pub days: Vec<Day>,
    /// The hour since 1970 in which it was called last.
    pub hour: i64,
    /// In that hour.
    pub calls: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Day {
    /// Since 1970.
    pub day: i64,
    pub tally: Tally,
}

/// The entry that tells of the calls since the last one, and those about tools that fail too often.
pub fn summary<'a>(
    instance: &str,
    row: impl Fn(&ToolName) -> Option<&'a Use>,
    used: &[Used],
    now: Timestamp,
) -> Vec<Body> {
    let told = ToolsUsed { tools: used.to_vec(), at: now };
    let alerts = used.iter().filter_map(|used| {
        let after = add(row(&used.tool).cloned(), &used.tally, now);
        Some(Body::Tool(used.tool.clone(), Event::Alerted(after.alert(now)?)))
    });
    let told = Body::Watch(instance.to_owned(), watch::Event::ToolsUsed(told));
    [told].into_iter().chain(alerts).collect()
}

/// The row after something was said of the tool itself.
pub(crate) fn apply(used: Option<Use>, event: &Event) -> Option<Use> {
    match event {
        Event::Made(_) => used,
        Event::Alerted(alerted) => used.map(|it| Use { alerted_at: Some(alerted.at), ..it }),
    }
}

/// The row after a summary.
pub(crate) fn counted(used: Option<Use>, name: &str, told: &ToolsUsed) -> Option<Use> {
    match told.tools.iter().find(|it| it.tool.as_str() == name) {
        Some(it) => Some(add(used, &it.tally, told.at)),
        None => used,
    }
}

/// How a tool has done after so many more calls.
pub fn add(used: Option<Use>, tally: &Tally, at: Timestamp) -> Use {
    let mut used = used.unwrap_or_default();
    let (today, hour) = (day(at), at.as_micros().div_euclid(HOUR_US));
    match used.days.last_mut() {
        // A clock that was set back counts for the last day that it showed.
        Some(last) if today <= last.day => last.tally.add(tally),
        _ => {
            used.days.push(Day { day: today, tally: *tally });
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

impl Use {
    /// In an hour with so many calls at least half of them failed, and that is so many times as much as usual;
    /// once in an hour.
    fn alert(&self, now: Timestamp) -> Option<Alerted> {
        let Use { calls, failures, .. } = *self;
        let all = self.days.iter().fold(Tally::default(), |all, day| {
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

impl Tally {
    pub fn add(&mut self, other: &Tally) {
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

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a call of a tool comes to, as the tool is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Of all that callers are told of the tool.
    pub hash: String,
    /// The class of what it does.
    pub capability: String,
    /// How far that class reaches.
    pub tier: Tier,
    /// Whose schedule or run it is about.
    pub agent: Option<AgentName>,
    /// The schedule or run that it is done to.
    pub resource: Option<String>,
}
