//! Schemas that every client accepts: one object, everything written out in place, no type twice.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// What a tool takes.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    plain(&mut schema);
    let mut root = match schema {
        Value::Object(root) => root,
        _ => JsonObject::new(),
    };
    for noise in ["$schema", "title", "description"] {
        root.remove(noise);
    }
    root.entry("properties").or_insert_with(|| json!({}));
    root.insert("additionalProperties".to_owned(), json!(false));
    root
}

/// What is in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Flag,
    Object,
    Objects,
    Texts,
    /// Text that is there only when there is more.
    Cursor,
}

/// What a tool gives. Fields that are not named may come with these, and a refusal comes instead of them: there
/// are clients that hold a refusal to this too, so nothing is required.
pub(crate) fn output(fields: &[(&str, Kind)], error: Kind) -> JsonObject {
    let refusal = ("error", error);
    let named = fields.iter().chain([&refusal]);
    let named = named.map(|(name, kind)| ((*name).to_owned(), kind.schema()));
    let mut root = JsonObject::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), Value::Object(named.collect()));
    root
}

impl Kind {
    fn schema(self) -> Value {
        match self {
            Kind::Text | Kind::Cursor => json!({"type": "string"}),
            Kind::Number => json!({"type": "integer"}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Object => json!({"type": "object"}),
            Kind::Objects => json!({"type": "array", "items": {"type": "object"}}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        }
    }
}

/// What may be left out is not something that may be null, and a size of numbers is nobody's format.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get("type")
                && let Some(only) = types.iter().find(|it| *it != "null").cloned()
            {
                fields.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(allowed)) = fields.get_mut("enum") {
                allowed.retain(|it| !it.is_null());
            }
            fields.remove("format");
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
