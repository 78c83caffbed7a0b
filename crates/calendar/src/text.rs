//! Texts in and out: what people typed, repeated in messages, and what is stored.

use std::str::FromStr;

use crate::{Cron, Span, TimeOfDay, Weekdays, Zone};

/// The beginning of a text that somebody typed, for repeating it in a message.
pub(crate) fn shorten(text: &str, bytes_max: usize) -> String {
    match text.len() <= bytes_max {
        true => text.to_owned(),
        false => text.chars().take(bytes_max / 2).chain(['…']).collect(),
    }
}

/// What serde needs to store a value as the text that it prints and parses.
macro_rules! stored_as_text {
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

stored_as_text!(Cron, Span, TimeOfDay, Weekdays, Zone);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_short_ones_are_not() {
        assert_eq!(shorten("abcd", 4), "abcd");
        assert_eq!(shorten("abcde", 4), "ab…");
        assert_eq!(shorten("äöü", 4), "äö…");
    }
}
