//! The parser for all JSON from outside.
//!
//! It refuses an object with a duplicate key. Of two readers one may use the first value and the other the
//! last, so the value that was checked would not be the value that is used.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Parses a document and refuses duplicate keys.
///
/// ```
/// use serde_json::Value;
///
/// assert!(api::json::read::<Value>(br#"{"to": "a", "by": {"to": "b"}}"#).is_ok());
/// let twice = api::json::read::<Value>(br#"{"to": "a", "t\u006f": "b"}"#).unwrap_err();
/// assert!(twice.to_string().starts_with("the key `to` occurs twice in one object"));
/// ```
pub fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, serde_json::Error> {
    let UniqueKeys = serde_json::from_slice(document)?;
    serde_json::from_slice(document)
}

/// Any document without duplicate keys. It stores nothing.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<UniqueKeys, D::Error> {
        from.deserialize_any(UniqueKeys)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = UniqueKeys;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON document")
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
        while list.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = object.next_key::<String>()? {
            if keys.contains(&key) {
                let key: String = key.chars().take(80).collect();
                return Err(A::Error::custom(format!(
                    "the key `{key}` occurs twice in one object"
                )));
            }
            keys.insert(key);
            object.next_value::<UniqueKeys>()?;
        }
        Ok(UniqueKeys)
    }
}
