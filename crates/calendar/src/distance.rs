//! How far instants are from each other, for people: `3h20m`, `5m ago`.

use crate::civil::SECOND_US;

/// In seconds, largest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

/// A span in its two largest units.
pub fn distance(us: i64) -> String {
    let seconds = us / SECOND_US;
    let Some(first) = UNITS.iter().position(|(_, unit)| *unit <= seconds) else {
        return "under 1s".to_owned();
    };
    let mut rest = seconds;
    let mut text = String::new();
    for (name, unit) in UNITS.iter().skip(first).take(2) {
        if *unit <= rest {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    text
}

/// How far an instant is from now: `5m ago`, `in 3h20m`, `now`.
///
/// ```
/// use calendar::relative;
///
/// assert_eq!(relative(0, 300_000_000), "5m ago");
/// assert_eq!(relative(12_000_000_000, 0), "in 3h20m");
/// ```
pub fn relative(at_us: i64, now_us: i64) -> String {
    match at_us.saturating_sub(now_us) {
        away if -SECOND_US < away && away < SECOND_US => "now".to_owned(),
        away if 0 <= away => format!("in {}", distance(away)),
        away => format!("{} ago", distance(away.saturating_neg())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_has_the_two_largest_units() {
        for (seconds, expected) in [
            (1, "1s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m59s"),
            (3600, "1h"),
            (3601, "1h"),
            (86_399, "23h59m"),
            (86_400, "1d"),
            (86_400 * 14_610 + 7200, "14610d2h"),
        ] {
            assert_eq!(distance(seconds * SECOND_US), expected);
        }
        assert_eq!(distance(SECOND_US - 1), "under 1s");
    }

    #[test]
    fn distance_from_now_has_a_direction() {
        for (us, expected) in [
            (-SECOND_US, "1s ago"),
            (1 - SECOND_US, "now"),
            (0, "now"),
            (SECOND_US - 1, "now"),
            (SECOND_US, "in 1s"),
            (i64::MIN, "106751991d4h ago"),
        ] {
            assert_eq!(relative(us, 0), expected);
        }
    }
}
