//! Breaks text into lines between words.

use unicode_width::UnicodeWidthStr;

/// The text in lines of at most `width` columns, each after the first with `indent` before it. A word that is longer than a
/// line, such as a path, stays whole, and so does a command in backticks if it fits on a line.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in &words(text, width.saturating_sub(indent.width())) {
        let is_first_line = lines.len() == 1;
        let Some(line) = lines.last_mut() else { break };
        let indented = if is_first_line { 0 } else { indent.width() };
        match line.is_empty() {
            true => line.push_str(word),
            false if indented + line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.clone()),
        }
    }
    lines.join(&format!("\n{indent}"))
}

/// What begins a sentence; its other lines are indented as far.
const LABELS: [&str; 5] = ["error: ", "hint: ", "warning: ", "note: ", "server: "];

/// Sentences, one per line, each in lines of at most `width` columns. Only a line that is too long is changed.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let fitted = |line: &str| {
        if line.width() <= width {
            return line.to_owned();
        }
        let sentence = line.trim_start();
        let label = LABELS.iter().find(|label| sentence.starts_with(**label));
        let margin = line.len() - sentence.len();
        let indent = " ".repeat(margin + label.map_or(0, |label| label.len()));
        let first = " ".repeat(margin);
        let (label, sentence) = sentence.split_at(label.map_or(0, |label| label.len()));
        let lines = wrap(sentence, width.saturating_sub(indent.len()), "");
        format!("{first}{label}{}", lines.replace('\n', &format!("\n{indent}")))
    };
    text.split('\n').map(fitted).collect::<Vec<_>>().join("\n")
}

/// The words of a text. What is in backticks is one word unless that would be longer than a line.
fn words(text: &str, width: usize) -> Vec<String> {
    let is_open = |words: &[&str]| {
        !words.iter().map(|word| word.matches('`').count()).sum::<usize>().is_multiple_of(2)
    };
    let (mut found, mut quoted) = (Vec::new(), Vec::new());
    for word in text.split(char::is_whitespace) {
        // Spaces count within backticks only.
        if word.is_empty() && quoted.is_empty() {
            continue;
        }
        quoted.push(word);
        if is_open(&quoted) {
            continue;
        }
        match quoted.join(" ") {
            whole if whole.width() <= width => found.push(whole),
            _ => found.extend(spoken(&quoted)),
        }
        quoted.clear();
    }
    found.extend(spoken(&quoted));
    found
}

fn spoken(words: &[&str]) -> impl Iterator<Item = String> {
    words.iter().filter(|word| !word.is_empty()).map(|&word| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let check = |text: &str, expected: &str| assert_eq!(wrap(text, 12, "  "), expected);
        check("", "");
        check("one two", "one two");
        check("one two three four", "one two\n  three four");
        check("a/very/long/path stays whole", "a/very/long/path\n  stays\n  whole");
        check("run `midwatch up` now", "run\n  `midwatch\n  up` now");
        let wide = |text: &str, expected: &str| assert_eq!(wrap(text, 16, "  "), expected);
        wide("now run `midwatch up`, then go", "now run\n  `midwatch up`,\n  then go");
        wide("a lone ` is a character", "a lone ` is a\n  character");
        wide("now try to run `a  b`", "now try to run\n  `a  b`");
    }

    #[test]
    fn sentences_that_are_too_long_break_below_their_first_word() {
        for (text, expected) in [
            ("short  line", "short  line"),
            (
                "run `run_000660` queued; `watch run_000660` follows",
                "run `run_000660`\nqueued;\n`watch run_000660`\nfollows",
            ),
            ("error: it does not exist [a]", "error: it does not\n       exist [a]"),
            (" hint: see the list of runs", " hint: see the list\n       of runs"),
            ("one\n\n  two words and some more", "one\n\n  two words and some\n  more"),
        ] {
            assert_eq!(fit(text, 20), expected);
        }
    }
}
