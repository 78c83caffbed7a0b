//! Redaction of JSON documents, which stay valid JSON.

use std::borrow::Cow;

use serde_json::Value;

use crate::patterns::{is_harmless, is_secret_key};
use crate::{MARK, Redactor};

impl Redactor {
    /// Redacts one JSON document. Treats a text that is not valid JSON as plain text.
    pub fn redact_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let plain = self.redact(text);
        if matches!(plain, Cow::Borrowed(_)) {
            return Cow::Borrowed(text);
        }
        match serde_json::from_str(text) {
            Ok(value) => Cow::Owned(self.redact_value(value).to_string()),
            Err(_) => plain,
        }
    }

    fn redact_value(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
            Value::String(text) => Value::String(self.redact(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(key, value)| {
                    (self.redact(&key).into_owned(), self.redact_member(&key, value))
                })
                .collect(),
        }
    }

    fn redact_member(&self, key: &str, value: Value) -> Value {
        let is_visible = !is_secret_key(key)
            || match &value {
                Value::Null | Value::Bool(_) => true,
                Value::Number(number) => is_harmless(key, &number.to_string()),
                Value::String(text) => is_harmless(key, text),
                Value::Array(_) | Value::Object(_) => false,
            };
        if is_visible { self.redact_value(value) } else { MARK.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new();
        redactor.add("say \"friend\"");
        assert_eq!(redactor.redact_json(text), expected, "{text}");
        assert_eq!(redactor.redact_json(expected), expected, "twice: {text}");
    }

    #[test]
    fn json_stays_json() {
        check(r#"{"a":1}"#, r#"{"a":1}"#);
        check(r#"{"m":"token: (abc"}"#, r#"{"m":"token: [redacted]"}"#);
        check(r#"{"m":"bad token:","n":1}"#, r#"{"m":"bad token:","n":1}"#);
        check(r#"{"token":5,"tokens":5}"#, r#"{"token":"[redacted]","tokens":5}"#);
        check(r#"{"secret":{"a":["b"]},"x":1}"#, r#"{"secret":"[redacted]","x":1}"#);
        check(
            r#"{"api_key":"env:KEY","x":"password=a"}"#,
            r#"{"api_key":"env:KEY","x":"password=[redacted]"}"#,
        );
        check(r#"{"m":["say \"friend\" twice"]}"#, r#"{"m":["[redacted] twice"]}"#);
        check(r#"{"sk-0123456789":1}"#, r#"{"sk-[redacted]":1}"#);
        check("no json, token=abc", "no json, token=[redacted]");
    }
}
