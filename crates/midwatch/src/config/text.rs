//! Reading the file, and positions in its text for error messages.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use redact::redact;

use super::Error;

/// Larger than any configuration that a human writes.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The most characters of a line in an excerpt.
const EXCERPT_CHARS_MAX: usize = 100;

/// The most characters of a word in a message.
const QUOTED_CHARS_MAX: usize = 60;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a configuration file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, Error> {
    match read_bytes(path) {
        Ok(bytes) => decode(bytes, path).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(Error::of_file(path, format!("it cannot be read: {error}"))),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses pipes, without waiting for their other end to open.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = files::open_linked(path)?;
    let mut bytes = Vec::new();
    // One byte past the limit shows that the file is too large.
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(bytes: Vec<u8>, path: &Path) -> Result<String, Error> {
    check_size(bytes.len(), path)?;
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let hint =
            if utf16 { "it looks like UTF-16: save it as UTF-8" } else { "save it as UTF-8" };
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(bytes);
        let mut error = Error::of_file(path, "the file is not UTF-8 text".to_owned());
        error.hint = Some(hint.to_owned());
        // The lossy text is the same up to the first invalid byte, which becomes one character.
        error.at(&text, valid..valid)
    })
}

pub(super) fn check_size(bytes: usize, path: &Path) -> Result<(), Error> {
    if bytes <= FILE_BYTES_MAX {
        return Ok(());
    }
    let message = "the file is larger than 1 MiB, the limit of a configuration file";
    Err(Error::of_file(path, message.to_owned()))
}

/// Removes the byte order mark that editors on Windows add.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// A position in a text, counted from one; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) excerpt: String,
}

impl TextPosition {
    pub(super) fn of(text: &str, span: Range<usize>) -> TextPosition {
        let (before, after) = split(text, span.start);
        let lines = before.matches('\n').count();
        let head = before.rsplit('\n').next().unwrap_or_default();
        let tail = after.split('\n').next().unwrap_or_default();
        let line = u32::try_from(lines + 1).unwrap_or(u32::MAX);
        let column = head.chars().count();
        let width = split(after, span.end.saturating_sub(span.start)).0.chars().count();
        let whole = format!("{head}{}", tail.strip_suffix('\r').unwrap_or(tail));
        TextPosition {
            line,
            column: u32::try_from(column + 1).unwrap_or(u32::MAX),
            excerpt: excerpt(line, &whole, column, width),
        }
    }
}

/// The line with carets below the position.
fn excerpt(line: u32, text: &str, column: usize, width: usize) -> String {
    let shown = redact(text);
    let chars = shown.chars().count();
    let column = column.min(chars);
    let skipped = column.saturating_sub(EXCERPT_CHARS_MAX / 2);
    let window = shown.chars().skip(skipped).take(EXCERPT_CHARS_MAX);
    let window: String = window.map(printable).collect();
    let rest = window.chars().count().saturating_sub(column - skipped);
    let caret = "^".repeat(width.min(rest).max(1));
    let margin = " ".repeat(line.to_string().len());
    let indent = " ".repeat(column - skipped);
    let window = window.trim_end();
    format!("{margin} |\n{line} | {window}\n{margin} | {indent}{caret}")
}

/// A word of the user in backticks, shortened if it is long.
pub(super) fn quoted(word: &str) -> String {
    let letters: String = word.chars().take(QUOTED_CHARS_MAX).map(printable).collect();
    let more = if word.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    format!("`{letters}{more}`")
}

/// Replaces control characters, so that they neither reach the terminal nor move the caret.
fn printable(letter: char) -> char {
    match letter {
        '\t' => ' ',
        _ if letter.is_control() => char::REPLACEMENT_CHARACTER,
        _ => letter,
    }
}

/// Splits at a byte, or before the character that contains it.
fn split(text: &str, at: usize) -> (&str, &str) {
    let at = text.floor_char_boundary(at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, needle: &str, line: u32, column: u32, expected: &str) {
        let start = text.find(needle).unwrap();
        let position = TextPosition::of(text, start..start + needle.len());
        assert_eq!((position.line, position.column), (line, column), "{text:?}");
        assert_eq!(position.excerpt, expected, "{text:?}");
    }

    #[test]
    fn caret_is_below_the_position() {
        check("a = 1\nbcd = 2\n", "bcd", 2, 1, "  |\n2 | bcd = 2\n  | ^^^");
        check("a = 1\r\n\tbcd = 2\r\n", "bcd", 2, 2, "  |\n2 |  bcd = 2\n  |  ^^^");
        check("ü = \"ß\" # x", "# x", 1, 9, "  |\n1 | ü = \"ß\" # x\n  |         ^^^");
        check("a = \"\"\"x\ny", "\"\"\"x\ny", 1, 5, "  |\n1 | a = \"\"\"x\n  |     ^^^^");
        check("e\u{1b}[0m", "[", 1, 3, "  |\n1 | e\u{fffd}[0m\n  |   ^");
    }

    #[test]
    fn position_past_the_end_is_the_end() {
        let expected = "  |\n1 | ab\n  |   ^";
        assert_eq!(TextPosition::of("ab", 2..2).excerpt, expected);
        assert_eq!(TextPosition::of("ab", 9..12).excerpt, expected);
        assert_eq!(TextPosition::of("", 0..0).excerpt, "  |\n1 | \n  | ^");
    }

    #[test]
    fn long_line_is_cut_around_the_position() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let position = TextPosition::of(&text, 500..501);
        let (left, right) = ("a".repeat(50), "b".repeat(49));
        let expected = format!("  |\n1 | {left}X{right}\n  | {}^", " ".repeat(50));
        assert_eq!((position.column, position.excerpt), (501, expected));
    }

    #[test]
    fn secret_in_the_line_is_redacted() {
        let position = TextPosition::of("api_token = \"hunter22\"", 0..9);
        assert_eq!(position.excerpt, "  |\n1 | api_token = \"[redacted]\"\n  | ^^^^^^^^^");
    }

    #[test]
    fn only_regular_utf8_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("midwatch.toml");
        let check = |bytes: &[u8], expected: Result<&str, (&str, Option<u32>, Option<u32>)>| {
            std::fs::write(&path, bytes).unwrap();
            let found = read(&path).map(|text| text.unwrap());
            let found = found.as_deref().map_err(|it| (it.message.as_str(), it.line, it.column));
            assert_eq!(found, expected);
        };
        assert_eq!(read(&path), Ok(None));
        check(b"a", Ok("a"));
        check(b"a\nb\xffc", Err(("the file is not UTF-8 text", Some(2), Some(2))));
        check(b"\xff\xfea\0", Err(("the file is not UTF-8 text", Some(1), Some(1))));
        let largest = "#".repeat(FILE_BYTES_MAX);
        check(largest.as_bytes(), Ok(&largest));
        let message = "the file is larger than 1 MiB, the limit of a configuration file";
        check(format!("{largest}#").as_bytes(), Err((message, None, None)));
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        for path in [dir.path(), &pipe] {
            let unreadable = read(path).unwrap_err().to_string();
            assert!(unreadable.contains("it is not a regular file"), "{unreadable}");
            let path = path.display().to_string();
            assert_eq!(unreadable.matches(&path).count(), 1, "{unreadable}");
        }
    }
}
