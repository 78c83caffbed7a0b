//! Breaks text into lines between words.

use unicode_width::UnicodeWidthStr;

/// The text in lines of at most `width` columns, each after the first with `indent` before it. A word that is longer than a
/// line, such as a path, stays whole.
pub(in crate::cli) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let is_first_line = lines.len() == 1;
        let Some(line) = lines.last_mut() else { break };
        let indented = if is_first_line { 0 } else { indent.width() };
        match line.is_empty() {
            true => line.push_str(word),
            false if indented + line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{indent}"))
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
    }
}
