//! What the ids of schedules, runs, approvals and tokens share. Hashes, clocks and random numbers that ids are made from
//! are arguments here.

/// Digits of an id that starts with its creation time.
const TIMED_DIGITS: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {noun} id `{text}`")]
pub struct InvalidId {
    noun: &'static str,
    text: String,
}

impl InvalidId {
    pub(crate) fn new(noun: &'static str, text: &str) -> InvalidId {
        InvalidId { noun, text: text.chars().take(80).collect() }
    }
}

pub(crate) fn is_timed(hex: &str) -> bool {
    hex.len() == TIMED_DIGITS && is_hex(hex)
}

pub(crate) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Methods and conversions of every id.
macro_rules! id {
    ($(#[$doc:meta])* $id:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String")]
        pub struct $id(String);

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

        impl std::fmt::Display for $id {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.0
            }
        }

        impl TryFrom<String> for $id {
            type Error = $crate::id::InvalidId;

            fn try_from(text: String) -> Result<$id, $crate::id::InvalidId> {
                text.parse()
            }
        }
    };
}

pub(crate) use id;

/// An id that starts with its creation time, so that ids sort by it.
macro_rules! timed_id {
    ($id:ident $prefix:literal $noun:literal) => {
        $crate::id::id! {
            #[doc = concat!("Invariant: `", $prefix, "` and 32 hexadecimal digits that sort by creation time.")]
            $id
        }

        impl $id {
            pub fn of(time_ordered: u128) -> $id {
                $id(format!(concat!($prefix, "{:032x}"), time_ordered))
            }
        }

        impl std::str::FromStr for $id {
            type Err = $crate::id::InvalidId;

            fn from_str(text: &str) -> Result<$id, $crate::id::InvalidId> {
                let hex = text.strip_prefix($prefix);
                match hex.is_some_and($crate::id::is_timed) {
                    true => Ok($id(text.to_owned())),
                    false => Err($crate::id::InvalidId::new($noun, text)),
                }
            }
        }
    };
}
pub(crate) use timed_id;

#[cfg(test)]
mod tests {
    use crate::{RunId, ScheduleId};

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
