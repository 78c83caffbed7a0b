//! Short forms of ids in tables. Commands take them, because they take every unique prefix of an id.

use std::collections::BTreeSet;

/// The prefix and the digits of an id that tell its creation time: rarely do two objects share them.
const SHORT_CHARS: usize = 20;

/// The ids cut to the same length, at which they still differ.
pub(in crate::cli) fn short_ids<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let distinct = ids.clone().collect::<BTreeSet<_>>().len();
    let cut = |id: &str, chars: usize| id.chars().take(chars).collect::<String>();
    let longest = ids.clone().map(str::len).max().unwrap_or_default();
    let differ = |chars: &usize| {
        ids.clone().map(|id| cut(id, *chars)).collect::<BTreeSet<_>>().len() == distinct
    };
    let chars = (SHORT_CHARS..longest).find(differ).unwrap_or(longest);
    ids.map(|id| cut(id, chars)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_differ_as_long_as_the_ids_do() {
        let check = |ids: &[&str], expected: &[&str]| {
            assert_eq!(short_ids(ids.iter().copied()), expected);
        };
        let id = "run_000660822ab39ba9000057eaf176a2d0";
        check(&[id], &["run_000660822ab39ba9"]);
        check(&[id, id], &["run_000660822ab39ba9", "run_000660822ab39ba9"]);
        let twin = "run_000660822ab39ba9000157eaf176a2d0";
        check(&[id, twin], &["run_000660822ab39ba90000", "run_000660822ab39ba90001"]);
        check(&["run_1"], &["run_1"]);
        check(&[], &[]);
    }
}
