//! What clients of every kind accept, and what the rows promise.

use std::collections::BTreeSet;

use api::Class;
use mcp::{Effect, Selection, Toolset, instructions, scheduled, tools};
use serde_json::Value;

/// Bytes of the definition of one tool.
const DEFINITION_BYTES_MAX: usize = 4_096;
/// Tools that are offered when nobody says which.
const DEFAULT_MAX: usize = 40;

fn described(tool: &mcp::Tool) -> Value {
    serde_json::to_value(tool.described()).unwrap()
}

/// Every schema within a schema.
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
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_lowercase());
    let goes_on = letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    begins && goes_on && name.len() <= 40
}

fn is_foreign(tool: &mcp::Tool) -> bool {
    [Toolset::Astra, Toolset::Promptyoself, Toolset::Foundry].contains(&tool.toolset)
}

#[test]
fn names_are_such_that_every_host_accepts_them() {
    let names: Vec<&str> = tools().map(|tool| tool.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "each stands once");
    let rewritten: BTreeSet<String> = names.iter().map(|name| name.replace('.', "_")).collect();
    assert_eq!(rewritten.len(), names.len(), "also where a host writes `_` for `.`");
    for tool in tools().filter(|tool| !is_foreign(tool)) {
        assert!(is_plain_name(tool.name), "{tool:?}");
        let described = described(tool);
        for field in described["inputSchema"]["properties"].as_object().unwrap().keys() {
            assert!(is_plain_name(field), "{tool:?}: {field}");
        }
    }
}

#[test]
fn schemas_are_one_object_written_out_in_place() {
    for tool in tools() {
        let described = described(tool);
        let size = described.to_string().len();
        assert!(size <= DEFINITION_BYTES_MAX, "{tool:?} has {size} bytes");
        for schema in [&described["inputSchema"], &described["outputSchema"]] {
            if tool.toolset == Toolset::Foundry && schema.is_null() {
                // It answers with text alone.
                continue;
            }
            assert_eq!(schema["type"], "object", "{tool:?}");
            walk(schema, &mut |fields| {
                for odd in ["$ref", "$defs", "oneOf", "anyOf", "allOf", "format", "$schema"] {
                    assert!(!fields.contains_key(odd), "{tool:?}: {odd}");
                }
                assert!(!fields.get("type").is_some_and(Value::is_array), "{tool:?}");
            });
        }
        let input = &described["inputSchema"];
        assert_eq!(input["additionalProperties"], false, "{tool:?}");
        for (name, field) in input["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{tool:?}: {name} has no description");
        }
    }
}

#[test]
fn what_changes_something_takes_a_key_and_needs_one_where_twice_is_not_once() {
    for tool in tools() {
        let input = &described(tool)["inputSchema"];
        let takes_key = input["properties"].get("idempotency_key").is_some();
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let needs_key = required.contains(&"idempotency_key".into());
        match (tool.effect, tool.idempotent) {
            // A preview takes what the real thing takes.
            (Effect::Read, _) => assert!(!needs_key, "{tool:?}"),
            (Effect::Write | Effect::Destroy, true) => assert!(takes_key && !needs_key, "{tool:?}"),
            // Clients of another program do not know of keys.
            (Effect::Write | Effect::Destroy, false) if is_foreign(tool) => {
                assert!(takes_key && !needs_key, "{tool:?}");
            }
            (Effect::Write | Effect::Destroy, false) => assert!(needs_key, "{tool:?}"),
        }
    }
}

#[test]
fn hints_say_what_the_row_says() {
    for tool in tools() {
        let hints = &described(tool)["annotations"];
        assert_eq!(hints["readOnlyHint"], tool.effect == Effect::Read, "{tool:?}");
        assert_eq!(hints["destructiveHint"], tool.effect == Effect::Destroy, "{tool:?}");
        assert_eq!(hints["idempotentHint"], tool.idempotent, "{tool:?}");
        assert_eq!(hints["openWorldHint"], false, "{tool:?}");
    }
}

#[test]
fn b1_no_tool_decides_for_a_human() {
    let human =
        ["approve", "deny", "revoke", "freeze", "thaw", "renew", "settle", "waive", "token"];
    for tool in tools() {
        assert!(!human.iter().any(|word| tool.name.contains(word)), "{tool:?}");
    }
}

#[test]
fn a_selection_shows_what_it_was_asked_for_and_nothing_that_changes_when_it_only_reads() {
    let usual: Vec<_> = Selection::default().tools().collect();
    assert!(usual.len() <= DEFAULT_MAX);
    assert!(usual.iter().all(|tool| tool.toolset.is_default()));
    let reading = Selection::of(Toolset::ALL.to_vec()).read_only(true);
    assert!(reading.tools().all(|tool| tool.effect == Effect::Read || tool.by_action));
    assert!(reading.find("run_start").is_none() && reading.find("run_get").is_some());
    assert!(Selection::default().find("ledger_query").is_none());
    assert!("ledgers".parse::<Toolset>().is_err());
}

