//! The OpenAPI document of the HTTP API, made from the table of requests.
//!
//! It describes; it decides nothing. `docs/openapi.json` is its checked-in text, which the daemon serves.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{API_PREFIX, Class, Code, Events, Method, Route};

/// Longest idempotency key.
pub const KEY_CHARS_MAX: usize = 128;

/// The OpenAPI 3.1 document of all routes.
pub fn document() -> Value {
    let mut responses = response_generator();
    let mut paths = Map::new();
    for route in Route::all() {
        let operation = operation(route, &mut responses);
        insert(&mut paths, route.path, route.method, operation);
    }
    insert(&mut paths, "/events", Method::GET, feed(&mut responses));
    for (path, summary) in [
        ("/healthz", "Responds while the process is alive. Needs no token."),
        ("/readyz", "Responds with 200 while the ledger can be written. Needs no token."),
    ] {
        paths.insert(path.to_owned(), probe(path, summary));
    }
    let mut schemas = responses.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Midwatch",
            "version": "1",
            "description": "Everything that the command line does, over HTTP on this machine. See docs/http.md.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `midwatch token create`. Its role decides what works.",
                },
            },
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "The request was refused; `error.code` is stable.",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                },
            },
        },
    })
}

/// The document as it is checked in.
pub fn text() -> String {
    format!("{:#}\n", document())
}

fn insert(paths: &mut Map<String, Value>, path: &str, method: Method, operation: Value) {
    let item = paths.entry(format!("{API_PREFIX}{path}")).or_insert_with(|| json!({}));
    if let Some(item) = item.as_object_mut() {
        item.insert(method.as_str().to_ascii_lowercase(), operation);
    }
}

fn response_generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.meta_schema = None;
        settings.definitions_path = "/components/schemas".into();
    });
    settings.into_generator()
}

/// The schema of a request alone, without references.
fn request_schema(route: &Route) -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = (route.request_schema)(&mut settings.into_generator());
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn operation(route: &Route, responses: &mut SchemaGenerator) -> Value {
    let mut request = request_schema(route);
    request.remove("title");
    let summary = request.remove("description").unwrap_or_else(|| json!(route.name));
    let required = request.remove("required").unwrap_or_else(|| json!([]));
    let mut required: Vec<String> = serde_json::from_value(required).unwrap_or_default();
    let mut parameters = Vec::new();
    if let Some(properties) = request.get_mut("properties").and_then(Value::as_object_mut) {
        for name in route.path_parameters() {
            let schema = properties.remove(name).unwrap_or_default();
            // An empty segment is another path.
            let schema = with_field(schema, "minLength", json!(1));
            parameters.push(parameter("path", name, schema, true));
            required.retain(|field| field != name);
        }
        if !route.method.has_body() {
            for (name, schema) in std::mem::take(properties) {
                let is_required = required.contains(&name);
                parameters.push(parameter("query", &name, without_null(schema), is_required));
            }
        }
    }
    parameters.extend(headers(route));
    let mut ok = json!({
        "description": "Done.",
        "content": {"application/json": {"schema": response_schema(route, responses)}},
    });
    if let Some(headers) = response_headers(route) {
        ok = with_field(ok, "headers", headers);
    }
    let mut operation = json!({
        "operationId": route.name.replace('.', "_"),
        "summary": summary,
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "parameters": parameters,
        "responses": all_responses(ok),
    });
    if route.method.has_body() {
        if !required.is_empty() {
            request.insert("required".to_owned(), json!(required));
        }
        let body = json!({
            "required": !required.is_empty(),
            "content": {"application/json": {"schema": request}},
        });
        operation = with_field(operation, "requestBody", body);
    }
    operation
}

/// The headers that a request may or must have.
fn headers(route: &Route) -> Vec<Value> {
    let mut headers = Vec::new();
    if !matches!(route.class, Class::Read(_)) {
        let schema = json!({
            "type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX, "pattern": "^[!-~]+$",
            "description": "A request that is repeated with the same key is done once.",
        });
        headers.push(parameter("header", "Idempotency-Key", schema, false));
    }
    if route.method.is_edit() {
        let schema = json!({
            "type": "string", "pattern": "^\"v[1-9][0-9]{0,17}\"$",
            "description": "The `ETag` of the object that the caller has read.",
        });
        headers.push(parameter("header", "If-Match", schema, true));
    }
    headers
}

