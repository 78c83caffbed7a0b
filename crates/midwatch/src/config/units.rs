//! Sizes and spans with their units, such as `10MiB` and `1h30m`.

use std::time::Duration;

const BYTE_UNITS: &[(&str, u64)] = &[
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("b", 1),
];

const SPAN_UNITS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A number of digits only; `str::parse` would also accept a sign.
pub(super) fn parse_digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A size such as `10MiB`. `M` alone is refused, because it is ambiguous.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    let unit = unit.to_ascii_lowercase();
    let (_, factor) = BYTE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

/// A size in its largest whole unit.
pub(super) fn format_bytes(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = units.into_iter().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    whole.map_or_else(|| format!("{bytes}B"), |(name, factor)| format!("{}{name}", bytes / factor))
}

/// A span such as `90s` or `1h30m`: units from large to small, each at most once.
pub(super) fn parse_span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut units = SPAN_UNITS;
    let mut millis: u64 = 0;
    loop {
        let (number, tail) = split_number(rest)?;
        let end = tail.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let index = units.iter().position(|(name, _)| *name == unit)?;
        let (_, factor) = units.get(index)?;
        millis = millis.checked_add(number.checked_mul(*factor)?)?;
        (rest, units) = (tail.trim_start(), units.get(index + 1..)?);
        if rest.is_empty() {
            return Some(Duration::from_millis(millis));
        }
    }
}

/// A span in its largest whole unit.
pub(super) fn format_span(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let whole = SPAN_UNITS.iter().find(|(_, factor)| millis.is_multiple_of(*factor));
    whole.map_or_else(
        || format!("{millis}ms"),
        |(name, factor)| format!("{}{name}", millis / factor),
    )
}

/// Splits `10MiB` into number and rest; a space may be between them.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some((parse_digits(number)?, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_an_unambiguous_unit() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_bytes(text), expected, "{text}");
        };
        check("10MiB", Some(10 << 20));
        check(" 10 mib ", Some(10 << 20));
        check("500kB", Some(500_000));
        check("0B", Some(0));
        check("17179869183GiB", Some(17_179_869_183 << 30));
        check("17179869184GiB", None); // 2^64: one past the limit.
        for text in ["", "10", "10M", "MiB", "-1MiB", "+1MiB", "1.5MiB", "1MiBs", "1Mi B", "９MiB"]
        {
            check(text, None);
        }
    }

    #[test]
    fn spans_have_units_from_large_to_small() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_span(text), expected.map(Duration::from_millis), "{text}");
        };
        check("0s", Some(0));
        check("90s", Some(90_000));
        check("1h30m", Some(5_400_000));
        check("1d 2h 3m 4s 5ms", Some(93_784_005));
        check("250ms", Some(250));
        for text in
            ["", "0", "60", "s", "1m1h", "1s1s", "-1s", "1.5s", "1 s x", "1w", "99999999999999999d"]
        {
            check(text, None);
        }
    }

    #[test]
    fn limits_print_in_their_largest_whole_unit() {
        assert_eq!(format_bytes(64 << 10), "64KiB");
        assert_eq!(format_bytes(1500), "1500B");
        assert_eq!(format_span(Duration::from_secs(86_400)), "1d");
        assert_eq!(format_span(Duration::from_secs(90)), "90s");
    }
}
