//! Time spans as systemd writes them: `90`, `5min`, `1h 30min`, `1.5d`. Pure.

use calendar::Span;

/// Units and their length in microseconds. A month is a twelfth of a year of 365.25 days.
const UNITS: [(&[&str], f64); 9] = [
    (&["usec", "us", "µs"], 1.0),
    (&["msec", "ms"], 1e3),
    (&["", "s", "sec", "second", "seconds"], 1e6),
    (&["m", "min", "minute", "minutes"], 6e7),
    (&["h", "hr", "hour", "hours"], 3.6e9),
    (&["d", "day", "days"], 8.64e10),
    (&["w", "week", "weeks"], 6.048e11),
    (&["M", "month", "months"], 2.6298e12),
    (&["y", "year", "years"], 3.15576e13),
];

/// Parses a span that is a whole number of milliseconds and not zero. A number without a unit is in seconds.
pub(super) fn parse_span(text: &str) -> Option<Span> {
    let mut total_us = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end)?;
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        let length = UNITS.iter().find(|(names, _)| names.contains(&unit))?.1;
        total_us += number.parse::<f64>().ok()? * length;
        rest = after.trim_start();
    }
    let millis = total_us / 1e3;
    (millis.fract() == 0.0).then(|| Span::from_millis(millis as i64)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_numbers_with_units() {
        for (text, expected) in [
            ("90", Some("1m30s")),
            ("5min", Some("5m")),
            ("1h 30min", Some("1h30m")),
            ("1h30m", Some("1h30m")),
            ("1.5d", Some("1d12h")),
            ("2 weeks", Some("14d")),
            ("1month", Some("30d10h30m")),
            ("500ms", Some("500ms")),
            ("0", None),
            ("5us", None),
            ("soon", None),
            ("5 fortnights", None),
            ("infinity", None),
            ("", None),
        ] {
            let found = parse_span(text).map(|span| span.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
