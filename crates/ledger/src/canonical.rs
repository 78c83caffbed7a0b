//! Canonical JSON (RFC 8785): each value has exactly one byte sequence, which can be hashed.
//!
//! The RFC treats every number as a double, which silently rounds large integers, so two different
//! values could have the same hash. Fractions, and integers that a double cannot hold exactly, are
//! therefore refused; callers record them as text. What remains of the RFC is the order of keys:
//! `serde_json` already writes strings and integers as the RFC requires.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

/// The largest absolute value of an integer. Doubles cannot hold every integer beyond it.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;
/// The deepest nesting of objects and lists.
const DEPTH_MAX: usize = 128;
/// A larger buffer is freed instead of reused. Most values are much smaller.
const REUSED_BYTES_MAX: usize = 65_536;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum NotCanonical {
    #[error("a fraction cannot be recorded exactly: write it as text")]
    Fraction,
    #[error("an integer beyond 2^53 cannot be recorded exactly: write it as text")]
    LargeInteger,
    #[error("raw JSON text cannot be recorded: parse it first")]
    RawJson,
    #[error("the key {0} appears twice in one object")]
    DuplicateKey(String),
    #[error("objects and lists are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error(transparent)]
    Serialize(serde_json::Error),
}

thread_local! {
    /// Kept between calls to reuse its buffers.
    static FORMATTER: Cell<CanonicalFormatter> = Cell::default();
}

/// The canonical bytes of a value. As everywhere in `serde_json`, NaN and infinity become `null`.
pub fn canonical_json(value: &impl Serialize) -> Result<Vec<u8>, NotCanonical> {
    serialize_with(value, <[u8]>::to_vec)
}

/// The canonical bytes of a value, in a shared allocation. See [`canonical_json`].
pub fn canonical_json_shared(value: &impl Serialize) -> Result<Arc<[u8]>, NotCanonical> {
    serialize_with(value, |bytes| Arc::from(bytes))
}

fn serialize_with<B>(value: &impl Serialize, copy: impl Fn(&[u8]) -> B) -> Result<B, NotCanonical> {
    let mut formatter = FORMATTER.take();
    // The formatter keeps the output itself.
    value
        .serialize(&mut Serializer::with_formatter(io::sink(), &mut formatter))
        .map_err(into_refusal)?;
    let bytes = copy(&formatter.out);
    if formatter.out.len() <= REUSED_BYTES_MAX {
        formatter.out.clear();
        FORMATTER.set(formatter);
    }
    Ok(bytes)
}

/// `serde_json` wraps a [`NotCanonical`] in an IO error; this unwraps it.
fn into_refusal(error: serde_json::Error) -> NotCanonical {
    if !error.is_io() {
        return NotCanonical::Serialize(error);
    }
    let refusal = io::Error::from(error).downcast::<NotCanonical>();
    refusal.unwrap_or_else(|error| NotCanonical::Serialize(serde_json::Error::io(error)))
}

/// Writes compact JSON and refuses numbers that RFC 8785 would round. It keeps its output, so that it
/// can sort the members of an object when the object ends.
#[derive(Default)]
struct CanonicalFormatter {
    out: Vec<u8>,
    /// Objects and lists that have not ended, the outermost first.
    open: Vec<Container>,
    /// The members of all objects in `open`, in the order of their output.
    members: Vec<Member>,
    unsorted: Vec<u8>,
}

/// The start of an object or list in `out`, and the index of its first member in `members`.
struct Container {
    start: usize,
    members: usize,
}

/// The range in `out` of a member of an object: its quoted key, a colon, its value.
struct Member {
    key: Range<usize>,
    end: usize,
    /// The key is ASCII without escapes, so its bytes sort like its UTF-16 code units.
    is_plain: bool,
}

