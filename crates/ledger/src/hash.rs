//! A SHA-256 hash. In text and JSON it is 64 lower-case hexadecimal digits.

use std::array::TryFromSliceError;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::hex::Hex;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: expected 64 lower-case hexadecimal digits")]
pub struct NotAHash;

impl Hash {
    /// Means "none": the hash before the first entry, and the hash of an absent private part.
    pub const ZERO: Hash = Hash([0; 32]);

    /// The SHA-256 of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }

    pub(crate) fn from_hasher(hasher: Sha256) -> Hash {
        Hash(hasher.finalize().into())
    }

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
        Hex::parse(text).map(|Hex(bytes)| Hash(bytes)).ok_or(NotAHash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(self.0), f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Hex(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        Hex::deserialize(deserializer).map(|Hex(bytes)| Hash(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u8, NotAHash>) {
        assert_eq!(text.parse::<Hash>().map(|hash| hash.as_bytes()[31]), expected, "{text}");
    }

    #[test]
    fn only_lower_case_hex_of_full_length_parses() {
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
