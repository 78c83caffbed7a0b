//! Finding what looks like a secret, in one pass from left to right.

use std::ops::Range;

use super::lexer::{Lexer, is_letter, is_name};
use super::token::token_in;
use super::value::{Value, bare_value, private_key, value_of};

/// How a signer's key begins in the notation of signed notes.
const SIGNER_PREFIX: &[u8] = b"PRIVATE+KEY+";

/// What follows "bearer" in prose.
const BEARER_PROSE: [&[u8]; 5] = [b"token", b"tokens", b"auth", b"authentication", b"scheme"];

/// How far behind its first slash a password in a URL may end.
const PASSWORD_BYTES_MAX: usize = 128;

/// A place to hide; never empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) range: Range<usize>,
    /// Where to find the quote that the mark needs around it; or empty.
    pub(super) quote: Range<usize>,
}

pub(super) struct Scanner<'t> {
    lexer: Lexer<'t>,
    at: usize,
    /// The value of a name that held a secret itself.
    next: Option<Hidden>,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Scanner<'t> {
        Scanner { lexer: Lexer::new(text), at: 0, next: None }
    }

    /// Reads the name that begins here, and what it announces.
    fn read_name(&mut self) -> Option<Hidden> {
        let name = self.at..self.lexer.skip_name(self.at);
        let token = token_in(self.lexer, name.clone());
        self.at = name.end;
        let value = announced_by(self.lexer, name);
        let value = self.past(value);
        let Some(range) = token else { return value };
        self.next = value;
        Some(Hidden { range, quote: 0..0 })
    }

    fn read_url(&mut self) -> Option<Hidden> {
        let password = password_of_url(self.lexer, self.at);
        self.at += 3;
        self.past(password)
    }

    fn past(&mut self, value: Value) -> Option<Hidden> {
        match value {
            Value::Absent => None,
            Value::Harmless(end) => {
                self.at = end;
                None
            }
            Value::Secret(hidden) => {
                self.at = hidden.range.end;
                Some(hidden)
            }
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Hidden;

    fn next(&mut self) -> Option<Hidden> {
        if let Some(hidden) = self.next.take() {
            return Some(hidden);
        }
        loop {
            let found = match self.lexer.byte(self.at)? {
                byte if is_name(byte) => self.read_name(),
                b':' if self.lexer.is_at(self.at, b"://") => self.read_url(),
                0x1b => {
                    self.at = self.lexer.skip_colour(self.at);
                    None
                }
                _ => {
                    self.at += 1;
                    None
                }
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

fn announced_by(lexer: Lexer, name: Range<usize>) -> Value {
    let text = lexer.slice(name.clone());
    if text.ends_with(b"-----BEGIN") {
        let body = private_key(lexer, name.end - b"-----BEGIN".len());
        return body.map_or(Value::Absent, |body| Value::secret(lexer, body));
    }
    if text.ends_with(b"PRIVATE") && lexer.is_at(name.end - b"PRIVATE".len(), SIGNER_PREFIX) {
        let start = name.end - b"PRIVATE".len() + SIGNER_PREFIX.len();
        return Value::secret(lexer, lexer.word(start));
    }
    match bearer(lexer, name.clone()) {
        Value::Absent => value_of(lexer, name),
        found => found,
    }
}

/// The word behind `Bearer`.
fn bearer(lexer: Lexer, name: Range<usize>) -> Value {
    let start = lexer.skip_blank(name.end);
    let is_bearer = lexer.slice(name.clone()).eq_ignore_ascii_case(b"bearer");
    let is_value = lexer.byte(start).is_some_and(|byte| !matches!(byte, b'=' | b':'));
    if !is_bearer || start == name.end || !is_value {
        return Value::Absent;
    }
    let word = lexer.slice(start..lexer.skip(start, is_letter));
    if BEARER_PROSE.into_iter().any(|prose| word.eq_ignore_ascii_case(prose)) {
        return Value::Absent;
    }
    bare_value(lexer, b"bearer", start)
}

/// The password in `scheme://user:password@host`, or the lonely token in `https://token@host`.
fn password_of_url(lexer: Lexer, colon: usize) -> Value {
    let start = colon + 3;
    let end = lexer.skip(start, |byte| is_url(byte) && !matches!(byte, b'/' | b'?' | b'#'));
    let authority = lexer.slice(start..end);
    let at = authority.iter().rposition(|byte| *byte == b'@');
    let user = authority.iter().take(at.unwrap_or(end)).position(|byte| *byte == b':');
    match (user, at) {
        (Some(user), Some(at)) => Value::secret(lexer, start + user + 1..start + at),
        // An address of version 6 has colons of its own.
        (Some(_), None) if authority.starts_with(b"[") => Value::Absent,
        (Some(user), None) => password_with_slash(lexer, start + user + 1, end),
        (None, Some(at)) if is_web(lexer, colon) => Value::secret(lexer, start..start + at),
        (None, _) => Value::Absent,
    }
}

/// A password with a slash is against the rules and common all the same. What stands before the
/// slash is no port, then, and the `@` comes soon.
fn password_with_slash(lexer: Lexer, start: usize, slash: usize) -> Value {
    let is_port = lexer.slice(start..slash).iter().all(u8::is_ascii_digit);
    let near = lexer.slice(slash..lexer.len().min(slash + PASSWORD_BYTES_MAX));
    let end = near.iter().position(|byte| *byte == b'@' || !is_url(*byte));
    match end.map(|end| slash + end) {
        Some(end) if !is_port && lexer.byte(end) == Some(b'@') => Value::secret(lexer, start..end),
        _ => Value::Absent,
    }
}

fn is_url(byte: u8) -> bool {
    !matches!(byte, b'\0'..=b' ' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

fn is_web(lexer: Lexer, colon: usize) -> bool {
    let scheme = lexer.slice(colon.saturating_sub(5)..colon).to_ascii_lowercase();
    scheme.ends_with(b"http") || scheme == b"https"
}
