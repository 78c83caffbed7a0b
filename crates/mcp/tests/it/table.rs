//! The table of tools: definitions that every client accepts, and declared effects that match the requests.

use std::collections::BTreeSet;

use api::Class;
use mcp::{Effect, Selection, Toolset, instructions, scheduled, tools};
use serde_json::Value;

/// Longest definition of a tool, in bytes.
const DEFINITION_BYTES_MAX: usize = 4_096;
/// Maximum number of tools that are offered by default.
const DEFAULT_TOOLS_MAX: usize = 40;

fn definition(tool: &mcp::Tool) -> Value {
    serde_json::to_value(tool.definition()).unwrap()
}

/// Visits every object within a schema.
fn walk(schema: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            visit(fields);
            fields.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

fn is_plain_name(name: &str) -> bool {
    let mut letters = name.chars();
    let starts_plain = letters.next().is_some_and(|letter| letter.is_ascii_lowercase());
    let rest_is_plain =
        letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    starts_plain && rest_is_plain && name.len() <= 40
}

fn is_foreign(tool: &mcp::Tool) -> bool {
    [Toolset::Astra, Toolset::Promptyoself, Toolset::Foundry].contains(&tool.toolset)
}

#[test]
fn every_host_accepts_the_names_of_tools_and_arguments() {
    let names: Vec<&str> = tools().map(|tool| tool.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "a name occurs twice");
    let rewritten: BTreeSet<String> = names.iter().map(|name| name.replace('.', "_")).collect();
    assert_eq!(
        rewritten.len(),
        names.len(),
        "a name occurs twice for hosts that write `_` for `.`"
    );
    for tool in tools().filter(|tool| !is_foreign(tool)) {
        assert!(is_plain_name(tool.name), "{tool:?}");
        let definition = definition(tool);
        for field in definition["inputSchema"]["properties"].as_object().unwrap().keys() {
            assert!(is_plain_name(field), "{tool:?}: {field}");
        }
    }
}

#[test]
fn schemas_are_objects_without_references_or_combinators() {
    for tool in tools() {
        let definition = definition(tool);
        let size = definition.to_string().len();
        assert!(size <= DEFINITION_BYTES_MAX, "{tool:?} has {size} bytes");
        for schema in [&definition["inputSchema"], &definition["outputSchema"]] {
            let is_text = tool.toolset == Toolset::Foundry || tool.name == "permission_decide";
            if is_text && schema.is_null() {
                continue;
            }
            assert_eq!(schema["type"], "object", "{tool:?}");
            walk(schema, &mut |fields| {
                for keyword in ["$ref", "$defs", "oneOf", "anyOf", "allOf", "format", "$schema"] {
                    assert!(!fields.contains_key(keyword), "{tool:?}: {keyword}");
                }
                assert!(!fields.get("type").is_some_and(Value::is_array), "{tool:?}");
            });
        }
        let input = &definition["inputSchema"];
        assert_eq!(input["additionalProperties"], false, "{tool:?}");
        for (name, field) in input["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{tool:?}: {name} has no description");
        }
    }
}

#[test]
fn changing_tools_take_a_key_and_require_it_unless_idempotent() {
    for tool in tools() {
        let input = &definition(tool)["inputSchema"];
        let takes_key = input["properties"].get("idempotency_key").is_some();
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let needs_key = required.contains(&"idempotency_key".into());
        match (tool.effect, tool.idempotent) {
            // Reading tools never require a key.
            (Effect::Read, _) => assert!(!needs_key, "{tool:?}"),
            (Effect::Write | Effect::Destroy, true) => assert!(takes_key && !needs_key, "{tool:?}"),
            // Clients of other systems do not know keys.
            (Effect::Write | Effect::Destroy, false) if is_foreign(tool) => {
                assert!(takes_key && !needs_key, "{tool:?}");
            }
            (Effect::Write | Effect::Destroy, false) => assert!(needs_key, "{tool:?}"),
        }
    }
}

#[test]
fn annotations_match_the_declared_effect() {
    for tool in tools() {
        let annotations = &definition(tool)["annotations"];
        assert_eq!(annotations["readOnlyHint"], tool.effect == Effect::Read, "{tool:?}");
        assert_eq!(annotations["destructiveHint"], tool.effect == Effect::Destroy, "{tool:?}");
        assert_eq!(annotations["idempotentHint"], tool.idempotent, "{tool:?}");
        assert_eq!(annotations["openWorldHint"], false, "{tool:?}");
    }
}

#[test]
fn b1_no_tool_makes_a_human_decision() {
    let human_actions =
        ["approve", "deny", "revoke", "freeze", "thaw", "renew", "settle", "waive", "token"];
    for tool in tools() {
        assert!(!human_actions.iter().any(|word| tool.name.contains(word)), "{tool:?}");
    }
}

/// A model that can run commands must not find one that approves in what it is given.
#[test]
fn b1_no_text_for_a_model_has_a_command_that_approves() {
    let all = Selection::new(Toolset::ALL.to_vec());
    let definitions = tools().map(|tool| definition(tool).to_string());
    for text in definitions.chain([instructions(&all)]) {
        assert!(!text.contains("approval approve"), "{text}");
    }
}

