//! Values of keys: which keys announce a secret, where its value ends, and which values are
//! harmless all the same.

use std::ops::Range;

use super::MARK;
use super::lexer::{Lexer, is_letter, is_name};
use super::scanner::Hidden;

/// A key that contains one of these announces a secret.
const SECRET_WORDS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "api-key",
    "apikey",
    "private_key",
    "private-key",
    "privatekey",
    "access_key",
    "access-key",
    "accesskey",
    "authorization",
    "credential",
    "bearer",
];

/// A key that ends so says where secrets are, or whether such places count; in the logs it is a part of the program.
const PLACES: [&str; 2] = ["token_file", "token_files"];

/// What may stand in front of the secret.
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "negotiate", "token", "apikey"];

/// Values that are no secret under any key.
const LITERALS: [&str; 5] = ["true", "false", "null", "none", "nil"];

/// What follows a name.
pub(super) enum Value {
    Absent,
    /// Nothing to hide up to this position.
    Harmless(usize),
    Secret(Hidden),
}

impl Value {
    /// The secret at `range`, unless it is hidden already.
    pub(super) fn secret(lexer: Lexer, range: Range<usize>) -> Value {
        if range.is_empty() {
            Value::Absent
        } else if lexer.slice(range.clone()) == MARK.as_bytes() {
            Value::Harmless(range.end)
        } else {
            Value::Secret(Hidden { range, quote: 0..0 })
        }
    }
}

pub(super) fn is_secret_key(key: &[u8]) -> bool {
    let is_place = PLACES.iter().any(|place| ends_with(key, place));
    !is_place && SECRET_WORDS.iter().any(|word| contains(key, word))
}

/// Whether a value is no secret even under a key that announces one.
pub(super) fn is_harmless(key: &[u8], value: &[u8]) -> bool {
    is_one_of(value, &LITERALS)
        || is_reference(value)
        // Counts of tokens are the product's daily bread.
        || contains(key, "tokens") && value.iter().all(u8::is_ascii_digit)
}

/// The value behind `key=`, `key: `, `"key":`, `--key ` or `"--key",`.
pub(super) fn value_of(lexer: Lexer, name: Range<usize>) -> Value {
    let key = lexer.slice(name.clone());
    if !is_secret_key(key) {
        return Value::Absent;
    }
    let quote = name.end..lexer.skip_quote(name.end);
    let at = lexer.skip_blank(quote.end);
    let is_flag = key.starts_with(b"--");
    let start = match lexer.byte(at) {
        // A path of code, or a scheme: no key.
        Some(b':') if lexer.is_at(at, b"::") || lexer.is_at(at, b"://") => return Value::Absent,
        Some(b':' | b'=') => lexer.skip(at + 1, |byte| matches!(byte, b'=' | b'>')),
        Some(b',') if is_flag && !quote.is_empty() => at + 1,
        Some(_) if is_flag && quote.is_empty() && name.end < at && !lexer.is_at(at, b"--") => at,
        _ => return Value::Absent,
    };
    let start = lexer.skip_blank(start);
    if let Some(content) = lexer.quoted(start) {
        return quoted_value(lexer, key, content);
    }
    match bare_value(lexer, key, start) {
        // JSON wants quotes around the mark where a number or an object was.
        Value::Secret(Hidden { range, .. }) => Value::Secret(Hidden { range, quote }),
        harmless => harmless,
    }
}

fn quoted_value(lexer: Lexer, key: &[u8], content: Range<usize>) -> Value {
    if is_harmless(key, lexer.slice(content.clone())) {
        return Value::Harmless(content.end);
    }
    let scheme = lexer.skip(content.start, is_letter).min(content.end);
    let rest = lexer.skip_blank(scheme).min(content.end);
    let named = is_one_of(lexer.slice(content.start..scheme), &SCHEMES) && scheme < rest;
    Value::secret(lexer, if named { rest..content.end } else { content })
}

