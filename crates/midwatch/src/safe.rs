//! A prompt that others wrote, made safe to show: a terminal does nothing with it but print it, and it looks like what
//! it is.

use api::words::visible;

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