#[test]
fn names_of_other_programs_are_listed_only_where_they_were_chosen() {
    let usual: Vec<_> = Selection::default().tools().collect();
    assert!(!usual.iter().any(|tool| is_foreign(tool) || tool.name.contains('.')));
    for tool in tools().filter(|tool| is_foreign(tool)) {
        assert!(Selection::default().find(tool.name).is_none(), "{tool:?}");
        let chosen = Selection::of(vec![tool.toolset]);
        let underscored = tool.name.replace('.', "_");
        for name in [tool.name, &underscored] {
            assert_eq!(chosen.find(name).map(|tool| tool.name), Some(tool.name));
        }
        assert!(!usual.iter().any(|it| it.name == underscored), "{tool:?}");
    }
    let astra = Selection::of(vec![Toolset::Astra]);
    assert!(astra.find("astra.schedule_create").is_none());
    assert!(astra.find("astra_schedule.create").is_none());
    for toolset in Toolset::ALL {
        let cautions = Selection::of(vec![*toolset]).cautions().count();
        assert_eq!(cautions, usize::from(*toolset == Toolset::Astra), "{toolset:?}");
    }
}

#[test]
fn a_tool_of_many_actions_is_announced_as_the_worst_and_stays_where_nothing_is_changed() {
    let by_action: Vec<_> = tools().filter(|tool| tool.by_action).collect();
    assert!(by_action.iter().all(|tool| tool.effect == Effect::Destroy), "{by_action:?}");
    assert_eq!(by_action.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["server"]);
    let reading = Selection::of(vec![Toolset::Foundry, Toolset::Astra]).read_only(true);
    assert!(reading.find("server").is_some());
    assert!(reading.find("astra.schedule.create").is_none());
    assert!(reading.find("astra_schedule_create").is_none());
}

#[test]
fn instructions_are_short_and_name_tools_that_there_are() {
    let usual = instructions(&Selection::default());
    assert!(usual.len() <= 1_500, "{}", usual.len());
    for name in ["status_get", "run_start", "run_wait", "approval_call_human", "approval_get"] {
        assert!(usual.contains(name), "{name}");
    }
    let astra = Selection::of(vec![Toolset::Astra]);
    for selection in [Selection::default(), Selection::default().read_only(true), astra] {
        let told = instructions(&selection);
        for tool in tools().filter(|tool| tool.name.contains('_') && told.contains(tool.name)) {
            assert!(selection.find(tool.name).is_some(), "{}: {told}", tool.name);
        }
    }
}

#[test]
fn what_a_schedule_may_call_is_told_apart_by_all_that_is_told_of_it() {
    let mut hashes = BTreeSet::new();
    for tool in tools().filter(|tool| scheduled::find(tool.name).is_ok()) {
        assert!(hashes.insert(tool.hash()), "{tool:?}");
        assert_eq!(tool.hash(), tool.hash());
    }
    assert!(10 < hashes.len());
    for waits in ["run_wait", "permission_decide", "approval_call_human", "nothing"] {
        assert!(scheduled::find(waits).is_err(), "{waits}");
    }
    let start = scheduled::find("run_start").unwrap();
    let asked = scheduled::request(start, r#"{"schedule_id": "sch_1"}"#).unwrap();
    assert_eq!(asked.name(), "schedule.fire");
    for payload in ["", "[]", "{}", r#"{"schedule_id": "a", "idempotency_key": "k"}"#] {
        assert!(scheduled::request(start, payload).is_err(), "{payload}");
    }
}

/// Something that fits a field.
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

/// The table of tools and the table of requests say the same of what changes something.
#[test]
fn a_tool_reads_where_its_request_does_and_changes_something_where_that_does() {
    let mut count = 0;
    for tool in tools().filter(|tool| !is_foreign(tool)) {
        let input = &described(tool)["inputSchema"];
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let names = required.iter().filter_map(Value::as_str).filter(|it| *it != "idempotency_key");
        let mut payload: serde_json::Map<String, Value> =
            names.map(|name| (name.to_owned(), sample(&input["properties"][name]))).collect();
        if tool.name == "permission_decide" {
            // It takes one of two questions, so that neither is required.
            payload.insert("capability".to_owned(), "net.read".into());
        }
        let payload = Value::Object(payload).to_string();
        let request =
            scheduled::request(tool, &payload).unwrap_or_else(|e| panic!("{tool:?}: {e}"));
        let reads = tool.effect == Effect::Read;
        assert_eq!(reads, !request.changes(), "{tool:?} {}", request.name());
        // What is only tried out is of the class of the real thing.
        let is_read = matches!(request.class(), Class::Read(_));
        assert!(is_read == reads || tool.name.ends_with("_preview"), "{tool:?} {}", request.name());
        count += 1;
    }
    assert!(10 < count);
}
