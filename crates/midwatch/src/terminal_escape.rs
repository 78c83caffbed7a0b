//! Text that agents and other people wrote, made safe to print on a terminal.

use api::display::{is_deceptive, visible};
use unicode_width::UnicodeWidthChar;

/// Columns of the bar before a line.
const BAR_COLUMNS: usize = 4;

/// Replaces control characters, and characters that hide or reorder others, with escapes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match (c.is_control() && !matches!(c, '\n' | '\t')) || is_deceptive(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    escaped
}

/// A prompt with a bar before every line, so that no line of it can pass for output of Midwatch. A line that is too long
/// continues after a `+`, so that this can be told from a line break of the prompt. It is broken after a space where there
/// is one; no character is left out.
pub(crate) fn fence_prompt(prompt: &str, authors: &[String], width: usize) -> String {
    let columns = width.saturating_sub(BAR_COLUMNS).max(1);
    let lines = prompt.split('\n').map(|line| {
        let parts = break_line(&visible(line), columns);
        format!("  | {}", parts.join("\n  + "))
    });
    let lines: Vec<String> = lines.collect();
    let by = match authors {
        [] => "not written by Midwatch".to_owned(),
        authors => format!("written by {}", authors.join(", ")),
    };
    format!("prompt ({by}, shown unchanged)\n{}", lines.join("\n"))
}

/// The line in parts of at most this many columns.
fn break_line(line: &str, columns: usize) -> Vec<String> {
    let (mut parts, mut part, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let width = c.width().unwrap_or_default();
        if columns < used + width {
            let end = part.rfind(' ').map_or(part.len(), |space| space + 1);
            let rest = part.split_off(end);
            used = rest.chars().filter_map(UnicodeWidthChar::width).sum();
            parts.push(std::mem::replace(&mut part, rest));
        }
        part.push(c);
        used += width;
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_can_be_told_from_a_line_break_of_the_prompt() {
        let (long, rest) = ("a".repeat(56), "b");
        let wrapped = fence_prompt(&format!("{long}{rest}"), &["uid:0".to_owned()], 60);
        let broken = fence_prompt(&format!("{long}\n{rest}"), &[], 60);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let line = format!("  | {long}");
        let head = "prompt (written by uid:0, shown unchanged)";
        assert_eq!(lines(&wrapped), [head, &line, "  + b"]);
        let head = "prompt (not written by Midwatch, shown unchanged)";
        assert_eq!(lines(&broken), [head, &line, "  | b"]);
    }

    #[test]
    fn lines_of_a_prompt_are_broken_between_words_and_lose_nothing() {
        for (line, expected) in [
            ("", &[""][..]),
            ("what changed", &["what changed"]),
            ("what changed since yesterday", &["what changed ", "since ", "yesterday"]),
            ("averylongwordofmany letters", &["averylongword", "ofmany ", "letters"]),
            ("名前の長いスケジュール", &["名前の長いス", "ケジュール"]),
        ] {
            let parts = break_line(line, 13);
            assert_eq!(parts, expected);
            assert_eq!(parts.concat(), line);
        }
    }

    #[test]
    fn control_and_deceptive_characters_are_escaped() {
        for (text, expected) in [
            ("größe\n\tin lines\r\n✓", "größe\n\tin lines\n✓"),
            ("\x1b[2Jgone", "\\u{1b}[2Jgone"),
            ("done\rfailed", "done\\rfailed"),
            ("\u{9b}31m \x7f \0", "\\u{9b}31m \\u{7f} \\u{0}"),
            ("txt.\u{202e}exe \u{2066}\u{200b}", "txt.\\u{202e}exe \\u{2066}\\u{200b}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }
}
