//! The terms of a schedule: overlap, missed slots, retries, limits.

use std::fmt;
use std::str::FromStr;

use calendar::{EVERY_MIN, Span};
use serde::{Deserialize, Serialize};

use crate::backend::Tier;
use crate::money::Money;
use crate::time::Timestamp;

pub const BUFFER_DEFAULT: u32 = 100;
pub const BUFFER_MAX: u32 = 1_000;
pub const ALLOW_DEFAULT: u32 = 4;
pub const ALLOW_MAX: u32 = 1_000;
pub const CATCH_UP_DEFAULT: u32 = 100;
pub const CATCH_UP_MAX: u32 = 1_000;
pub const ATTEMPTS_MAX: u32 = 100;
pub const BACKOFF_FACTOR_MAX: u32 = 10;
/// A day.
pub const BACKOFF_CAP_MAX: Span = seconds(86_400);
pub const PRIORITY_MAX: u8 = 9;
pub const KEYS_MAX: usize = 8;
const KEY_NAME_BYTES_MAX: usize = 64;

/// Every term has a default; defaults are not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    #[serde(skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// How late a missed slot may still run; derived from the trigger by default.
    #[serde(skip_serializing_if = "is_default")]
    pub window: Option<Span>,
    /// Longest random delay of a slot.
    #[serde(skip_serializing_if = "is_default")]
    pub jitter: Option<Span>,
    #[serde(skip_serializing_if = "is_default")]
    pub retry: Retry,
    /// Failed runs in a row after which the schedule is paused; 0 for never.
    #[serde(skip_serializing_if = "is_pause_default")]
    pub pause_after: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub resume: Resume,
    /// Higher priorities start first.
    #[serde(skip_serializing_if = "is_priority_default")]
    pub priority: u8,
    /// Concurrency keys that its runs share with other schedules, each with a limit of running runs.
    #[serde(skip_serializing_if = "is_default")]
    pub keys: Vec<Key>,
    /// Runs in one UTC day; derived from the day's slots by default.
    #[serde(skip_serializing_if = "is_default")]
    pub per_day: Option<u32>,
    /// Tokens that its runs may use in one UTC day.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens_per_day: Option<u32>,
    /// Money that its runs may cost in one UTC day.
    #[serde(skip_serializing_if = "is_default")]
    pub money_per_day: Option<Money>,
    /// Total number of slots that get a run.
    #[serde(skip_serializing_if = "is_default")]
    pub max_fires: Option<u64>,
    /// No slots before this instant.
    #[serde(skip_serializing_if = "is_default")]
    pub start_at: Option<Timestamp>,
    /// No slots after this instant.
    #[serde(skip_serializing_if = "is_default")]
    pub end_at: Option<Timestamp>,
}

/// What to do with a slot while a run of the schedule is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Overlap {
    #[default]
    Skip,
    /// Buffer one slot; a newer one replaces it.
    BufferOne,
    /// Buffer up to this many slots, in order.
    BufferAll(u32),
    /// Allow this many live runs at a time.
    Allow(u32),
    /// Ask the live run to stop; start when it has ended.
    CancelOther,
    /// End the live run without waiting for its process; start at once.
    TerminateOther,
}

/// A concurrency key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    name: String,
    limit: u32,
}

/// What to do with slots that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Missed {
    /// Run the newest; its run covers the others.
    #[default]
    Latest,
    /// Run the oldest; its run covers the others.
    Earliest,
    /// Run the newest ones, up to this many, one after the other.
    All(u32),
    Skip,
}

/// What to do with slots that were due during a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    #[default]
    Skip,
    AsMissed,
}

/// Retries of failed attempts, with exponential backoff and jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The most attempts of a run. By default, work with an external effect is not retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    pub initial: Span,
    pub factor: u32,
    pub cap: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {term} `{text}`")]
pub struct InvalidTerm {
    pub term: &'static str,
    pub text: String,
    pub hint: &'static str,
}

