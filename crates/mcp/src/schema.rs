//! JSON schemas that every client accepts: one object, subschemas inlined, one type per field.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The input schema of a tool.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    simplify(&mut schema);
    let mut root = match schema {
        Value::Object(root) => root,
        _ => JsonObject::new(),
    };
    for keyword in ["$schema", "title", "description"] {
        root.remove(keyword);
    }
    root.entry("properties").or_insert_with(|| json!({}));
    root.insert("additionalProperties".to_owned(), json!(false));
    root
}

/// The type of a field of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    Text,
    Integer,
    Boolean,
    Object,
    Objects,
    Texts,
    /// Text that is present only if there are more items.
    Cursor,
}

/// The output schema of a tool. An answer may have more fields, and an error has none of these: some clients check
/// errors against the schema, too, so no field is required.
pub(crate) fn output(fields: &[(&str, FieldType)], error: FieldType) -> JsonObject {
    let error = ("error", error);
    let properties = fields.iter().chain([&error]);
    let properties = properties.map(|(name, kind)| ((*name).to_owned(), kind.schema()));
    let mut root = JsonObject::new();
    root.insert("type".to_owned(), json!("object"));
    root.insert("properties".to_owned(), Value::Object(properties.collect()));
    root
}

impl FieldType {
    fn schema(self) -> Value {
        match self {
            FieldType::Text | FieldType::Cursor => json!({"type": "string"}),
            FieldType::Integer => json!({"type": "integer"}),
            FieldType::Boolean => json!({"type": "boolean"}),
            FieldType::Object => json!({"type": "object"}),
            FieldType::Objects => json!({"type": "array", "items": {"type": "object"}}),
            FieldType::Texts => json!({"type": "array", "items": {"type": "string"}}),
        }
    }
}

/// Removes what clients reject: `null` as a type of optional fields, and integer widths as `format`.
fn simplify(schema: &mut Value) {
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
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}
