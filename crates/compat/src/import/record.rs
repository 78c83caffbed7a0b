//! Access to the members of a JSON record whose shape is only partly known.

use serde_json::Value;

/// A record of another program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>(pub(super) &'a Value);

impl<'a> Record<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn record(self, name: &str) -> Record<'a> {
        Record(self.get(name).unwrap_or(&Value::Null))
    }

    /// A text that is not blank.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The first of several names that has a text.
    pub(super) fn text_of(self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.text(name))
    }

    pub(super) fn integer(self, name: &str) -> Option<i64> {
        let value = self.get(name)?;
        // Some programs write whole numbers with a fraction of zero.
        value.as_i64().or_else(|| value.as_f64().map(|number| number.round() as i64))
    }

    pub(super) fn is_true(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn is_false(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool) == Some(false)
    }

    pub(super) fn items(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The members among `names` that say something, each in backticks.
    pub(super) fn present(self, names: &[&str]) -> Vec<String> {
        let says_something = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            Value::Bool(true) | Value::Number(_) => true,
        };
        let present = names.iter().filter(|name| self.get(name).is_some_and(says_something));
        present.map(|name| format!("`{name}`")).collect()
    }
}
