//! Version 1 of the HTTP API only grows. What clients may rely on is one line each in `contract.txt`: no line of it may go.
//!
//! A new line is added by `cargo xtask docs`, like the other generated files. A line that is gone, or a new required field of a
//! route that exists, is a breaking change, which needs another version of the API.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// What clients of a document may rely on, one line each.
///
/// `GET /api/v1/runs` is a route, `GET /api/v1/runs -> …` its response, `Runs.cursor?: string` a field that may be absent, `=` a value,
/// `>` what a request may have, and `!` what it must have.
fn contract(document: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (path, methods) in object(&document["paths"]) {
        for (method, operation) in object(methods) {
            let route = format!("{} {path}", method.to_ascii_uppercase());
            lines.insert(route.clone());
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                if parameter["required"] == true {
                    lines.insert(format!("{route} ! {name}"));
                }
                fields(&format!("{route} > {name}"), &parameter["schema"], &mut lines);
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            request_fields(&route, "", body, &mut lines);
            for (kind, content) in object(&operation["responses"]["200"]["content"]) {
                fields(&format!("{route} -> {kind}"), &content["schema"], &mut lines);
            }
        }
    }
    for (name, schema) in object(&document["components"]["schemas"]) {
        fields(name, schema, &mut lines);
    }
    lines
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn request_fields(route: &str, prefix: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in object(&schema["properties"]) {
        if required.contains(&name.as_str()) {
            lines.insert(format!("{route} ! {prefix}{name}"));
        }
        let path = format!("{prefix}{name}");
        values(&format!("{route} > {path}: {}", kind_of(field)), field, lines);
        for inner in [field, &field["items"]].into_iter().chain(choices(field)) {
            request_fields(route, &format!("{path}."), inner, lines);
        }
    }
}

/// The fields of a response, and the name of the schema where they are elsewhere.
fn fields(name: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    values(&format!("{name}: {}", kind_of(schema)), schema, lines);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (field, inner) in object(&schema["properties"]) {
        let mark = if required.contains(&field.as_str()) { "" } else { "?" };
        fields(&format!("{name}.{field}{mark}"), inner, lines);
    }
    if schema["items"].is_object() {
        fields(&format!("{name}[]"), &schema["items"], lines);
    }
    for choice in choices(schema) {
        fields(name, choice, lines);
    }
}

fn values(line: &str, schema: &Value, lines: &mut BTreeSet<String>) {
    lines.insert(line.to_owned());
    for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        lines.insert(format!("{line} = {value}"));
    }
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|list| schema[list].as_array());
    lists.flatten()
}

/// The type of a schema, or the name of another one.
fn kind_of(schema: &Value) -> String {
    match (&schema["$ref"], &schema["type"]) {
        (Value::String(path), _) => path.rsplit('/').next().unwrap_or_default().to_owned(),
        (_, Value::String(kind)) => kind.clone(),
        (_, Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
        }
        _ => "any".to_owned(),
    }
}

/// What breaks clients between two contracts.
fn breaking_changes(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let is_kept = |line: &&String| {
        // A field that was sometimes absent may always be there.
        after.contains(*line) || after.contains(&line.replace('?', "")) || line.contains(" ! ")
    };
    let removed = before.iter().filter(|line| !is_kept(line));
    let removed = removed.map(|line| format!("no longer: {line}"));
    let required = after.difference(before).filter_map(|line| {
        let (route, _) = line.split_once(" ! ")?;
        before.contains(route).then(|| format!("newly required: {line}"))
    });
    removed.chain(required).collect()
}

#[test]
fn contract_is_fresh() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/contract.txt");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let before: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let after = contract(&api::openapi::document());
    let broken = breaking_changes(&before, &after);
    assert!(broken.is_empty(), "these changes break clients of the HTTP API: {broken:#?}");
    if before != after {
        let lines: Vec<String> = after.into_iter().collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        panic!("contract.txt was stale and has been rewritten: commit it");
    }
}

#[test]
fn breaking_changes_are_found() {
    let document = api::openapi::document();
    let before = contract(&document);
    let check = |pointer: &str, change: &dyn Fn(&mut Value), expected: Option<&str>| {
        let mut changed = document.clone();
        change(changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")));
        let broken = breaking_changes(&before, &contract(&changed));
        assert_eq!(broken.first().map(String::as_str), expected, "{pointer}: {broken:?}");
    };
    let remove = |key: &'static str| {
        move |value: &mut Value| {
            assert!(value.as_object_mut().unwrap().remove(key).is_some(), "{key}");
        }
    };
    let push = |item: &'static str| {
        move |value: &mut Value| value.as_array_mut().unwrap().push(item.into())
    };
    check("/paths", &remove("/api/v1/health"), Some("no longer: GET /api/v1/health"));
    let method = remove("delete");
    check(
        "/paths/~1api~1v1~1schedules~1{id}",
        &method,
        Some("no longer: DELETE /api/v1/schedules/{id}"),
    );
    let fields = "/components/schemas/Run/properties";
    check(fields, &remove("attempt"), Some("no longer: Run.attempt: integer"));
    let required = "/components/schemas/Run/required";
    check(
        required,
        &|list| drop(list.as_array_mut().unwrap().remove(0)),
        Some("no longer: Run.id: string"),
    );
    check(required, &push("usage"), None);
    let states = format!("{fields}/state/enum");
    let value = Some("no longer: Run.state: string = \"queued\"");
    check(&states, &|list| drop(list.as_array_mut().unwrap().remove(0)), value);
    check(&states, &push("new"), None);
    check(fields, &|fields| fields["more"] = serde_json::json!({"type": "string"}), None);
    let body = "/paths/~1api~1v1~1agents/post/requestBody/content/application~1json/schema";
    let needed = Some("newly required: POST /api/v1/agents ! tier");
    check(&format!("{body}/required"), &push("tier"), needed);
    let tier = Some("no longer: POST /api/v1/agents > tier: integer|null");
    check(&format!("{body}/properties"), &remove("tier"), tier);
}
