//! Pieces of text: words, quoted strings, bracketed groups, and where each of them ends.
//!
//! Text may be plain, JSON, or JSON inside a JSON string; so a quote is a run of backslashes and a
//! quotation mark, and is closed by one that is escaped as often. Every function moves forward
//! only and returns a position that is at most the end of the text.

use std::ops::Range;

use super::MARK;

const ESCAPE: u8 = 0x1b;

/// Text, read byte by byte. Every byte that ends a piece is ASCII, so that pieces are whole letters.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'t> {
    text: &'t [u8],
}

/// A quotation mark with the backslashes in front of it.
#[derive(Clone, Copy)]
struct Quote {
    backslashes: usize,
    mark: u8,
    end: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text }
    }

    pub(super) fn byte(self, at: usize) -> Option<u8> {
        #[cfg(test)]
        steps::count(1);
        self.text.get(at).copied()
    }

    pub(super) fn len(self) -> usize {
        self.text.len()
    }

    pub(super) fn slice(self, range: Range<usize>) -> &'t [u8] {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn is_at(self, at: usize, word: &[u8]) -> bool {
        self.text.get(at..).is_some_and(|rest| rest.starts_with(word))
    }

    /// The first position from `at` on whose byte does not fit.
    pub(super) fn skip(self, at: usize, fits: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
        #[cfg(test)]
        steps::count(length + 1);
        at + length
    }

    /// Past the name of a key, a token, a number.
    pub(super) fn skip_name(self, at: usize) -> usize {
        self.skip(at, is_name)
    }

    /// Past spaces, tabs and the colours of a terminal.
    pub(super) fn skip_blank(self, at: usize) -> usize {
        let mut at = at;
        loop {
            at = self.skip(at, |byte| matches!(byte, b' ' | b'\t'));
            match self.byte(at) {
                Some(ESCAPE) => at = self.skip_colour(at),
                _ => return at,
            }
        }
    }

    /// Past `ESC [ 3 1 m`, or past the escape alone.
    pub(super) fn skip_colour(self, at: usize) -> usize {
        if self.byte(at + 1) != Some(b'[') {
            return at + 1;
        }
        let last = self.skip(at + 2, |byte| matches!(byte, b'0'..=b'9' | b';'));
        if self.byte(last).is_some_and(is_letter) { last + 1 } else { last }
    }

    /// Past a quotation mark and its backslashes, if they stand here.
    pub(super) fn skip_quote(self, at: usize) -> usize {
        self.quote(at).map_or(at, |quote| quote.end)
    }

    fn quote(self, at: usize) -> Option<Quote> {
        let place = self.skip(at, |byte| byte == b'\\');
        let mark = self.byte(place).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
        Some(Quote { backslashes: place - at, mark, end: place + 1 })
    }

    /// What stands between quotes, if a quote stands here; to the end if it is never closed.
    pub(super) fn quoted(self, at: usize) -> Option<Range<usize>> {
        let open = self.quote(at)?;
        let mut at = open.end;
        loop {
            at = self.skip(at, |byte| byte != b'\\' && byte != open.mark);
            let place = self.skip(at, |byte| byte == b'\\');
            let Some(byte) = self.byte(place) else { return Some(open.end..self.len()) };
            if byte == open.mark && closes(open.backslashes, place - at) {
                let content = place - open.backslashes.min(place - at);
                return Some(open.end..content);
            }
            at = place + 1;
        }
    }

    /// Past the group whose bracket opens here; to the end if it is never closed.
    pub(super) fn skip_group(self, at: usize) -> usize {
        let mut depth = 0_usize;
        let mut at = at;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' | b'\\' => {
                    at = self.skip_string(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
        self.len()
    }

    /// Past a string in double quotes, or past the backslashes of anything else.
    fn skip_string(self, at: usize) -> usize {
        let string = self.quote(at).filter(|quote| quote.mark == b'"').and(self.quoted(at));
        string.map_or_else(
            || self.skip(at, |byte| byte == b'\\'),
            |content| self.skip_quote(content.end),
        )
    }

    /// An unquoted value: up to a space, a quote or `&`, without the punctuation at its end.
    pub(super) fn word(self, start: usize) -> Range<usize> {
        let mut end = start;
        let mut at = start;
        while let Some(byte) = self.byte(at) {
            if self.is_at(at, MARK.as_bytes()) {
                (at, end) = (at + MARK.len(), at + MARK.len());
                continue;
            }
            match byte {
                b'\0'..=b' ' | 0x7f | b'"' | b'&' => break,
                b'\'' | b'`' if !self.byte(at + 1).is_some_and(is_letter) => break,
                b'\\' if self.quote(at).is_some() => break,
                b'\\' => (at, end) = both(self.skip(at, |byte| byte == b'\\')),
                b'(' | b'[' | b'{' => (at, end) = both(self.skip_group(at)),
                b',' | b';' | b'.' | b')' | b']' | b'}' => at += 1,
                _ => (at, end) = both(at + 1),
            }
        }
        start..self.skip_struct_body(start, end)
    }

    /// Rust prints a value as `Name { field: "…" }`: the body belongs to the word.
    fn skip_struct_body(self, start: usize, end: usize) -> usize {
        let name = self.slice(start..end);
        let is_type = name.first().is_some_and(u8::is_ascii_uppercase)
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        if is_type && self.is_at(end, b" {") { self.skip_group(end + 1) } else { end }
    }
}

/// Whether a mark behind `found` backslashes closes one that was opened behind `opened`. Each level
/// of quoting doubles the backslashes of the level within and adds one for the mark; and fewer
/// than at the opening mean that a quote further out ends.
fn closes(opened: usize, found: usize) -> bool {
    found < opened || found % (2 * (opened + 1)) == opened
}

fn both(at: usize) -> (usize, usize) {
    (at, at)
}

pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn is_name(byte: u8) -> bool {
    is_letter(byte) || matches!(byte, b'_' | b'-' | b'.')
}

/// Counts what the lexer looks at, so that a test can tell linear time from quadratic.
#[cfg(test)]
pub(super) mod steps {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    pub(in crate::redact) fn during(work: impl FnOnce()) -> usize {
        STEPS.set(0);
        work();
        STEPS.get()
    }
}
