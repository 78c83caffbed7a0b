//! Which surfaces have each request, and why where one has not. Whether HTTP has it is in the table of requests.

use std::collections::BTreeSet;

use api::{Class, HttpRow, Request, Route};
use serde_json::Value;

use crate::support::world::World;

/// Request, command, MCP tool. A text that begins with `-` says why there is none; `- people` is the reason for requests that
/// only people may make.
#[rustfmt::skip]
const SURFACES: &[(&str, &str, &str)] = &[
    ("health", "status", "server_health"),
    ("status", "status", "status_get"),
    ("status.seen", "status", "- people"),
    ("budget.list", "status", "- `budget_get` is a part of `status`"),
    ("tool.list", "status", "- of no use to a model"),
    ("agent.add", "agent add", "- people"),
    ("agent.edit", "agent edit", "- people"),
    ("agent.list", "agent list", "agent_list"),
    ("agent.show", "agent show", "agent_get"),
    ("agent.remove", "agent remove", "- people"),
    ("agent.test", "agent test", "- people"),
    ("schedule.add", "schedule add", "schedule_create"),
    ("schedule.add_all", "schedule import", "- a model adds one at a time"),
    ("schedule.edit", "schedule edit", "schedule_update"),
    ("schedule.list", "schedule list", "schedule_list"),
    ("schedule.show", "schedule show", "schedule_get"),
    ("schedule.pause", "schedule pause", "schedule_pause"),
    ("schedule.resume", "schedule resume", "schedule_resume"),
    ("schedule.remove", "schedule remove", "schedule_delete"),
    ("schedule.slots", "- `why` explains one slot; the dashboard draws them", "- `slot_explain` explains one slot"),
    ("schedule.fire", "run start", "run_start"),
    ("schedule.backfill", "schedule backfill", "- people"),
    ("schedule.backfill_end", "schedule backfill", "- people"),
    ("event.tell", "event publish", "- people"),
    ("why", "why", "slot_explain"),
    ("run.list", "run list", "run_list"),
    ("run.show", "run show", "run_get"),
    ("run.read", "run output", "run_output"),
    ("run.watch", "run watch", "run_wait"),
    ("run.events", "run events", "- a resource, `midwatch://run/ID`"),
    ("run.cancel", "run cancel", "run_cancel"),
    ("run.retry", "run retry", "run_retry"),
    ("run.settle", "run settle", "- people"),
    ("approval.list", "approval list", "approval_list"),
    ("approval.show", "approval show", "approval_get"),
    ("approval.decide", "approval approve", "- people"),
    ("freeze", "freeze", "- people"),
    ("thaw", "thaw", "- people"),
    ("lease.renew", "lease renew", "- people"),
    ("daemon.stop", "stop", "- people"),
    ("policy.decide", "policy explain", "permission_decide"),
    ("policy.explain", "policy explain", "run_explain"),
    ("policy.list", "policy list", "- of no use to a model"),
    ("policy.replay", "policy replay", "- of no use to a model"),
    ("config.reload", "config reload", "- people"),
    ("config.ask", "config show", "- of no use to a model"),
    ("notice.list", "notice list", "- of no use to a model"),
    ("notice.test", "notice test", "- people"),
    ("cleanup", "cleanup", "- people"),
    ("check", "doctor", "- of no use to a model"),
    ("token.create", "token create", "- people"),
    ("token.list", "token list", "- of no use to a model"),
    ("token.revoke", "token revoke", "- people"),
    ("device.link", "open", "- only a person asks for a link"),
    ("device.list", "device list", "- of no use to a model"),
    ("device.revoke", "device revoke", "- people"),
    ("ledger.tail", "ledger tail", "ledger_query"),
    ("timeline", "timeline", "- `ledger_query` has the same as data"),
    ("news", "- part of commands that wait, such as `run watch`", "- notifications of subscribed resources"),
    ("ledger.checkpoint", "ledger checkpoint", "- people"),
    ("ledger.export", "ledger export", "- people"),
    ("ledger.rebuild", "ledger rebuild", "- people"),
];

const TOOLS: &str = include_str!("../../../../../docs/mcp-tools.json");

#[test]
fn every_request_has_each_surface_or_a_reason() {
    let world = World::new();
    let listed: Vec<&str> = SURFACES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(listed, Request::NAMES, "the table lists every request, in their order");
    let manifest: Value = serde_json::from_str(TOOLS).unwrap();
    let mut tools = BTreeSet::new();
    collect_names(&manifest, &mut tools);
    let mut commands = BTreeSet::new();
    for ((name, command, tool), row) in SURFACES.iter().zip(Request::ROUTES) {
        match command.strip_prefix("- ") {
            Some(reason) => assert!(!reason.is_empty(), "{name}"),
            None => drop(commands.insert(*command)),
        }
        let class = Route::all().find(|route| route.name == *name).map(|route| route.class);
        let is_for_people = class == Some(Class::People);
        match tool.strip_prefix("- ") {
            Some(reason) => assert_eq!(is_for_people, reason == "people", "{name}: {reason}"),
            None => assert!(tools.contains(*tool) && !is_for_people, "{name}: no tool `{tool}`"),
        }
        match row {
            HttpRow::Route(route) => assert_eq!(route.name, *name),
            HttpRow::NoRoute { name: other, reason } => {
                assert!(other == name && !reason.is_empty(), "{name}");
            }
        }
    }
    for command in commands {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        assert!(world.ok(&words).contains(&format!("midwatch {command}")), "{command}");
    }
}

fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.get("name") {
                names.insert(name.clone());
            }
            fields.values().for_each(|field| collect_names(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        _ => {}
    }
}