const PAUSE_AFTER_DEFAULT: u32 = 5;
const PRIORITY_DEFAULT: u8 = 5;
pub const ATTEMPTS_DEFAULT: u32 = 5;
const RETRY_DEFAULT: Retry =
    Retry { attempts: None, initial: seconds(5), factor: 2, cap: seconds(300) };
/// For long outages such as those of model providers.
const RETRY_PATIENT: Retry =
    Retry { attempts: Some(6), initial: seconds(30), factor: 4, cap: seconds(3_600) };

const fn seconds(count: i64) -> Span {
    match Span::from_millis(count * 1_000) {
        Some(span) => span,
        None => EVERY_MIN,
    }
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            overlap: Overlap::default(),
            missed: Missed::default(),
            window: None,
            jitter: None,
            retry: RETRY_DEFAULT,
            pause_after: PAUSE_AFTER_DEFAULT,
            resume: Resume::default(),
            priority: PRIORITY_DEFAULT,
            keys: Vec::new(),
            per_day: None,
            tokens_per_day: None,
            money_per_day: None,
            max_fires: None,
            start_at: None,
            end_at: None,
        }
    }
}

impl Default for Retry {
    fn default() -> Retry {
        RETRY_DEFAULT
    }
}

impl Overlap {
    /// How many runs of the schedule may be live at a time.
    pub fn live_max(self) -> usize {
        match self {
            Overlap::Allow(max) => max as usize,
            Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll(_) => 1,
            Overlap::CancelOther | Overlap::TerminateOther => 1,
        }
    }

    /// Whether a due slot ends live runs.
    pub fn ends_others(self) -> bool {
        match self {
            Overlap::CancelOther | Overlap::TerminateOther => true,
            Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll(_) | Overlap::Allow(_) => false,
        }
    }
}

impl Key {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many runs with this key may be running at a time.
    pub fn limit(&self) -> u32 {
        self.limit
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            1 => out.write_str(&self.name),
            limit => write!(out, "{}:{limit}", self.name),
        }
    }
}

impl FromStr for Key {
    type Err = InvalidTerm;

    fn from_str(text: &str) -> Result<Key, InvalidTerm> {
        let invalid = || InvalidTerm {
            term: "concurrency key",
            text: text.to_owned(),
            hint: "use a name of a-z, A-Z, 0-9, `.`, `_`, `-`, `/`, or `NAME:N` with N up to 1000",
        };
        let (name, limit) = named_count(text).ok_or_else(invalid)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        let is_name = (1..=KEY_NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_plain);
        match is_name {
            true => Ok(Key { name: name.to_owned(), limit: limit.unwrap_or(1) }),
            false => Err(invalid()),
        }
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for Key {
    type Error = InvalidTerm;

    fn try_from(text: String) -> Result<Key, InvalidTerm> {
        text.parse()
    }
}

impl Retry {
    /// The delays in the notation that [`Retry::with_backoff`] reads.
    pub fn backoff(&self) -> String {
        format!("{}:{}:{}", self.initial, self.factor, self.cap)
    }

    /// Replaces the delays; `patient` also sets the number of attempts.
    pub fn with_backoff(self, text: &str) -> Result<Retry, InvalidTerm> {
        if text == "patient" {
            return Ok(RETRY_PATIENT);
        }
        let mut parts = text.split(':');
        let parsed = (|| {
            let initial = parts.next()?.parse().ok()?;
            let (factor, cap) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            parts.next().is_none().then_some(Retry { initial, factor, cap, ..self })
        })();
        parsed.ok_or_else(|| InvalidTerm {
            term: "backoff",
            text: text.to_owned(),
            hint: "use `INITIAL:FACTOR:CAP`, such as `5s:2:5m`, or `patient`",
        })
    }

    /// The most attempts of a run of this tier.
    pub fn attempts_max(&self, tier: Tier) -> u32 {
        self.attempts.unwrap_or(match tier {
            Tier::External => 1,
            _ => ATTEMPTS_DEFAULT,
        })
    }

    /// The random delay after this many attempts, from half the backoff of that attempt to all of it.
    pub fn delay_us(&self, attempts: u32, random: u64) -> i64 {
        let factor = i64::from(self.factor).saturating_pow(attempts.saturating_sub(1));
        let most = self.initial.as_micros().saturating_mul(factor).min(self.cap.as_micros());
        let most = u64::try_from(most).unwrap_or_default();
        let least = most / 2;
        i64::try_from(least + random % (most - least + 1)).unwrap_or_default()
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Overlap::Skip => out.write_str("skip"),
            Overlap::BufferOne => out.write_str("buffer_one"),
            Overlap::BufferAll(max) => write!(out, "buffer_all:{max}"),
            Overlap::Allow(max) => write!(out, "allow:{max}"),
            Overlap::CancelOther => out.write_str("cancel_other"),
            Overlap::TerminateOther => out.write_str("terminate_other"),
        }
    }
}

impl FromStr for Overlap {
    type Err = InvalidTerm;

