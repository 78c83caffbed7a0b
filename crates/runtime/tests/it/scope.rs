//! What an agent's and an observer's credential can see and do, request by request.

use std::collections::BTreeSet;

use api::{ApprovalList, Call, Code, Handle, Request};
use kernel::{Actor, Role};
use serde_json::{Value, json};

use crate::steps::*;
use crate::world::{World, builtin, run_engine};

/// What a request is expected to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Answered,
    /// Refused with this code.
    Refused(Code),
    /// Refused, because the caller is not allowed to learn that the object exists.
    Hidden,
}

use Expected::{Answered, Hidden, Refused};

const ROLE: Expected = Refused(Code::RoleTooLow);

/// Objects of `eve`, another agent than the caller.
pub(crate) struct Others {
    pub(crate) schedule: String,
    pub(crate) run: String,
    pub(crate) approval: String,
}

/// Every request about objects of `eve`, with the answer for an agent and for an observer.
pub(crate) fn table(eve: &Others) -> Vec<(&'static str, Value, Expected, Expected)> {
    let schedule = || json!({ "id": eve.schedule });
    let run = || json!({ "id": eve.run });
    let add = || {
        let action = json!({ "agent": "eve", "prompt": "x" });
        json!({ "name": "x", "when": { "every": "1h" }, "action": action })
    };
    let decide = json!({ "id": eve.approval, "decision": "deny", "plan_hash": "00" });
    let token = json!({ "name": "eve", "role": "runner", "hash": "ab".repeat(32) });
    let fill = json!({ "id": eve.schedule, "from": after(0), "to": after(HOUR_US) });
    let ask = |capability: &str| json!({ "capability": capability });
    vec![
        ("health", json!({}), Answered, Answered),
        ("status", json!({}), Answered, Answered),
        ("status.seen", json!({ "until": after(0) }), ROLE, ROLE),
        ("budget.list", json!({}), ROLE, Answered),
        ("tool.list", json!({}), ROLE, Answered),
        ("agent.add", json!({ "name": "mallory", "backend": "builtin" }), ROLE, ROLE),
        ("agent.edit", json!({ "name": "eve", "tier": 0 }), ROLE, ROLE),
        ("agent.list", json!({}), Answered, Answered),
        ("agent.show", json!({ "name": "eve" }), Hidden, Answered),
        ("agent.remove", json!({ "name": "eve" }), ROLE, ROLE),
        ("agent.test", json!({ "name": "eve" }), ROLE, ROLE),
        ("schedule.add", add(), ROLE, ROLE),
        ("schedule.add_all", json!({ "schedules": [add()] }), ROLE, ROLE),
        ("schedule.edit", json!({ "id": eve.schedule, "tier": 0 }), Hidden, ROLE),
        ("schedule.list", json!({}), Answered, Answered),
        ("schedule.show", schedule(), Hidden, Answered),
        ("schedule.slots", schedule(), Hidden, Answered),
        ("schedule.pause", schedule(), Hidden, ROLE),
        ("schedule.resume", schedule(), Hidden, ROLE),
        ("schedule.remove", schedule(), Hidden, ROLE),
        ("schedule.fire", schedule(), Hidden, ROLE),
        ("schedule.backfill", fill, ROLE, ROLE),
        ("schedule.backfill_end", schedule(), ROLE, ROLE),
        ("event.tell", json!({ "name": "x" }), ROLE, ROLE),
        ("why", schedule(), Hidden, Answered),
        ("run.list", json!({}), Answered, Answered),
        ("run.show", run(), Hidden, Answered),
        ("run.read", run(), Hidden, Answered),
        ("run.watch", run(), Hidden, Answered),
        ("run.events", run(), Hidden, Answered),
        ("run.cancel", run(), Hidden, ROLE),
        ("run.retry", run(), Hidden, ROLE),
        ("run.settle", json!({ "id": eve.run, "state": "done" }), ROLE, ROLE),
        ("approval.list", json!({}), Answered, Answered),
        ("approval.show", json!({ "id": eve.approval }), Hidden, Answered),
        ("approval.decide", decide, ROLE, ROLE),
        ("freeze", json!({}), ROLE, ROLE),
        ("thaw", json!({}), ROLE, ROLE),
        ("lease.renew", json!({}), ROLE, ROLE),
        ("daemon.stop", json!({}), ROLE, ROLE),
        ("policy.decide", ask("shell.run"), Answered, Answered),
        ("policy.explain", json!({ "run": eve.run }), Hidden, Answered),
        ("policy.list", json!({}), ROLE, Answered),
        ("policy.replay", json!({ "since": "7d" }), ROLE, Answered),
        ("config.reload", json!({}), ROLE, ROLE),
        ("config.ask", json!({}), ROLE, ROLE),
        ("notice.list", json!({}), ROLE, ROLE),
        ("notice.test", json!({}), ROLE, ROLE),
        ("cleanup", json!({}), ROLE, ROLE),
        ("check", json!({}), ROLE, Answered),
        ("token.create", token, ROLE, ROLE),
        ("token.list", json!({}), ROLE, ROLE),
        ("token.revoke", json!({ "id": "tok_00064b4b6d9a4000000000000000000a" }), ROLE, ROLE),
        ("device.link", json!({}), ROLE, ROLE),
        ("device.list", json!({}), ROLE, Answered),
        ("device.revoke", json!({ "id": "dev_00064b4b6d9a4000000000000000000d" }), ROLE, ROLE),
        ("ledger.tail", json!({}), ROLE, Answered),
        ("timeline", json!({}), ROLE, Answered),
        ("news", json!({ "about": [eve.schedule] }), Hidden, Answered),
        ("ledger.checkpoint", json!({}), ROLE, ROLE),
        ("ledger.export", json!({}), ROLE, ROLE),
        ("ledger.rebuild", json!({}), ROLE, ROLE),
    ]
}

