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
    properties_mut(&mut root);
    root.insert("additionalProperties".to_owned(), json!(false));
    root
}

/// The properties of an input schema.
pub(crate) fn properties_mut(schema: &mut JsonObject) -> Option<&mut JsonObject> {
    schema.entry("properties").or_insert_with(|| json!({})).as_object_mut()
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

/// Removes what clients reject: `null` as a type of optional fields, integer widths as `format`, and enums as a choice
/// of constants. The description of a field says its default.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            merge_choice(fields);
            if let Some(Value::Array(types)) = fields.get("type")
                && let Some(only) = types.iter().find(|it| *it != "null").cloned()
            {
                fields.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(allowed)) = fields.get_mut("enum") {
                allowed.retain(|it| !it.is_null());
            }
            for keyword in ["format", "default"] {
                // A property may have such a name; then it has a schema.
                if fields.get(keyword).is_some_and(|it| !it.is_object()) {
                    fields.remove(keyword);
                }
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Merges an optional value (`anyOf` it or null) and an enum whose variants have descriptions (`oneOf` constants) into
/// the schema itself.
fn merge_choice(fields: &mut JsonObject) {
    if let Some(Value::Array(choices)) = fields.get("anyOf")
        && let [value, null] = choices.as_slice()
        && null.get("type").is_some_and(|kind| kind == "null")
        && let Value::Object(value) = value.clone()
    {
        fields.remove("anyOf");
        for (keyword, value) in value {
            fields.entry(keyword).or_insert(value);
        }
    }
    if let Some(Value::Array(choices)) = fields.get("oneOf") {
        let values = |choice: &Value| match (choice.get("const"), choice.get("enum")) {
            (Some(only), _) => Some(vec![only.clone()]),
            (None, some) => some.and_then(Value::as_array).cloned(),
        };
        if let Some(values) = choices.iter().map(values).collect::<Option<Vec<_>>>() {
            fields.remove("oneOf");
            fields.insert("type".to_owned(), json!("string"));
            fields.insert("enum".to_owned(), values.concat().into());
        }
    }
}
