//! The arguments of a call: the idempotency key, and the fields of the tool's input.
//!
//! A tool's arguments are the fields of its input. A row may give an argument another name or description, or not offer
//! a field at all.

use std::fmt::Display;

use api::{Code, Error, nearest};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::result_format::ResultFormat;
use crate::schema::properties_mut;
use crate::tool::{Effect, Tool, with_field};

/// The argument with the idempotency key. Every tool that changes something takes it.
pub(crate) const KEY: &str = "idempotency_key";

/// An argument that differs from its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    field: &'static str,
    name: &'static str,
    description: Option<&'static str>,
    /// Whether the name of the field is accepted as well.
    accepts_field: bool,
}

/// An argument with another name than its field.
pub(crate) const fn renamed(field: &'static str, name: &'static str) -> Argument {
    Argument { field, name, description: None, accepts_field: false }
}

impl Argument {
    /// With another description than the field.
    pub(crate) const fn described(self, description: &'static str) -> Argument {
        Argument { description: Some(description), ..self }
    }

    /// Also accepts the name of the field, which the schema does not list.
    pub(crate) const fn or_field(self) -> Argument {
        Argument { accepts_field: true, ..self }
    }
}

impl Tool {
    /// Turns the schema of the input into that of the arguments.
    pub(crate) fn adapt_schema(&self, schema: &mut JsonObject) {
        if let Some(properties) = properties_mut(schema) {
            self.adapt_properties(properties);
        }
        let required = schema.remove("required");
        let required = required.iter().filter_map(Value::as_array).flatten();
        let required = required.filter_map(Value::as_str).map(|field| self.argument_name(field));
        let key = self.requires_key().then_some(KEY);
        let required: Vec<&str> = required.chain(key).collect();
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
    }

    fn adapt_properties(&self, properties: &mut JsonObject) {
        properties.retain(|field, _| !self.hidden_fields.contains(&field.as_str()));
        for argument in self.arguments {
            let Some(property) = properties.remove(argument.field) else { continue };
            let property = match argument.description {
                Some(description) => with_field(property, "description", description),
                None => property,
            };
            properties.insert(argument.name.to_owned(), property);
        }
        if self.effect != Effect::Read {
            let format = match self.requires_key() {
                true => {
                    " 1 to 128 printable ASCII characters without spaces, such as `report-2026-11-16`."
                }
                false => "",
            };
            let about = format!("A repeated call with the same key has no further effect.{format}");
            properties.insert(KEY.to_owned(), json!({"type": "string", "description": about}));
        }
    }

    /// Whether a call without a key is refused. Clients of other systems do not know keys.
    const fn requires_key(&self) -> bool {
        !self.idempotent && matches!(self.toolset.result_format(), ResultFormat::Native)
    }