/// `eve` has a schedule and a run that waits for an approval; `ada` has nothing.
async fn world_of_two_agents() -> World {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    world.send(of_tier(2, builtin("eve"))).await.unwrap();
    world
}

pub(crate) async fn others(world: &World) -> Others {
    let schedule = add(world, named("watch the bank", "eve", every("1h", "x"))).await;
    let run = fire(world, &schedule).await.id;
    wait_until_idle().await;
    let mut open = world.send(ApprovalList::default()).await.unwrap().approvals;
    Others { schedule, run, approval: open.remove(0).id }
}

/// The outcome of a request, and everything in the response.
async fn outcome(world: &World, actor: &Actor, name: &str, with: &Value) -> (Expected, String) {
    let request: Request = serde_json::from_value(json!({ "call": name, "with": with })).unwrap();
    let call = Call { request, key: None, version: None, tool: None, progress: Default::default() };
    match world.engine.handle(actor.clone()).call(call).await {
        Ok(answer) => (Answered, serde_json::to_string(&answer).unwrap()),
        Err(error) if error.code == Code::NotFound => (Hidden, String::new()),
        Err(error) => (Refused(error.code), String::new()),
    }
}

#[tokio::test(start_paused = true)]
async fn scope_table_covers_every_request() {
    let none = Others { schedule: String::new(), run: String::new(), approval: String::new() };
    let rows: BTreeSet<&str> = table(&none).iter().map(|row| row.0).collect();
    let requests: BTreeSet<&str> = Request::NAMES.iter().copied().collect();
    assert_eq!(rows, requests);
}

#[tokio::test(start_paused = true)]
async fn agent_cannot_read_or_change_objects_of_another_agent() {
    let world = world_of_two_agents().await;
    run_engine(&world, async {
        let eve = others(&world).await;
        let ada = Actor::token_holder("ada".parse().unwrap(), Role::Runner);
        for (name, with, expected, _) in table(&eve) {
            let (found, answer) = outcome(&world, &ada, name, &with).await;
            assert_eq!(found, expected, "{name}");
            for secret in ["eve", "bank", &eve.schedule, &eve.run, &eve.approval] {
                assert!(!answer.contains(secret), "`{name}` names `{secret}`: {answer}");
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn observer_can_read_and_cannot_change() {
    let world = world_of_two_agents().await;
    run_engine(&world, async {
        let eve = others(&world).await;
        let observer = Actor::token_holder("otto".parse().unwrap(), Role::Observer);
        for (name, with, _, expected) in table(&eve) {
            let (found, _) = outcome(&world, &observer, name, &with).await;
            assert_eq!(found, expected, "{name}");
        }
    })
    .await;
}
