//! Formatting of timestamps.

use kernel::Timestamp;

/// RFC 3339 in UTC.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.as_micros()) {
        Ok(at) => at.to_string(),
        Err(_) => format!("{} µs", at.as_micros()),
    }
}
