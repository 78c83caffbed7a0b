//! Helpers for user input in messages and for types that are stored as text.

use std::str::FromStr;

use crate::{Cron, Span, TimeOfDay, Weekdays, Zone};

/// User input for a message: cut, with `…`, if it is longer than `bytes_max`.
pub(crate) fn truncate_for_message(text: &str, bytes_max: usize) -> String {
    match text.len() <= bytes_max {
        true => text.to_owned(),
        false => text.chars().take(bytes_max / 2).chain(['…']).collect(),
    }
}

/// The conversions that let serde store a value as the text that it prints and parses.
macro_rules! serialize_as_text {
    ($($type:ty),*) => {$(
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = <$type as FromStr>::Err;

            fn try_from(text: String) -> Result<$type, Self::Error> {
                text.parse()
            }
        }
    )*};
}

serialize_as_text!(Cron, Span, TimeOfDay, Weekdays, Zone);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_texts_are_truncated() {
        assert_eq!(truncate_for_message("abcd", 4), "abcd");
        assert_eq!(truncate_for_message("abcde", 4), "ab…");
        assert_eq!(truncate_for_message("äöü", 4), "äö…");
    }
}