impl Formatter for &mut CanonicalFormatter {
    fn write_null<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.write_bytes(b"null")
    }

    fn write_bool<W: ?Sized + Write>(&mut self, _: &mut W, value: bool) -> io::Result<()> {
        self.write_bytes(if value { b"true" } else { b"false" })
    }

    fn write_i8<W: ?Sized + Write>(&mut self, _: &mut W, value: i8) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_i16<W: ?Sized + Write>(&mut self, _: &mut W, value: i16) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_i32<W: ?Sized + Write>(&mut self, _: &mut W, value: i32) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_i64<W: ?Sized + Write>(&mut self, _: &mut W, value: i64) -> io::Result<()> {
        self.write_integer(value)
    }

    fn write_i128<W: ?Sized + Write>(&mut self, _: &mut W, value: i128) -> io::Result<()> {
        self.write_integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_u8<W: ?Sized + Write>(&mut self, _: &mut W, value: u8) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_u16<W: ?Sized + Write>(&mut self, _: &mut W, value: u16) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_u32<W: ?Sized + Write>(&mut self, _: &mut W, value: u32) -> io::Result<()> {
        self.write_integer(value.into())
    }

    fn write_u64<W: ?Sized + Write>(&mut self, _: &mut W, value: u64) -> io::Result<()> {
        self.write_integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_u128<W: ?Sized + Write>(&mut self, _: &mut W, value: u128) -> io::Result<()> {
        self.write_integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn write_f32<W: ?Sized + Write>(&mut self, _: &mut W, _: f32) -> io::Result<()> {
        refuse(NotCanonical::Fraction)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, _: &mut W, _: f64) -> io::Result<()> {
        refuse(NotCanonical::Fraction)
    }

    fn write_number_str<W: ?Sized + Write>(&mut self, _: &mut W, text: &str) -> io::Result<()> {
        match text.parse::<i128>() {
            Ok(value) => self.write_integer(i64::try_from(value).unwrap_or(i64::MAX)),
            Err(_) => refuse(NotCanonical::Fraction),
        }
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        refuse(NotCanonical::RawJson)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.write_bytes(b"\"")
    }

    fn end_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.write_bytes(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        text: &str,
    ) -> io::Result<()> {
        self.write_bytes(text.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        CompactFormatter.write_char_escape(&mut self.out, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin_container(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.open.pop();
        self.write_bytes(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.write_bytes(if is_first { b"" } else { b"," })
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin_container(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.sort_members().map_err(io::Error::other)?;
        self.write_bytes(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, _: &mut W, is_first: bool) -> io::Result<()> {
        self.write_bytes(if is_first { b"" } else { b"," })?;
        let start = self.out.len();
        self.members.push(Member { key: start..start, end: start, is_plain: true });
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.out.len();
        if let Some(member) = self.members.last_mut() {
            member.key.end = end;
            let key = self.out.get(member.key.clone()).unwrap_or_default();
            member.is_plain = key.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        }
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.write_bytes(b":")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.out.len();
        if let Some(member) = self.members.last_mut() {
            member.end = end;
        }
        Ok(())
    }
}

impl CanonicalFormatter {
    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn write_integer(&mut self, value: i64) -> io::Result<()> {
        match value.unsigned_abs() <= INTEGER_MAX {
            true => CompactFormatter.write_i64(&mut self.out, value),
            false => refuse(NotCanonical::LargeInteger),
        }
    }

    fn begin_container(&mut self, bracket: &[u8]) -> io::Result<()> {
        if self.open.len() == DEPTH_MAX {
            return refuse(NotCanonical::TooDeep);
        }
        self.write_bytes(bracket)?;
        self.open.push(Container { start: self.out.len(), members: self.members.len() });
        Ok(())
    }

    /// Ends the innermost object: sorts its members by key and refuses duplicate keys.
    fn sort_members(&mut self) -> Result<(), NotCanonical> {
        let CanonicalFormatter { out, open, members, unsorted } = self;
        let Some(Container { start, members: first }) = open.pop() else { return Ok(()) };
        let own = members.get_mut(first..).unwrap_or_default();
        if !own.is_sorted_by(|a, b| compare_keys(out, a, b) == Ordering::Less) {
            own.sort_by(|a, b| compare_keys(out, a, b));
            if let Some([twice, _]) = own.array_windows().find(|[a, b]| a.key(out) == b.key(out)) {
                let key = String::from_utf8_lossy(twice.key(out)).into_owned();
                return Err(NotCanonical::DuplicateKey(key));
            }
            unsorted.clear();
            unsorted.extend_from_slice(out.get(start..).unwrap_or_default());
            out.truncate(start);
            for member in own.iter() {
                if start < out.len() {
                    out.push(b',');
                }
                let range = member.key.start - start..member.end - start;
                out.extend_from_slice(unsorted.get(range).unwrap_or_default());
            }
        }
        members.truncate(first);
        Ok(())
    }
}

impl Member {
    fn key<'a>(&self, out: &'a [u8]) -> &'a [u8] {
        out.get(self.key.clone()).unwrap_or_default()
    }
}

fn refuse(reason: NotCanonical) -> io::Result<()> {
    Err(io::Error::other(reason))
}

/// Compares keys by UTF-16 code units, as the RFC requires. For plain keys it compares bytes.
fn compare_keys(out: &[u8], a: &Member, b: &Member) -> Ordering {
    let keys = (a.key(out), b.key(out));
    match a.is_plain && b.is_plain {
        true => without_closing_quote(keys.0).cmp(without_closing_quote(keys.1)),
        false => key_utf16(keys.0).cmp(&key_utf16(keys.1)),
    }
}

fn without_closing_quote(key: &[u8]) -> &[u8] {
    key.split_last().map_or(key, |(_, rest)| rest)
}

fn key_utf16(key: &[u8]) -> Vec<u16> {
    let text = serde_json::from_slice::<Cow<'_, str>>(key).unwrap_or_default();
    text.encode_utf16().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(value: impl Serialize, expected: Result<&str, &str>) {
        let found = canonical_json(&value).map(|bytes| String::from_utf8(bytes).unwrap());
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
    fn raw_json_duplicate_keys_and_deep_nesting_are_refused() {
        let raw = serde_json::value::to_raw_value(&1).unwrap();
        check(raw, Err("raw JSON text cannot be recorded: parse it first"));
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
