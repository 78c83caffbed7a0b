//! Breaks text into lines between words.

use unicode_width::UnicodeWidthStr;

/// The text in lines of at most `width` columns, each after the first with `indent` before it. A word that is longer than a
/// line, such as a path, stays whole, and so does a command in backticks if it fits on a line.
pub(in crate::cli) fn wrap(text: &str, width: usize, indent: &str) -> String {
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

/// The words of a text. What is in backticks is one word unless that would be longer than a line.
fn words(text: &str, width: usize) -> Vec<String> {
    let is_open = |words: &[&str]| {
        !words.iter().map(|word| word.matches('`').count()).sum::<usize>().is_multiple_of(2)
    };
    let (mut found, mut quoted) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        quoted.push(word);
        if is_open(&quoted) {
            continue;
        }
        match quoted.join(" ") {
            whole if whole.width() <= width => found.push(whole),
            _ => found.extend(quoted.iter().map(|&word| word.to_owned())),
        }
        quoted.clear();
    }
    found.extend(quoted.iter().map(|&word| word.to_owned()));
    found
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
    }
}
