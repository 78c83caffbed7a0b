//! Canonical JSON (RFC 8785): one value, one sequence of bytes, so that it can be hashed.
//!
//! The RFC treats every number as a double, which rounds large integers without a word: two
//! different records could get one hash. So fractions, and integers that a double cannot hold
//! exactly, are refused; whoever needs them writes text. What is left of the RFC is the order of
//! keys, since `serde_json` already writes strings and integers as the RFC wants them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::Range;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// The largest integer, and with a minus the smallest: beyond it, doubles have gaps.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Of objects and lists within each other.
const DEPTH_MAX: usize = 128;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum NotCanonical {
    #[error("a fraction cannot be recorded exactly: write it as text")]
    Fraction,
    #[error("an integer beyond 2^53 cannot be recorded exactly: write it as text")]
    LargeInteger,
    #[error("JSON text cannot be recorded as it stands: parse it first")]
    RawJson,
    #[error("the key {0} appears twice in one object")]
    DuplicateKey(String),
    #[error("objects and lists are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error(transparent)]
    Serialize(serde_json::Error),
}

/// The canonical bytes of a value. As everywhere in `serde_json`, a float that is not a number is
/// written as `null`.
pub fn canonical(value: &impl Serialize) -> Result<Vec<u8>, NotCanonical> {
    let mut compact = Vec::with_capacity(256);
    value
        .serialize(&mut Serializer::with_formatter(&mut compact, Exact))
        .map_err(unwrap_refusal)?;
    let mut sorted = Vec::with_capacity(compact.len());
    Sorter { rest: &compact, depth: 0 }.value(&mut sorted)?;
    Ok(sorted)
}

/// A refusal by [`Exact`] travels through `serde_json` as an IO error.
fn unwrap_refusal(error: serde_json::Error) -> NotCanonical {
    if !error.is_io() {
        return NotCanonical::Serialize(error);
    }
    let refusal = io::Error::from(error).downcast::<NotCanonical>();
    refusal.unwrap_or_else(|error| NotCanonical::Serialize(serde_json::Error::io(error)))
}

/// Compact JSON without the numbers that RFC 8785 would round.
struct Exact;

impl Formatter for Exact {
    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if INTEGER_MAX < value.unsigned_abs() {
            return refuse(NotCanonical::LargeInteger);
        }
        CompactFormatter.write_i64(writer, value)
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.write_i64(writer, i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_i128<W: ?Sized + Write>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        self.write_i64(writer, i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_u128<W: ?Sized + Write>(&mut self, writer: &mut W, value: u128) -> io::Result<()> {
        self.write_i64(writer, i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_f32<W: ?Sized + Write>(&mut self, _: &mut W, _: f32) -> io::Result<()> {
        refuse(NotCanonical::Fraction)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, _: &mut W, _: f64) -> io::Result<()> {
        refuse(NotCanonical::Fraction)
    }

    fn write_number_str<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        match text.parse() {
            Ok(value) => self.write_i128(writer, value),
            Err(_) => refuse(NotCanonical::Fraction),
        }
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        refuse(NotCanonical::RawJson)
    }
}

fn refuse(reason: NotCanonical) -> io::Result<()> {
    Err(io::Error::other(reason))
}

/// Copies the compact JSON that `serde_json` wrote, and puts the members of each object in order.
struct Sorter<'a> {
    rest: &'a [u8],
    depth: usize,
}

/// One member of an object: its key with the quotes, and where key and value were copied to.
struct Member<'a> {
    key: &'a [u8],
    copied: Range<usize>,
}

impl<'a> Sorter<'a> {
    fn value(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        let plain = match self.rest.first() {
            Some(b'{') => return self.nested(out, Sorter::object),
            Some(b'[') => return self.nested(out, Sorter::list),
            Some(b'"') => self.string(),
            _ => self.scalar(),
        };
        out.extend_from_slice(plain);
        Ok(())
    }

    fn nested(
        &mut self,
        out: &mut Vec<u8>,
        copy: fn(&mut Sorter<'a>, &mut Vec<u8>) -> Result<(), NotCanonical>,
    ) -> Result<(), NotCanonical> {
        if self.depth == DEPTH_MAX {
            return Err(NotCanonical::TooDeep);
        }
        self.depth += 1;
        out.extend_from_slice(self.take(1));
        copy(self, out)?;
        out.extend_from_slice(self.take(1));
        self.depth -= 1;
        Ok(())
    }

    fn list(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        while let Some(byte) = self.rest.first() {
            match byte {
                b']' => break,
                b',' => out.extend_from_slice(self.take(1)),
                _ => self.value(out)?,
            }
        }
        Ok(())
    }

    fn object(&mut self, out: &mut Vec<u8>) -> Result<(), NotCanonical> {
        let start = out.len();
        let mut members = Vec::new();
        while let Some(byte) = self.rest.first() {
            match byte {
                b'}' => break,
                b',' => out.extend_from_slice(self.take(1)),
                _ => members.push(self.member(out)?),
            }
        }
        sort(members, out, start)
    }

    fn member(&mut self, out: &mut Vec<u8>) -> Result<Member<'a>, NotCanonical> {
        let start = out.len();
        let key = self.string();
        out.extend_from_slice(key);
        out.extend_from_slice(self.take(1));
        self.value(out)?;
        Ok(Member { key, copied: start..out.len() })
    }

