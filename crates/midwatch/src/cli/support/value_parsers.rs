//! Parsers of flag values. They check the form only; the engine checks limits.

use std::str::FromStr;

use api::LIST_ITEMS_MAX;
use calendar::{InvalidSpan, Span};

/// The number of items of a list to show.
pub(in crate::cli) fn list_limit(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {LIST_ITEMS_MAX}"))
}

pub(in crate::cli) fn whole_number<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "write a whole number that is not negative and not too large")
}

pub(in crate::cli) fn tier(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "a tier is 0 (read-only), 1 (local write) or 2 (external)")
}

/// An absolute path. Empty text stays empty: it clears the setting. A `~` that the shell left is not the name of a
/// directory here; the engine refuses it.
pub(in crate::cli) fn absolute_path(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('~') {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    path.into_os_string().into_string().map_err(|_| "the path is not UTF-8".to_owned())
}

/// A span in whole seconds, rounded up.
pub(in crate::cli) fn seconds(text: &str) -> Result<u32, String> {
    let span: Span = text.parse().map_err(|error: InvalidSpan| error.to_string())?;
    Ok(u32::try_from(span.as_millis()).map_or(u32::MAX, |millis| millis.div_ceil(1000)))
}