fn response_headers(route: &Route) -> Option<Value> {
    let text = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    let mut headers = Map::new();
    if !matches!(route.class, Class::Read(_)) {
        let about = "`true` if the response is that of an earlier request with the same key.";
        headers.insert("Idempotent-Replayed".to_owned(), text(about));
    }
    if matches!(route.name, "schedule.show" | "schedule.edit" | "agent.show" | "agent.edit") {
        headers.insert("ETag".to_owned(), text("The version of the object, for `If-Match`."));
    }
    (!headers.is_empty()).then(|| headers.into())
}

fn response_schema(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let schema = (route.response_schema)(generator).to_value();
    match route.is_list() {
        false => schema,
        true => json!({
            "allOf": [
                schema,
                {
                    "type": "object",
                    "properties": {
                        "at": {
                            "type": "integer",
                            "description": "The position in the ledger before the list was read. `GET /events?after=` follows from there.",
                        },
                    },
                    "required": ["at"],
                },
            ],
        }),
    }
}

/// `GET /events`.
fn feed(responses: &mut SchemaGenerator) -> Value {
    let text = |name: &str, about: &str| {
        parameter("query", name, json!({"type": "string", "description": about}), false)
    };
    let number = |name: &str, about: &str| {
        let schema =
            json!({"type": "integer", "format": "uint64", "minimum": 0, "description": about});
        parameter("query", name, schema, false)
    };
    let page = responses.subschema_for::<Events>().to_value();
    let ok = json!({
        "description": "The entries after a position: one page, or a stream that goes on.",
        "content": {
            "application/json": {"schema": page},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    });
    json!({
        "operationId": "events",
        "summary": "Follows the ledger from any position, as one page, as lines of JSON or as server-sent events.",
        "tags": ["events"],
        "parameters": [
            number("after", "The position; the end of the ledger if absent."),
            text("log", "The `log` of an earlier response; another ledger is refused."),
            text("kind", "Only entries of this kind, such as `run.started` or `run.*`."),
            text("schedule", "Only entries about this schedule and its runs."),
            text("run", "Only entries about this run."),
            number("limit", "Most entries in a page, 1 to 1000. Default: 50."),
            number("wait", "Seconds to wait for an entry if none follows; at most 25."),
        ],
        "responses": all_responses(ok),
    })
}

/// A path that needs no token.
fn probe(path: &str, summary: &str) -> Value {
    let text = |about: &str| json!({"description": about, "content": {"text/plain": {"schema": {"type": "string"}}}});
    let mut responses = json!({"200": text("Yes.")});
    if path == "/readyz" {
        responses = with_field(responses, "503", text("No."));
    }
    json!({
        "get": {
            "operationId": path.trim_start_matches('/'),
            "summary": summary,
            "tags": ["probes"],
            "security": [],
            "responses": responses,
        },
    })
}

/// What a request is answered with. Refusals are ranges, because a new code must not break the document.
fn all_responses(ok: Value) -> Value {
    let refusal = json!({"$ref": "#/components/responses/Problem"});
    json!({"200": ok, "4XX": refusal, "503": refusal})
}

/// A refusal, RFC 9457 around our error.
fn problem() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({
        "type": "object",
        "required": ["type", "title", "status", "error"],
        "properties": {
            "type": {"type": "string", "description": "`/errors/` and the code."},
            "title": {"type": "string", "description": "What the code means."},
            "status": {"type": "integer"},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "enum": codes},
                    "message": {"type": "string", "description": "What is wrong."},
                    "hint": {"type": "string", "description": "What to do next."},
                },
            },
        },
    })
}

fn parameter(place: &str, name: &str, mut schema: Value, required: bool) -> Value {
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
    let parameter = json!({"name": name, "in": place, "required": required, "schema": schema});
    match about {
        Some(about) => with_field(parameter, "description", about),
        None => parameter,
    }
}

/// A parameter is there or not; it cannot be null.
fn without_null(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else { return schema };
    fields.remove("default");
    for list in ["type", "enum"] {
        if let Some(Value::Array(items)) = fields.get_mut(list) {
            items.retain(|item| !item.is_null() && item != "null");
            if list == "type" && items.len() == 1 {
                let only = items.remove(0);
                fields.insert(list.to_owned(), only);
            }
        }
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({"type": "null"}));
        if choices.len() == 1
            && let Some(Value::Object(only)) = choices.pop()
        {
            fields.remove("anyOf");
            fields.extend(only);
        }
    }
    schema
}

fn with_field(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
    object
}
