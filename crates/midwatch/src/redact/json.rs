//! Hiding secrets in JSON, so that it stays JSON.

use std::borrow::Cow;

use serde_json::Value;

use super::value::{is_harmless, is_secret_key};
use super::{MARK, Redactor};

impl Redactor {
    /// Hides secrets in one JSON document. Text that is no JSON is treated as plain text.
    pub fn redact_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let plain = self.redact(text);
        if matches!(plain, Cow::Borrowed(_)) {
            return Cow::Borrowed(text);
        }
        match serde_json::from_str(text) {
            Ok(value) => Cow::Owned(self.hidden(value).to_string()),
            Err(_) => plain,
        }
    }

    fn hidden(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
            Value::String(text) => Value::String(self.redact(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.hidden(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(key, value)| (self.redact(&key).into_owned(), self.member(&key, value)))
                .collect(),
        }
    }

    fn member(&self, key: &str, value: Value) -> Value {
        let harmless = match &value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(number) => is_harmless(key.as_bytes(), number.to_string().as_bytes()),
            Value::String(text) => is_harmless(key.as_bytes(), text.as_bytes()),
            Value::Array(_) | Value::Object(_) => false,
        };
        if !is_secret_key(key.as_bytes()) || harmless { self.hidden(value) } else { MARK.into() }
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
