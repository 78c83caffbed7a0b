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
