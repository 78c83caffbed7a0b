//! Text that agents and other people wrote, made safe to print on a terminal.

use api::display::{is_deceptive, visible};

/// Width at which a line of a prompt is broken, so that the terminal never breaks it itself.
const FENCE_COLUMNS: usize = 72;

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
/// continues after a `+`, so that this can be told from a line break of the prompt.
pub(crate) fn fence_prompt(prompt: &str, authors: &[String]) -> String {
    let mut lines = Vec::new();
    for line in prompt.split('\n') {
        let line: Vec<char> = visible(line).chars().collect();
        let parts = line.chunks(FENCE_COLUMNS).map(|part| part.iter().collect::<String>());
        let parts: Vec<String> = parts.collect();
        lines.push(format!("  | {}", parts.join("\n  + ")));
    }
    let by = match authors {
        [] => "not written by Midwatch".to_owned(),
        authors => format!("written by {}", authors.join(", ")),
    };
    format!("prompt ({by}, shown unchanged)\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_can_be_told_from_a_line_break_of_the_prompt() {
        let (long, rest) = ("a".repeat(FENCE_COLUMNS), "b");
        let wrapped = fence_prompt(&format!("{long}{rest}"), &["uid:0".to_owned()]);
        let broken = fence_prompt(&format!("{long}\n{rest}"), &[]);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let line = format!("  | {long}");
        let head = "prompt (written by uid:0, shown unchanged)";
        assert_eq!(lines(&wrapped), [head, &line, "  + b"]);
        let head = "prompt (not written by Midwatch, shown unchanged)";
        assert_eq!(lines(&broken), [head, &line, "  | b"]);
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
