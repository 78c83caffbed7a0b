//! A sentence of the engine as people read it: instants as local times, long ids shortened.

use super::short_id::short_ids;
use crate::view::View;

/// Ids that are long and can be shortened.
const LONG_IDS: [&str; 2] = ["run_", "apr_"];

/// With `--utc` instants stay as they are.
pub(in crate::cli) fn for_people(sentence: &str, view: &View) -> String {
    let sentence = view.localize(sentence);
    let words = sentence.split(' ').map(|word| {
        let is_edge = |c: char| matches!(c, ',' | ';' | ':' | '.' | '(' | ')' | '`');
        let id = word.trim_matches(is_edge);
        match LONG_IDS.iter().any(|prefix| id.starts_with(prefix)) {
            true => word.replacen(id, &short_ids(std::iter::once(id)).concat(), 1),
            false => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_ids_are_shown_as_tables_show_them() {
        let view = View::fixed(80, "Europe/Berlin", "2026-11-18T12:00:00Z");
        for (sentence, expected) in [
            (
                "the slot of 2026-11-18T02:00:00.123456Z fired run run_0006608d507c9ab7000057eaf176a2d0; done",
                "the slot of 18 Nov 03:00:00 fired run run_0006608d507c9ab7; done",
            ),
            (
                "slots (2026-11-18T02:00:00Z, 2025-11-18T02:00:00Z): `run_1`",
                "slots (18 Nov 03:00:00, 18 Nov 2025 03:00:00): `run_1`",
            ),
            ("the Zoo Z opens at 09:00", "the Zoo Z opens at 09:00"),
            ("", ""),
        ] {
            assert_eq!(for_people(sentence, &view), expected);
        }
    }
}