    fn from_str(text: &str) -> Result<Overlap, InvalidTerm> {
        let invalid = || InvalidTerm {
            term: "overlap policy",
            text: text.to_owned(),
            hint: "use `skip`, `buffer_one`, `buffer_all:N` or `allow:N` with N up to 1000, \
                   `cancel_other` or `terminate_other`",
        };
        let (name, count) = named_count(text).ok_or_else(invalid)?;
        match (name, count) {
            ("skip", None) => Ok(Overlap::Skip),
            ("buffer_one", None) => Ok(Overlap::BufferOne),
            ("buffer_all", count) => Ok(Overlap::BufferAll(count.unwrap_or(BUFFER_DEFAULT))),
            ("cancel_other", None) => Ok(Overlap::CancelOther),
            ("terminate_other", None) => Ok(Overlap::TerminateOther),
            ("allow", count) => Ok(Overlap::Allow(count.unwrap_or(ALLOW_DEFAULT))),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Latest => out.write_str("latest"),
            Missed::Earliest => out.write_str("earliest"),
            Missed::All(max) => write!(out, "all:{max}"),
            Missed::Skip => out.write_str("skip"),
        }
    }
}

impl FromStr for Missed {
    type Err = InvalidTerm;

    fn from_str(text: &str) -> Result<Missed, InvalidTerm> {
        let invalid = || InvalidTerm {
            term: "policy for missed slots",
            text: text.to_owned(),
            hint: "use `latest`, `earliest`, `all:N` or `skip`, with N up to 1000",
        };
        let (name, count) = named_count(text).ok_or_else(invalid)?;
        match (name, count) {
            ("latest", None) => Ok(Missed::Latest),
            ("earliest", None) => Ok(Missed::Earliest),
            ("all", count) => Ok(Missed::All(count.unwrap_or(CATCH_UP_DEFAULT))),
            ("skip", None) => Ok(Missed::Skip),
            _ => Err(invalid()),
        }
    }
}

impl Resume {
    pub const fn name(self) -> &'static str {
        match self {
            Resume::Skip => "skip",
            Resume::AsMissed => "as_missed",
        }
    }
}

impl FromStr for Resume {
    type Err = InvalidTerm;

    fn from_str(text: &str) -> Result<Resume, InvalidTerm> {
        [Resume::Skip, Resume::AsMissed].into_iter().find(|it| it.name() == text).ok_or_else(|| {
            InvalidTerm {
                term: "policy for paused slots",
                text: text.to_owned(),
                hint: "use `skip` or `as_missed`",
            }
        })
    }
}

/// `name` or `name:count`, with a count from 1 to 1000.
fn named_count(text: &str) -> Option<(&str, Option<u32>)> {
    let Some((name, count)) = text.split_once(':') else { return Some((text, None)) };
    let count = count.parse().ok().filter(|count| (1..=BUFFER_MAX).contains(count))?;
    Some((name, Some(count)))
}

impl From<Overlap> for String {
    fn from(overlap: Overlap) -> String {
        overlap.to_string()
    }
}

impl TryFrom<String> for Overlap {
    type Error = InvalidTerm;

