//! A SHA-256 hash, written as 64 lower-case hexadecimal digits wherever people or JSON see it.

use std::array::TryFromSliceError;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

/// Text that is not a hash: not 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: 64 hexadecimal digits in lower case are expected")]
pub struct NotAHash;

impl Hash {
    /// Stands for "none": the hash before the first entry, and of an absent private part.
    pub const ZERO: Hash = Hash([0; 32]);

    pub const fn from_bytes(bytes: [u8; 32]) -> Hash {
        Hash(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl TryFrom<&[u8]> for Hash {
    type Error = TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Hash, TryFromSliceError> {
        bytes.try_into().map(Hash)
    }
}

impl FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Hash, NotAHash> {
        from_hex(text).map(Hash).ok_or(NotAHash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        hex(deserializer).map(Hash)
    }
}

/// Reads `N` bytes written in hexadecimal; for `#[serde(deserialize_with)]` too.
pub(crate) fn hex<'de, D, const N: usize>(deserializer: D) -> Result<[u8; N], D::Error>
where
    D: Deserializer<'de>,
{
    struct Visitor<const N: usize>;

    impl<const N: usize> de::Visitor<'_> for Visitor<N> {
        type Value = [u8; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{} hexadecimal digits in lower case", N * 2)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<[u8; N], E> {
            from_hex(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(Visitor)
}

/// One text for one value: upper-case digits are refused.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    if pairs.len() != N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(ascii: u8) -> Option<u8> {
    match ascii {
        b'0'..=b'9' => Some(ascii - b'0'),
        b'a'..=b'f' => Some(ascii - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u8, NotAHash>) {
        assert_eq!(text.parse::<Hash>().map(|hash| hash.as_bytes()[31]), expected, "{text}");
    }

    #[test]
    fn one_text_for_one_hash() {
        let zeros = "0".repeat(62);
        check(&format!("{zeros}a9"), Ok(0xa9));
        check(&format!("{zeros}A9"), Err(NotAHash));
        check(&format!("{zeros}a"), Err(NotAHash));
        check(&format!("{zeros}a9a9"), Err(NotAHash));
        check(&format!("{zeros}é"), Err(NotAHash));
        check("", Err(NotAHash));
    }

    #[test]
    fn text_and_json_round_trip() {
        let hash = Hash::from_bytes(std::array::from_fn(|i| i as u8 * 7));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json, format!("\"{hash:?}\""));
        assert_eq!(serde_json::from_str::<Hash>(&json).unwrap(), hash);
    }
}