    fn string(&mut self) -> &'a [u8] {
        let mut escaped = false;
        let closes = |byte: &u8| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        };
        let inside = self.rest.iter().skip(1).position(closes);
        self.take(inside.map_or(self.rest.len(), |bytes| bytes + 2))
    }

    fn scalar(&mut self) -> &'a [u8] {
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}');
        let after_first = self.rest.iter().skip(1).position(ends);
        self.take(after_first.map_or(self.rest.len(), |bytes| bytes + 1))
    }

    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

/// Puts the members that were copied to `out`, from `start` on, in the order of their keys.
fn sort(mut members: Vec<Member<'_>>, out: &mut Vec<u8>, start: usize) -> Result<(), NotCanonical> {
    if members.is_sorted_by(|a, b| order(a.key, b.key) == Ordering::Less) {
        return Ok(());
    }
    members.sort_by(|a, b| order(a.key, b.key));
    if let Some([twice, _]) = members.array_windows().find(|[a, b]| a.key == b.key) {
        return Err(NotCanonical::DuplicateKey(String::from_utf8_lossy(twice.key).into_owned()));
    }
    let unsorted = out.split_off(start);
    for (index, member) in members.iter().enumerate() {
        if 0 < index {
            out.push(b',');
        }
        let copied = member.copied.start - start..member.copied.end - start;
        out.extend_from_slice(unsorted.get(copied).unwrap_or_default());
    }
    Ok(())
}

/// By UTF-16 code units, as the RFC wants it. For plain ASCII that is the order of the bytes.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    let plain = |key: &[u8]| key.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
    if plain(a) && plain(b) {
        return unquoted(a).cmp(unquoted(b));
    }
    utf16(a).cmp(&utf16(b))
}

fn unquoted(key: &[u8]) -> &[u8] {
    key.split_last().map_or(key, |(_, rest)| rest)
}

fn utf16(key: &[u8]) -> Vec<u16> {
    let text = serde_json::from_slice::<Cow<'_, str>>(key).unwrap_or_default();
    text.encode_utf16().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(value: impl Serialize, expected: Result<&str, &str>) {
        let found = canonical(&value).map(|bytes| String::from_utf8(bytes).unwrap());
        let found = found.map_err(|refusal| refusal.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        check(
            json!({ "b": [{ "z": 1, "a": 2 }, {}], "a": { "ab": 1, "a": 2 }, "": [] }),
            Ok(r#"{"":[],"a":{"a":2,"ab":1},"b":[{"a":2,"z":1},{}]}"#),
        );
    }

    #[test]
    fn numbers_that_would_be_rounded_are_refused() {
        let fraction = Err("a fraction cannot be recorded exactly: write it as text");
        let large = Err("an integer beyond 2^53 cannot be recorded exactly: write it as text");
        check(
            json!([INTEGER_MAX, -(INTEGER_MAX as i64)]),
            Ok("[9007199254740991,-9007199254740991]"),
        );
        check(json!({ "a": [INTEGER_MAX + 1] }), large);
        check(json!([-(INTEGER_MAX as i64) - 1]), large);
        check(u128::MAX, large);
        check(json!({ "a": { "b": 1.5 } }), fraction);
        check(1.0, fraction);
        check(0.5_f32, fraction);
    }

    #[test]
    fn what_has_no_single_form_is_refused() {
        let raw = serde_json::value::to_raw_value(&1).unwrap();
        check(raw, Err("JSON text cannot be recorded as it stands: parse it first"));
        let twice = [("a", 1), ("b", 2), ("a", 3)];
        check(Pairs(&twice), Err("the key \"a\" appears twice in one object"));
        check(nested(DEPTH_MAX), Ok(&format!("{}1{}", "[".repeat(128), "]".repeat(128))));
        check(nested(DEPTH_MAX + 1), Err("objects and lists are nested more than 128 deep"));
    }

    struct Pairs<'a>(&'a [(&'a str, u8)]);

    impl Serialize for Pairs<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().copied())
        }
    }
}
