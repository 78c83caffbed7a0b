//! Agents through the handle: keys, conflicts, limits, roles.

use api::{AgentAdd, AgentEdit, AgentList, AgentRemove, AgentSettings, AgentShow, Call, Code};
use futures::future::join_all;
use kernel::agent::Agent;
use kernel::{Actor, NounState, Role};

use crate::steps::edit_settings;
use crate::world::{World, builtin};

fn edit(name: &str, tier: u8) -> AgentEdit {
    edit_settings(name, AgentSettings { tier: Some(tier), ..AgentSettings::default() })
}

#[tokio::test]
async fn a_repeated_key_executes_once_and_returns_the_first_response() {
    let world = World::new().await;
    let first = world.send_with_key("k1", builtin("ada")).await.unwrap();
    let again = world.send_with_key("k1", builtin("ada")).await.unwrap();
    assert_eq!((first.created, &again), (true, &first));
    let removed = || AgentRemove { name: "ada".into() };
    let first = world.send_with_key("k2", removed()).await.unwrap();
    // The agent is removed, so removing it again would fail; its key still returns the first response.
    let again = world.send_with_key("k2", removed()).await.unwrap();
    assert_eq!(again, first);
    let refused = world.send_with_key("k1", builtin("bob")).await.unwrap_err();
    assert_eq!(refused.code, Code::KeyTaken);
    let kinds = world.kinds().await;
    assert_eq!(kinds, ["genesis", "agent.registered", "agent.removed"]);
    let causes: Vec<String> = world.events().await.into_iter().map(|event| event.cause).collect();
    assert_eq!(causes, ["", "key:olga/k1", "key:olga/k2"]);
}

/// The response of a call without change is stored, too: later changes do not affect it.
#[tokio::test]
async fn a_repeated_key_returns_the_first_response_of_a_call_without_change() {
    let world = World::new().await;
    world.send_with_key("k1", builtin("ada")).await.unwrap();
    let there = world.send_with_key("k2", builtin("ada")).await.unwrap();
    assert!(!there.created);
    world.send_with_key("k3", AgentRemove { name: "ada".into() }).await.unwrap();
    assert_eq!(world.send_with_key("k2", builtin("ada")).await.unwrap(), there);
    assert_eq!(world.kinds().await, ["genesis", "agent.registered", "agent.removed"]);
}

#[tokio::test]
async fn malformed_keys_are_refused() {
    let world = World::new().await;
    let long = "k".repeat(129);
    for key in ["", "a b", "ä", long.as_str()] {
        let refused = world.send_with_key(key, builtin("ada")).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{key}");
    }
    world.send_with_key(&"k".repeat(128), builtin("ada")).await.unwrap();
}

#[tokio::test]
async fn concurrent_changes_to_one_agent_are_all_committed() {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    let changes = (0..20).map(|n| world.send(edit("ada", n % 3)));
    for outcome in join_all(changes).await {
        outcome.unwrap();
    }
    let shown = world.send(AgentShow { name: "ada".into() }).await.unwrap();
    assert_eq!(shown.agent.settings.tier, Some(19 % 3));
}

#[tokio::test]
async fn agents_are_refused_above_the_limit() {
    let world = World::new().await;
    for n in 0..Agent::OBJECTS_MAX {
        world.send(builtin(&format!("a{n}"))).await.unwrap();
    }
    let refused = world.send(builtin("one-more")).await.unwrap_err();
    assert_eq!(refused.code, Code::LimitReached);
    world.send(AgentRemove { name: "a0".into() }).await.unwrap();
    world.send(builtin("one-more")).await.unwrap();
}

#[tokio::test]
async fn pages_have_no_gap_and_no_overlap() {
    let world = World::new().await;
    for n in 0..25 {
        world.send(builtin(&format!("a{n:02}"))).await.unwrap();
    }
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = world
            .send(AgentList { limit: Some(10), cursor, ..AgentList::default() })
            .await
            .unwrap();
        names.extend(page.agents.into_iter().map(|agent| agent.name));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..25).map(|n| format!("a{n:02}")).collect::<Vec<_>>());
    for limit in [0, 1_001] {
        let refused =
            world.send(AgentList { limit: Some(limit), ..AgentList::default() }).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{limit}");
    }
}

#[tokio::test]
async fn observers_and_runners_cannot_change_agents() {
    let world = World::new().await;
    for role in [Role::Observer, Role::Runner] {
        let refused = world.send_as(role, builtin("ada")).await.unwrap_err();
        assert_eq!(refused.code, Code::RoleTooLow);
    }
    assert_eq!(
        world.kinds().await,
        ["genesis", "watch.refused"],
        "only the first of many refusals is recorded"
    );
}

/// A key belongs to the name of the caller, whose role may change.
#[tokio::test]
async fn a_stored_response_is_not_returned_to_a_role_that_may_not_send_the_request() {
    let world = World::new().await;
    world.send_with_key("k", builtin("ada")).await.unwrap();
    let observer = Actor::token_holder("olga".parse().unwrap(), Role::Observer);
    let call = Call { key: Some("k".into()), ..Call::new(builtin("ada")) };
    let refused = call.send::<AgentAdd>(&world.engine.handle(observer)).await.unwrap_err();
    assert_eq!(refused.code, Code::RoleTooLow);
}
