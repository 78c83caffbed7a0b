//! Text that others wrote, made safe to show: a terminal does nothing with it but print it, and it looks
//! like what it is.

/// Of a line that others wrote.
const FENCE_COLUMNS: usize = 72;

/// A prompt, each line behind a bar, so that none looks like one of ours.
pub(crate) fn fenced(prompt: &str) -> String {
    let mut lines = Vec::new();
    for line in prompt.split('\n') {
        // No line is left to the terminal to break.
        let line: Vec<char> = visible(line).chars().collect();
        let parts = line.chunks(FENCE_COLUMNS).map(|part| part.iter().collect::<String>());
        let parts: Vec<String> = parts.collect();
        lines.push(format!("  | {}", parts.join("\n  | ")));
    }
    format!("prompt, as it is written (not by Midwatch)\n{}", lines.join("\n"))
}

/// With an escape in the place of everything that does not look like what it is, on one line.
pub(crate) fn on_one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// With an escape in the place of everything that does not look like what it is.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            _ if c.is_control() || is_deceptive(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

/// Characters that hide, reorder or break a line of text.
pub(crate) fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