#[test]
fn a_selection_offers_its_toolsets_and_only_reading_tools_if_read_only() {
    let default: Vec<_> = Selection::default().tools().collect();
    assert!(default.len() <= DEFAULT_TOOLS_MAX);
    assert!(default.iter().all(|tool| tool.toolset.is_default()));
    let read_only = Selection::new(Toolset::ALL.to_vec()).read_only(true);
    assert!(
        read_only.tools().all(|tool| tool.effect == Effect::Read || tool.effect_depends_on_action)
    );
    assert!(read_only.find("run_start").is_none() && read_only.find("run_get").is_some());
    assert!(Selection::default().find("ledger_query").is_none());
    assert!("ledgers".parse::<Toolset>().is_err());
}

#[test]
fn tools_of_other_systems_are_offered_only_if_selected() {
    let default: Vec<_> = Selection::default().tools().collect();
    assert!(!default.iter().any(|tool| is_foreign(tool) || tool.name.contains('.')));
    for tool in tools().filter(|tool| is_foreign(tool)) {
        assert!(Selection::default().find(tool.name).is_none(), "{tool:?}");
        let selected = Selection::new(vec![tool.toolset]);
        let underscored = tool.name.replace('.', "_");
        for name in [tool.name, &underscored] {
            assert_eq!(selected.find(name).map(|tool| tool.name), Some(tool.name));
        }
        assert!(!default.iter().any(|it| it.name == underscored), "{tool:?}");
    }
    let astra = Selection::new(vec![Toolset::Astra]);
    assert!(astra.find("astra.schedule_create").is_none());
    assert!(astra.find("astra_schedule.create").is_none());
    for toolset in Toolset::ALL {
        let warnings = Selection::new(vec![*toolset]).warnings().count();
        assert_eq!(warnings, usize::from(*toolset == Toolset::Astra), "{toolset:?}");
    }
}

#[test]
fn a_tool_with_actions_is_declared_destructive_and_offered_by_a_read_only_server() {
    let with_actions: Vec<_> = tools().filter(|tool| tool.effect_depends_on_action).collect();
    assert!(with_actions.iter().all(|tool| tool.effect == Effect::Destroy), "{with_actions:?}");
    assert_eq!(with_actions.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["server"]);
    let read_only = Selection::new(vec![Toolset::Foundry, Toolset::Astra]).read_only(true);
    assert!(read_only.find("server").is_some());
    assert!(read_only.find("astra.schedule.create").is_none());
    assert!(read_only.find("astra_schedule_create").is_none());
}

#[test]
fn instructions_are_short_and_name_only_offered_tools() {
    let default = instructions(&Selection::default());
    assert!(default.len() <= 1_500, "{}", default.len());
    for name in ["status_get", "run_start", "run_wait", "approval_call_human", "approval_get"] {
        assert!(default.contains(name), "{name}");
    }
    let astra = Selection::new(vec![Toolset::Astra]);
    for selection in [Selection::default(), Selection::default().read_only(true), astra] {
        let text = instructions(&selection);
        for tool in tools().filter(|tool| tool.name.contains('_') && text.contains(tool.name)) {
            assert!(selection.find(tool.name).is_some(), "{}: {text}", tool.name);
        }
    }
}

#[test]
fn schedulable_tools_have_distinct_definition_hashes() {
    let mut hashes = BTreeSet::new();
    for tool in tools().filter(|tool| scheduled::find(tool.name).is_ok()) {
        assert!(hashes.insert(tool.definition_hash()), "{tool:?}");
        assert_eq!(tool.definition_hash(), tool.definition_hash());
    }
    assert!(10 < hashes.len());
    for name in ["run_wait", "permission_decide", "approval_call_human", "nothing"] {
        assert!(scheduled::find(name).is_err(), "{name}");
    }
    let start = scheduled::find("run_start").unwrap();
    let request = scheduled::request(start, r#"{"schedule_id": "sch_1"}"#).unwrap();
    assert_eq!(request.name(), "schedule.fire");
    for payload in ["", "[]", "{}", r#"{"schedule_id": "a", "idempotency_key": "k"}"#] {
        assert!(scheduled::request(start, payload).is_err(), "{payload}");
    }
}

/// A value that is valid for a field.
fn sample(field: &Value) -> Value {
    match (field["enum"].get(0), field["type"].as_str()) {
        (Some(first), _) => first.clone(),
        (None, Some("integer")) => 1.into(),
        (None, Some("boolean")) => true.into(),
        (None, Some("array")) => Value::Array(Vec::new()),
        (None, Some("object")) => Value::Object(Default::default()),
        (None, _) => "sch_00000000".into(),
    }
}

#[test]
fn the_effect_of_a_tool_matches_that_of_its_request() {
    let mut count = 0;
    for tool in tools().filter(|tool| !is_foreign(tool)) {
        let input = &definition(tool)["inputSchema"];
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let names = required.iter().filter_map(Value::as_str).filter(|it| *it != "idempotency_key");
        let mut payload: serde_json::Map<String, Value> =
            names.map(|name| (name.to_owned(), sample(&input["properties"][name]))).collect();
        if tool.name == "permission_decide" {
            // It takes either a tool call or a capability, so neither is required.
            payload.insert("capability".to_owned(), "net.read".into());
        }
        let payload = Value::Object(payload).to_string();
        let request =
            scheduled::request(tool, &payload).unwrap_or_else(|e| panic!("{tool:?}: {e}"));
        let reads = tool.effect == Effect::Read;
        assert_eq!(reads, !request.changes(), "{tool:?} {}", request.name());
        // A preview makes a dry run of a changing request.
        let is_read = matches!(request.class(), Class::Read(_));
        assert!(is_read == reads || tool.name.ends_with("_preview"), "{tool:?} {}", request.name());
        count += 1;
    }
    assert!(10 < count);
}