/// An unquoted value, which may be two words: `Bearer abc`.
pub(super) fn bare_value(lexer: Lexer, key: &[u8], start: usize) -> Value {
    if let Some(end) = counted(lexer, key, start) {
        return Value::Harmless(end);
    }
    // `<TOKEN>` only stands for a value.
    if lexer.byte(start) == Some(b'<') {
        return Value::Absent;
    }
    if let Some(body) = private_key(lexer, start) {
        return Value::secret(lexer, body);
    }
    let first = lexer.word(start);
    let word = lexer.slice(first.clone());
    if is_harmless(key, word) {
        return Value::Harmless(first.end);
    }
    let is_known = is_one_of(word, &SCHEMES);
    let is_scheme = word.iter().all(|byte| is_letter(*byte) || *byte == b'-');
    if !(is_known || is_scheme && contains(key, "authorization")) {
        return Value::secret(lexer, first);
    }
    let second = lexer.word(lexer.skip_blank(first.end));
    if second.is_empty() || first.end == second.start {
        return Value::secret(lexer, first);
    }
    let end = parameters_end(lexer, second.end);
    Value::secret(lexer, if is_known { second.start } else { first.start }..end)
}

/// The end of `a=b, c=d`, of which `end` is the end of the first word.
fn parameters_end(lexer: Lexer, mut end: usize) -> usize {
    while lexer.byte(end) == Some(b',') {
        let word = lexer.word(lexer.skip_blank(end + 1));
        if word.is_empty() {
            break;
        }
        end = word.end;
    }
    end
}

/// The end of a count of tokens, such as `input_tokens=10,…`.
fn counted(lexer: Lexer, key: &[u8], start: usize) -> Option<usize> {
    let end = lexer.skip(start, |byte| byte.is_ascii_digit());
    let ends = |byte| matches!(byte, b'\0'..=b' ' | b',' | b';' | b')' | b']' | b'}');
    let is_end = lexer.byte(end).is_none_or(ends);
    (contains(key, "tokens") && start < end && is_end).then_some(end)
}

const PEM_BEGIN: &[u8] = b"-----BEGIN ";
const PEM_END: &[u8] = b"-----END";
const PEM_RULE: &[u8] = b"-----";
const PEM_LABEL_BYTES_MAX: usize = 64;

/// The body of the private key in PEM that begins here; up to a quote, or to the end of the text,
/// if its last line is missing.
pub(super) fn private_key(lexer: Lexer, at: usize) -> Option<Range<usize>> {
    if !lexer.is_at(at, PEM_BEGIN) {
        return None;
    }
    let label = at + PEM_BEGIN.len();
    let label_end = lexer.skip(label, |byte| byte != b'-').min(label + PEM_LABEL_BYTES_MAX);
    let is_private = contains(lexer.slice(label..label_end), "private key");
    if !is_private || !lexer.is_at(label_end, PEM_RULE) {
        return None;
    }
    let start = label_end + PEM_RULE.len();
    let mut end = start;
    loop {
        end = lexer.skip(end, |byte| !matches!(byte, b'-' | b'"' | b'\'' | b'`' | b'\\'));
        let stops =
            lexer.byte(end).is_none() || lexer.is_at(end, PEM_END) || end < lexer.skip_quote(end);
        if stops {
            return Some(start..end);
        }
        end = lexer.skip(end + 1, |byte| byte == b'\\');
    }
}

/// `env:NAME` or `file:/path`.
fn is_reference(value: &[u8]) -> bool {
    if let Some(name) = value.strip_prefix(b"env:") {
        return !name.is_empty() && name.iter().all(|byte| is_letter(*byte) || *byte == b'_');
    }
    let path = value.strip_prefix(b"file:").unwrap_or_default();
    let is_path = |byte: &u8| is_name(*byte) || matches!(byte, b'/' | b'~' | b'+' | b'@');
    path.contains(&b'/') && path.iter().all(is_path)
}

fn is_one_of(value: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

fn ends_with(text: &[u8], word: &str) -> bool {
    let start = text.len().checked_sub(word.len());
    let end = start.and_then(|start| text.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
}

fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}