    fn argument_name<'a>(&self, field: &'a str) -> &'a str {
        self.arguments.iter().find(|it| it.field == field).map_or(field, |argument| argument.name)
    }

    /// The field that an argument sets. `None` if the tool has no such argument, as far as its row says.
    fn field_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        if let Some(argument) = self.arguments.iter().find(|it| it.name == name) {
            return Some(argument.field);
        }
        let is_other_name = |it: &Argument| it.field == name && !it.accepts_field;
        let is_hidden =
            self.hidden_fields.contains(&name) || self.arguments.iter().any(is_other_name);
        (!is_hidden).then_some(name)
    }

    /// Takes the idempotency key out of the arguments.
    pub(crate) fn take_key(&self, arguments: &mut JsonObject) -> Result<Option<String>, Error> {
        if self.effect == Effect::Read {
            // It is refused like any unknown argument.
            return Ok(None);
        }
        let key = arguments.remove(KEY).unwrap_or_default();
        match serde_json::from_value(key) {
            Ok(None) if self.requires_key() => Err(self.missing_argument(KEY)),
            Ok(key) => Ok(key),
            Err(error) => Err(invalid_argument(KEY, error)),
        }
    }

    /// Parses the arguments. An argument that is `null` counts as absent.
    pub(crate) fn parse_arguments<T: DeserializeOwned>(
        &self,
        arguments: JsonObject,
    ) -> Result<T, Error> {
        let fields = Value::Object(self.rename_to_fields(arguments)?);
        serde_path_to_error::deserialize(fields).map_err(|error| {
            self.invalid_field(&error.path().to_string(), error.inner().to_string())
        })
    }

    fn rename_to_fields(&self, arguments: JsonObject) -> Result<JsonObject, Error> {
        let mut fields = JsonObject::new();
        for (name, value) in arguments.into_iter().filter(|(_, value)| !value.is_null()) {
            let field = self.field_name(&name).ok_or_else(|| self.unknown_argument(&name))?;
            if fields.insert(field.to_owned(), value).is_some() {
                let what = format!("`{}` is given twice", self.argument_name(field));
                return Err(invalid_input(what));
            }
        }
        Ok(fields)
    }

    /// The error about the field at a path of the input, in terms of the tool's arguments.
    fn invalid_field(&self, path: &str, what: String) -> Error {
        let quoted = |prefix| what.strip_prefix(prefix)?.split('`').next();
        match (quoted("unknown field `"), quoted("missing field `")) {
            (Some(field), _) if path == field => self.unknown_argument(field),
            (_, Some(field)) if path == "." => self.missing_argument(self.argument_name(field)),
            _ if path == "." => invalid_input(format!("invalid arguments: {what}")),
            _ => {
                let field = path.split(['.', '[']).next().unwrap_or_default();
                let rest = path.strip_prefix(field).unwrap_or_default();
                invalid_argument(&format!("{}{rest}", self.argument_name(field)), what)
            }
        }
    }

    fn unknown_argument(&self, name: &str) -> Error {
        let schema = self.input_schema();
        let known = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> =
            known.into_iter().flat_map(|it| it.keys()).map(String::as_str).collect();
        let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let hint = match similar_argument(name, &known) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None if known.is_empty() => "the tool takes no arguments".to_owned(),
            None => format!("the arguments are {}", quoted.join(", ")),
        };
        Error::new(Code::InvalidInput, format!("unknown argument `{name}`")).hint(hint)
    }

    fn missing_argument(&self, name: &str) -> Error {
        let schema = self.input_schema();
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let description = property.and_then(|it| it.get("description")?.as_str());
        let error = invalid_input(format!("`{name}` is missing"));
        match description {
            Some(description) => {
                error.hint(format!("pass `{name}`: {}", continue_sentence(description)))
            }
            None => error,
        }
    }
}

/// A sentence as the rest of another one: without a capital and a full stop.
fn continue_sentence(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The argument that was probably meant: one with a similar name, or one of which the name is a part.
fn similar_argument<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let is_part = |known: &&&str| {
        let is_end = known.strip_suffix(name).is_some_and(|begin| begin.ends_with('_'));
        let begins = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'))
        };
        is_end || begins(known, name) || begins(name, known)
    };
    nearest(name, known.iter().copied()).or_else(|| known.iter().find(is_part).copied())
}

fn invalid_argument(name: &str, what: impl Display) -> Error {
    invalid_input(format!("invalid argument `{name}`: {what}"))
}

