//! Building blocks of the text output: pairs, paragraphs and counts.

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

/// Warnings, one per line.
pub(in crate::cli) fn warnings(warnings: &[String]) -> String {
    let lines = warnings.iter().map(|warning| format!("warning: {warning}"));
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
