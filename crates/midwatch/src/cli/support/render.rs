//! Building blocks of the text output: pairs, paragraphs and counts.

use unicode_width::UnicodeWidthStr;

use crate::view::View;
use crate::wrap::{fit, wrap};

/// Columns before the value of a pair.
pub(in crate::cli) const NAME_COLUMNS: usize = 15;

/// Joins the parts that are not empty, with an empty line between them.
pub(in crate::cli) fn paragraphs(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// A count and its noun: `1 slot`, `2 slots`.
pub(in crate::cli) fn count_of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `1 entry`, `2 entries` (of the ledger).
pub(in crate::cli) fn entries(count: u64) -> String {
    count_of(count, "entry", "entries")
}

/// A size for people: `12 KiB`.
pub(in crate::cli) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift != 0) {
        Some((unit, shift)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => count_of(bytes, "byte", "bytes"),
    }
}

/// Names and values, one pair per line.
pub(in crate::cli) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    // No line of a value begins where names do.
    let indented = |value: String| value.replace('\n', "\n               ");
    let lines = pairs.into_iter().map(|(name, value)| format!("{name:<14} {}", indented(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Pairs whose values are broken between words where they are too long for the terminal.
pub(in crate::cli) fn fitted_pairs<'a>(
    view: &View,
    rows: impl IntoIterator<Item = (&'a str, String)>,
) -> String {
    let width = view.width.saturating_sub(NAME_COLUMNS);
    let fitted = |line: &str| match line.width() <= width {
        true => line.to_owned(),
        false => wrap(line, width, ""),
    };
    pairs(
        rows.into_iter()
            .map(|(name, value)| (name, value.lines().map(fitted).collect::<Vec<_>>().join("\n"))),
    )
}

/// Warnings, each on a line of its own.
pub(in crate::cli) fn warnings(view: &View, warnings: &[String]) -> String {
    let lines = warnings.iter().map(|warning| fit(&format!("warning: {warning}"), view.width));
    lines.collect::<Vec<_>>().join("\n")
}

/// `yes` or `no`.
pub(in crate::cli) fn yes_no(is_yes: bool) -> String {
    if is_yes { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_broken_between_words() {
        let view = View::fixed(40, "UTC", "2026-03-28T12:30:00Z");
        let rows = [
            ("message", "the program exited with code 127: not found".to_owned()),
            ("path", "/a/path/that/is/longer/than/a/line".to_owned()),
            ("argv", "sh -c 'a  b'".to_owned()),
        ];
        let expected = [
            "message        the program exited with",
            "               code 127: not found",
            "path           /a/path/that/is/longer/than/a/line",
            "argv           sh -c 'a  b'",
        ];
        assert_eq!(fitted_pairs(&view, rows).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn sizes_are_shown_in_their_largest_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1_023, "1023 bytes"),
            (1_024, "1.0 KiB"),
            (1_600, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 30) - 1, "1023.9 MiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