    fn try_from(text: String) -> Result<Overlap, InvalidTerm> {
        text.parse()
    }
}

impl From<Missed> for String {
    fn from(missed: Missed) -> String {
        missed.to_string()
    }
}

impl TryFrom<String> for Missed {
    type Error = InvalidTerm;

    fn try_from(text: String) -> Result<Missed, InvalidTerm> {
        text.parse()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_pause_default(failures: &u32) -> bool {
    *failures == PAUSE_AFTER_DEFAULT
}

fn is_priority_default(priority: &u8) -> bool {
    *priority == PRIORITY_DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_and_missed_policies_round_trip_through_text() {
        for text in
            ["skip", "buffer_one", "buffer_all:1000", "allow:1", "cancel_other", "terminate_other"]
        {
            assert_eq!(text.parse::<Overlap>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        for text in ["latest", "earliest", "all:7", "skip"] {
            assert_eq!(text.parse::<Missed>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "skip:1", "allow:0", "allow:1001", "allow:x", "all", "SKIP", "buffer_one:1"]
        {
            assert!(text.parse::<Overlap>().is_err(), "{text}");
        }
        for text in ["", "latest:1", "all:0", "all:1001", "all:", "all:-1", "allow"] {
            assert!(text.parse::<Missed>().is_err(), "{text}");
        }
        assert_eq!("all:1000".parse(), Ok(Missed::All(CATCH_UP_MAX)));
        assert_eq!("allow".parse(), Ok(Overlap::Allow(ALLOW_DEFAULT)));
        assert_eq!("all".parse(), Ok(Missed::All(CATCH_UP_DEFAULT)));
    }

    #[test]
    fn retry_delays_double_up_to_the_cap_and_are_at_least_half_of_it() {
        for (attempts, most_s) in [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (100, 300)] {
            let most = most_s * 1_000_000;
            for random in [0, 1, 2_499_999, 2_500_001, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
                let delay = RETRY_DEFAULT.delay_us(attempts, random);
                assert!((most / 2..=most).contains(&delay), "{attempts} {random} {delay}");
            }
            // Both ends are possible delays.
            let span = u64::try_from(most / 2).unwrap();
            assert_eq!(RETRY_DEFAULT.delay_us(attempts, 0), most / 2);
            assert_eq!(RETRY_DEFAULT.delay_us(attempts, span), most);
        }
        let least: i64 = (1..ATTEMPTS_DEFAULT).map(|it| RETRY_DEFAULT.delay_us(it, 0)).sum();
        assert!(30_000_000 < least, "five attempts take more than half a minute");
    }

    #[test]
    fn external_work_is_retried_only_if_attempts_are_given() {
        let tiers = [Tier::ReadOnly, Tier::LocalWrite, Tier::External];
        assert_eq!(tiers.map(|tier| RETRY_DEFAULT.attempts_max(tier)), [5, 5, 1]);
        let given = Retry { attempts: Some(5), ..RETRY_DEFAULT };
        assert_eq!(tiers.map(|tier| given.attempts_max(tier)), [5, 5, 5]);
        let stored = serde_json::to_string(&given).unwrap();
        assert_eq!(serde_json::from_str::<Retry>(&stored).unwrap(), given, "it is not the default");
    }

    #[test]
    fn backoff_round_trips_through_text() {
        let seven = Retry { attempts: Some(7), ..RETRY_DEFAULT };
        for text in ["1s:2:5m", "500ms:1:500ms", "1h30m:10:1d"] {
            let read = seven.with_backoff(text).unwrap();
            assert_eq!((read.attempts, read.backoff()), (Some(7), text.to_owned()));
        }
        let patient = seven.with_backoff("patient").unwrap();
        assert_eq!((patient.attempts, patient.backoff()), (Some(6), "30s:4:1h".to_owned()));
        for text in ["", "1s", "1s:2", "1s:2:5m:", "1s:2:5m:1", "0s:2:5m", "1s:-2:5m", "1s:2:x"] {
            assert!(seven.with_backoff(text).is_err(), "{text}");
        }
    }
}
