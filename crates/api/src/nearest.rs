//! Suggestions for misspelt words.

/// Longer than any known word, and slow to compare.
const WORD_CHARS_MAX: usize = 64;

/// The candidate nearest to `word`, if at most a third of the letters differ.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if WORD_CHARS_MAX < word.chars().count() {
        return None;
    }
    let word = word.to_lowercase();
    let distance = |candidate: &str| {
        let distance = strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
        let wrong_max = word.chars().count().max(candidate.chars().count()).max(3) / 3;
        (distance <= wrong_max).then_some(distance)
    };
    let near = candidates.filter_map(|candidate| Some((distance(candidate)?, candidate)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let check = |word: &str, expected: Option<&str>| {
            let words = ["level", "files_max", "file_bytes_max"];
            assert_eq!(nearest(word, words.into_iter()), expected, "{word}");
        };
        check("levle", Some("level"));
        check("Level", Some("level"));
        check("file_max", Some("files_max"));
        check("file-bytes-max", Some("file_bytes_max"));
        check("colour", None);
        check("", None);
        check(&"level".repeat(100), None);
    }
}
