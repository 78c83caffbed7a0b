//! Tokens that are known by how they look.

use std::ops::Range;

use super::lexer::{Lexer, is_letter};

/// How tokens of well-known makers begin, and how many letters must follow at least.
const PREFIXES: &[(&[u8], usize)] = &[
    (b"sk-", 8),
    (b"mwa_", 8),
    (b"mwt_", 8),
    (b"ghp_", 8),
    (b"gho_", 8),
    (b"ghu_", 8),
    (b"ghs_", 8),
    (b"ghr_", 8),
    (b"github_pat_", 8),
    (b"glpat-", 8),
    (b"xoxa-", 8),
    (b"xoxb-", 8),
    (b"xoxe-", 8),
    (b"xoxp-", 8),
    (b"xoxr-", 8),
    (b"xoxs-", 8),
    (b"xapp-", 8),
    (b"AIza", 20),
];

/// Keys of Amazon: one of these, then capitals and digits only.
const AMAZON_PREFIXES: [&[u8]; 2] = [b"AKIA", b"ASIA"];
const AMAZON_LETTERS_MIN: usize = 12;

/// Every JSON object in base64 begins like this, and so does every JSON web token.
const WEB_TOKEN_PREFIX: &[u8] = b"eyJ";
const WEB_TOKEN_BYTES_MIN: usize = 20;

/// The secret part of a token that stands in a name; it reaches to the end of the name, without
/// the dots of a sentence. What says who made the token stays visible.
pub(super) fn token_in(lexer: Lexer, name: Range<usize>) -> Option<Range<usize>> {
    let bytes = lexer.slice(name.clone());
    let end = name.start + bytes.iter().rposition(|byte| *byte != b'.')? + 1;
    let trimmed = lexer.slice(name.start..end);
    let last_dot = trimmed.iter().rposition(|byte| *byte == b'.').map(|dot| name.start + dot);
    let begins = |at: &usize| is_border(lexer, name.start, *at);
    name.clone().filter(begins).find_map(|at| {
        let is_web_token = lexer.is_at(at, WEB_TOKEN_PREFIX)
            && at + WEB_TOKEN_BYTES_MIN <= end
            && last_dot.is_some_and(|dot| at < dot);
        let start = if is_web_token { Some(at) } else { past_prefix(lexer, at, end) };
        start.map(|start| start..end)
    })
}

fn past_prefix(lexer: Lexer, at: usize, end: usize) -> Option<usize> {
    let fits = |(prefix, letters_min): &&(&[u8], usize)| {
        lexer.is_at(at, prefix) && at + prefix.len() + letters_min <= end
    };
    if let Some((prefix, _)) = PREFIXES.iter().find(fits) {
        return Some(at + prefix.len());
    }
    let prefix = AMAZON_PREFIXES.into_iter().find(|prefix| lexer.is_at(at, prefix))?;
    let start = at + prefix.len();
    let letters = lexer.slice(start..(start + AMAZON_LETTERS_MIN).min(end));
    let is_amazon = letters.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (letters.len() == AMAZON_LETTERS_MIN && is_amazon).then_some(start)
}

/// Whether a token may begin here: in front of a name, or behind what is no letter. The `n` of
/// `\n` is no letter.
fn is_border(lexer: Lexer, start: usize, at: usize) -> bool {
    if at == start {
        return true;
    }
    let before = lexer.byte(at - 1);
    let escaped = at == start + 1
        && 2 <= at
        && lexer.byte(at - 2) == Some(b'\\')
        && before.is_some_and(|byte| matches!(byte, b'n' | b'r' | b't'));
    escaped || !before.is_some_and(is_letter)
}
