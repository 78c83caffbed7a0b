//! JSON that comes in from outside: the one place where it is read.
//!
//! A key that stands twice in one object is refused before anything looks at the document. Of two readers one
//! takes the first value and the other the last, and what was checked would not be what is done.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A document without a key that stands twice.
///
/// ```
/// use serde_json::Value;
///
/// assert!(api::json::read::<Value>(br#"{"to": "a", "by": {"to": "b"}}"#).is_ok());
/// let twice = api::json::read::<Value>(br#"{"to": "a", "t\u006f": "b"}"#).unwrap_err();
/// assert!(twice.to_string().starts_with("the key `to` stands twice in one object"));
/// ```
pub fn read<T: DeserializeOwned>(document: &[u8]) -> Result<T, serde_json::Error> {
    let Plain = serde_json::from_slice(document)?;
    serde_json::from_slice(document)
}

/// Any document whose objects have no key twice.
struct Plain;

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Plain, D::Error> {
        from.deserialize_any(Plain)
    }
}

impl<'de> Visitor<'de> for Plain {
    type Value = Plain;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON document")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_str<E>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plain, A::Error> {
        while list.next_element::<Plain>()?.is_some() {}
        Ok(Plain)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Plain, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = object.next_key::<String>()? {
            if keys.contains(&key) {
                let key: String = key.chars().take(80).collect();
                return Err(A::Error::custom(format!(
                    "the key `{key}` stands twice in one object"
                )));
            }
            keys.insert(key);
            object.next_value::<Plain>()?;
        }
        Ok(Plain)
    }
}