fn invalid_input(what: String) -> Error {
    let hint = "the tool's input schema lists the arguments and their types";
    Error::new(Code::InvalidInput, what).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    /// The fields that a call sets, or the error.
    fn parse(tool: &str, arguments: Value) -> Result<Value, String> {
        let tool = tools::all().find(|it| it.name == tool).unwrap();
        let mut arguments = arguments.as_object().cloned().unwrap();
        let key = tool.take_key(&mut arguments).map_err(|error| error.message)?;
        let parsed = match tool.name {
            "run_cancel" => tool.parse_arguments(arguments).map(|it: api::RunCancel| json!(it)),
            "agent_list" => tool.parse_arguments(arguments).map(|it: api::AgentList| json!(it)),
            "ledger_query" => tool.parse_arguments(arguments).map(|it: api::LedgerTail| json!(it)),
            _ => tool.parse_arguments(arguments).map(|it: api::RunRetry| json!(it)),
        };
        parsed.map(|fields| json!([fields, key])).map_err(|error| error.message)
    }

    #[test]
    fn arguments_set_the_fields_that_the_row_names() {
        for (tool, arguments, expected) in [
            ("run_cancel", json!({"run_id": "r"}), json!([{"id": "r", "note": null}, null])),
            (
                "run_cancel",
                json!({"run_id": "r", "note": null}),
                json!([{"id": "r", "note": null}, null]),
            ),
            (
                "run_retry",
                json!({"run_id": "r", "idempotency_key": "k"}),
                json!([{"id": "r"}, "k"]),
            ),
            (
                "ledger_query",
                json!({"cursor": 7}),
                json!([{"after": 7, "limit": null, "wait_ms": 0}, null]),
            ),
            (
                "ledger_query",
                json!({"after": 7}),
                json!([{"after": 7, "limit": null, "wait_ms": 0}, null]),
            ),
        ] {
            assert_eq!(parse(tool, arguments), Ok(expected), "{tool}");
        }
    }

    #[test]
    fn errors_name_arguments_and_not_fields() {
        for (tool, arguments, expected) in [
            ("run_cancel", json!({}), "`run_id` is missing"),
            ("run_retry", json!({"run_id": "r"}), "`idempotency_key` is missing"),
            (
                "run_cancel",
                json!({"run_id": 1}),
                "invalid argument `run_id`: invalid type: integer `1`, expected a string",
            ),
            (
                "run_retry",
                json!({"run_id": "r", "idempotency_key": 1}),
                "invalid argument `idempotency_key`: invalid type: integer `1`, expected a string",
            ),
            ("run_cancel", json!({"id": "r"}), "unknown argument `id`"),
            ("agent_list", json!({"name": "ada"}), "unknown argument `name`"),
            ("agent_list", json!({"idempotency_key": "k"}), "unknown argument `idempotency_key`"),
            ("ledger_query", json!({"cursor": 1, "after": 2}), "`cursor` is given twice"),
        ] {
            assert_eq!(parse(tool, arguments), Err(expected.to_owned()), "{tool}");
        }
    }
    #[test]
    fn hints_name_the_argument_that_was_meant() {
        let hint = |tool: &str, arguments: Value| {
            let tool = tools::all().find(|it| it.name == tool).unwrap();
            let mut arguments = arguments.as_object().cloned().unwrap();
            let key = tool.take_key(&mut arguments);
            let parsed = key.and_then(|_| tool.parse_arguments::<api::RunCancel>(arguments));
            parsed.unwrap_err().hint.unwrap()
        };
        for (tool, arguments, expected) in [
            ("run_cancel", json!({"id": "r"}), "did you mean `run_id`?"),
            ("run_cancel", json!({"runid": "r"}), "did you mean `run_id`?"),
            ("run_cancel", json!({"run": "r"}), "did you mean `run_id`?"),
            ("agent_get", json!({"agent_name": "ada"}), "did you mean `agent`?"),
            (
                "run_cancel",
                json!({"force": true}),
                "the arguments are `idempotency_key`, `note`, `run_id`",
            ),
            ("status_get", json!({"all": true}), "the tool takes no arguments"),
            (
                "schedule_pause",
                json!({}),
                "pass `schedule_id`: the id, `sch_…`, or the name, from schedule_list",
            ),
        ] {
            assert_eq!(hint(tool, arguments.clone()), expected, "{tool} {arguments}");
        }
    }

    /// Callers of earlier versions use the name of the field.
    #[test]
    fn the_earlier_names_of_ids_are_accepted() {
        for (tool, name, earlier) in [
            ("schedule_get", "schedule_id", "id"),
            ("schedule_pause", "schedule_id", "id"),
            ("schedule_resume", "schedule_id", "id"),
            ("schedule_delete", "schedule_id", "id"),
            ("slot_explain", "schedule_id", "id"),
            ("approval_get", "approval_id", "id"),
            ("approval_call_human", "approval_id", "id"),
            ("agent_get", "agent", "name"),
        ] {
            let tool = tools::all().find(|it| it.name == tool).unwrap();
            let fields = |argument: &str| {
                let arguments = JsonObject::from_iter([(argument.to_owned(), json!("x"))]);
                tool.rename_to_fields(arguments)
            };
            assert_eq!(fields(name).unwrap(), fields(earlier).unwrap(), "{tool:?}");
            let schema = tool.input_schema();
            assert!(schema["properties"].get(earlier).is_none(), "{tool:?}");
            let both = json!({name: "x", earlier: "x"});
            let twice = tool.rename_to_fields(both.as_object().cloned().unwrap()).unwrap_err();
            assert_eq!(twice.message, format!("`{name}` is given twice"));
        }
    }
}
