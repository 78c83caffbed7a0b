//! The arguments of a scheduled tool call, from outside.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Code, Error, json, numbers};

/// A JSON document as text. Two payloads with the same meaning have the same text, also for a tool that does
/// not exist yet: no whitespace, sorted keys without duplicates, and [one form](numbers) for each number.
///
/// ```
/// let payload: api::Payload = r#"{ "b": 1.0, "a": -0 }"#.parse()?;
/// assert_eq!(payload.as_str(), r#"{"a":0,"b":1}"#);
/// # Ok::<(), api::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Payload(String);

impl Payload {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Value> for Payload {
    type Error = Error;

    fn try_from(mut document: Value) -> Result<Payload, Error> {
        numbers::canonicalize(&mut document)?;
        Ok(Payload(document.to_string()))
    }
}

impl FromStr for Payload {
    type Err = Error;

    fn from_str(text: &str) -> Result<Payload, Error> {
        let document: Value = json::read(text.as_bytes()).map_err(|error| {
            Error::new(Code::InvalidInput, format!("the payload is not JSON: {error}"))
                .hint("give an object, such as `{\"path\": \"notes.md\"}`")
        })?;
        document.try_into()
    }
}

impl From<Payload> for String {
    fn from(payload: Payload) -> String {
        payload.0
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Request, ScheduleAdd, StoredAction};

    fn add(payload: &str) -> Result<Request, String> {
        let action = json!({"tool": "mail_send", "payload": payload});
        let with = json!({"name": "x", "when": {"every": "1h"}, "action": action});
        let call = json!({"call": "schedule.add", "with": with});
        serde_json::from_value(call).map_err(|error| error.to_string())
    }

    #[test]
    fn requests_with_the_same_meaning_are_equal() {
        let plain = add(r#"{"a":[1,0],"b":0.5}"#).unwrap();
        for same in [r#"{"b":5e-1,"a":[1.0,-0]}"#, r#" {"\u0061": [1e0, -0.0], "b": 0.50} "#] {
            assert_eq!(add(same), Ok(plain.clone()), "{same}");
        }
        assert_ne!(add(r#"{"a":[1,0],"b":0.25}"#), Ok(plain));
    }

    #[test]
    fn a_request_with_an_ambiguous_payload_is_refused() {
        for (payload, expected) in [
            (r#"{"a":9007199254740993}"#, "the number `9007199254740993`"),
            (r#"{"a":1e400}"#, "number out of range"),
            (r#"{"a":1,"a":2}"#, "occurs twice"),
            ("", "the payload is not JSON"),
        ] {
            let error = add(payload).unwrap_err();
            assert!(error.contains(expected), "{payload}: {error}");
        }
    }

    /// The path of the first field that takes any JSON.
    fn find_untyped(schema: &Value, path: &str) -> Option<String> {
        const TYPES: [&str; 6] = ["type", "$ref", "anyOf", "oneOf", "enum", "const"];
        let is_typed = TYPES.iter().any(|key| schema.get(key).is_some());
        if !is_typed {
            return Some(path.to_owned());
        }
        let children =
            ["properties", "$defs"].into_iter().filter_map(|key| schema[key].as_object());
        let children = children.flatten().map(|(name, child)| (format!("{path}/{name}"), child));
        let lists = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array());
        let choices = lists.flatten().map(|child| (path.to_owned(), child));
        let items = ["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key));
        let items = items.filter(|child| **child != json!(false));
        let items = items.map(|child| (format!("{path}/*"), child));
        children.chain(choices).chain(items).find_map(|(path, child)| find_untyped(child, &path))
    }

    #[test]
    fn no_field_of_a_request_takes_any_json() {
        for (name, schema) in Request::schemas() {
            assert_eq!(find_untyped(schema.as_value(), name), None, "use `Payload` for it");
        }
        assert_eq!(
            find_untyped(schemars::schema_for!(Vec<Value>).as_value(), "a"),
            Some("a/*".into())
        );
    }

    #[test]
    fn a_payload_that_an_older_version_stored_is_shown_as_it_is() {
        let stored = json!({"tool": "mail_send", "payload": r#"{"a":9007199254740993,"b":-0.0}"#});
        let action: StoredAction = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(action).unwrap(), stored);
    }

    #[test]
    fn a_request_keeps_its_form_on_the_wire() {
        let action = json!({"tool": "mail_send", "payload": r#"{"n":1}"#});
        let sent = json!({"name": "x", "when": {}, "action": action, "tier": null, "terms": {}});
        let request: ScheduleAdd = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(serde_json::to_value(request).unwrap()["action"], sent["action"]);
    }
}
