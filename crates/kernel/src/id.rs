//! Ids of schedules, runs, approvals and tokens. Hashes, clocks and random numbers that ids are made from
//! are arguments here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Digits of a schedule's id, unless another schedule already has that id.
pub const SCHEDULE_DIGITS: usize = 8;
const SCHEDULE_DIGITS_MAX: usize = 64;
const TIMED_DIGITS: usize = 32;

/// Invariant: `sch_` and 8 to 64 hexadecimal digits, a prefix of the hash of the first definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ScheduleId(String);

/// Invariant: `run_` and 32 hexadecimal digits that sort by creation time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RunId(String);

/// Invariant: `apr_` and 32 hexadecimal digits that sort by creation time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ApprovalId(String);

/// Invariant: `tok_` and 32 hexadecimal digits that sort by creation time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TokenId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {noun} id `{text}`")]
pub struct InvalidId {
    noun: &'static str,
    text: String,
}

impl ScheduleId {
    /// The id for a definition with this hash, using its first `digits` digits.
    ///
    /// ```
    /// assert_eq!(kernel::ScheduleId::of(&[0xab; 32], 8).as_str(), "sch_abababab");
    /// ```
    pub fn of(hash: &[u8; 32], digits: usize) -> ScheduleId {
        let digits = digits.clamp(SCHEDULE_DIGITS, SCHEDULE_DIGITS_MAX);
        let halves = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let hex = halves.filter_map(|half| char::from_digit(u32::from(half), 16));
        ScheduleId("sch_".chars().chain(hex.take(digits)).collect())
    }
}

impl FromStr for ScheduleId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<ScheduleId, InvalidId> {
        let digits = SCHEDULE_DIGITS..=SCHEDULE_DIGITS_MAX;
        match text
            .strip_prefix("sch_")
            .is_some_and(|hex| digits.contains(&hex.len()) && is_hex(hex))
        {
            true => Ok(ScheduleId(text.to_owned())),
            false => Err(InvalidId::new("schedule", text)),
        }
    }
}

impl InvalidId {
    fn new(noun: &'static str, text: &str) -> InvalidId {
        InvalidId { noun, text: text.chars().take(80).collect() }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Methods and conversions of every id.
macro_rules! id {
    ($id:ident) => {
        impl $id {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $id {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.0
            }
        }

        impl TryFrom<String> for $id {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<$id, InvalidId> {
                text.parse()
            }
        }
    };
}

/// An id that starts with its creation time, so that ids sort by it.
macro_rules! timed_id {
    ($id:ident $prefix:literal $noun:literal) => {
        id!($id);

        impl $id {
            pub fn of(time_ordered: u128) -> $id {
                $id(format!(concat!($prefix, "{:032x}"), time_ordered))
            }
        }

        impl FromStr for $id {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<$id, InvalidId> {
                let hex = text.strip_prefix($prefix);
                match hex.is_some_and(|hex| hex.len() == TIMED_DIGITS && is_hex(hex)) {
                    true => Ok($id(text.to_owned())),
                    false => Err(InvalidId::new($noun, text)),
                }
            }
        }
    };
}

id!(ScheduleId);
timed_id!(RunId "run_" "run");
timed_id!(ApprovalId "apr_" "approval");
timed_id!(TokenId "tok_" "token");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_wrong_shape_are_refused() {
        let run = format!("run_{}", "0".repeat(32));
        assert_eq!(run.parse::<RunId>().map(String::from), Ok(run.clone()));
        assert_eq!(
            "sch_0123abcd".parse::<ScheduleId>().map(String::from),
            Ok("sch_0123abcd".into())
        );
        for text in ["", "sch_", "sch_0123abc", "sch_0123ABCD", "sch_0123abcg", "run_0", &run[1..]]
        {
            assert!(
                text.parse::<ScheduleId>().is_err() && text.parse::<RunId>().is_err(),
                "{text}"
            );
        }
        assert!(format!("sch_{}", "0".repeat(65)).parse::<ScheduleId>().is_err());
    }

    #[test]
    fn run_ids_sort_by_creation_time() {
        assert!(RunId::of(9) < RunId::of(10) && RunId::of(u128::MAX) > RunId::of(u128::MAX >> 4));
    }
}
