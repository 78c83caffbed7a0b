//! A sentence of the engine as people read it: instants as local times, long ids shortened.

use calendar::parse_instant;

use super::short_id::short_ids;
use crate::view::View;

/// Ids that are long and can be shortened.
const LONG_IDS: [&str; 2] = ["run_", "apr_"];

/// With `--utc` instants stay as they are.
pub(in crate::cli) fn for_people(sentence: &str, view: &View) -> String {
    let words = sentence.split(' ').map(|word| {
        let is_edge = |c: char| matches!(c, ',' | ';' | ':' | '.' | '(' | ')' | '`');
        let core = word.trim_matches(is_edge);
        match shown(core, view) {
            Some(shown) => word.replacen(core, &shown, 1),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn shown(word: &str, view: &View) -> Option<String> {
    if LONG_IDS.iter().any(|prefix| word.starts_with(prefix)) {
        return short_ids(std::iter::once(word)).pop();
    }
    let is_instant = word.ends_with('Z') && parse_instant(word, None).is_ok();
    is_instant.then(|| view.time(word))
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
