//! Agents through the handle: keys, conflicts, limits, roles.

use api::{AgentAdd, AgentEdit, AgentList, AgentRemove, AgentShow, Call, Code};
use futures::future::join_all;
use kernel::agent::AGENTS_MAX;
use kernel::{Actor, Role};

use crate::world::{World, builtin};

fn edit(name: &str, tier: u8) -> AgentEdit {
    AgentEdit { name: name.to_owned(), tier: Some(tier), ..AgentEdit::default() }
}

#[tokio::test]
async fn a_key_does_a_thing_once_and_answers_the_same_again() {
    let world = World::new().await;
    let first = world.ask_with_key("k1", builtin("ada")).await.unwrap();
    let again = world.ask_with_key("k1", builtin("ada")).await.unwrap();
    assert_eq!((first.created, &again), (true, &first));
    let removed = || AgentRemove { name: "ada".into() };
    let first = world.ask_with_key("k2", removed()).await.unwrap();
    // The agent is gone, so this could not be done any more; its answer is still the same.
    let again = world.ask_with_key("k2", removed()).await.unwrap();
    assert_eq!(again, first);
    let refused = world.ask_with_key("k1", builtin("bob")).await.unwrap_err();
    assert_eq!(refused.code, Code::KeyTaken);
    let kinds = world.kinds().await;
    assert_eq!(kinds, ["genesis", "agent.registered", "agent.removed"]);
    let causes: Vec<String> = world.events().await.into_iter().map(|event| event.cause).collect();
    assert_eq!(causes, ["", "key:somebody/k1", "key:somebody/k2"]);
}

/// Also a call that had nothing to do keeps its answer: what happens later does not change it.
#[tokio::test]
async fn a_key_answers_the_same_again_when_there_was_nothing_to_do() {
    let world = World::new().await;
    world.ask_with_key("k1", builtin("ada")).await.unwrap();
    let there = world.ask_with_key("k2", builtin("ada")).await.unwrap();
    assert!(!there.created);
    world.ask_with_key("k3", AgentRemove { name: "ada".into() }).await.unwrap();
    assert_eq!(world.ask_with_key("k2", builtin("ada")).await.unwrap(), there);
    assert_eq!(world.kinds().await, ["genesis", "agent.registered", "agent.removed"]);
}

#[tokio::test]
async fn keys_have_a_form() {
    let world = World::new().await;
    let long = "k".repeat(129);
    for key in ["", "a b", "ä", long.as_str()] {
        let refused = world.ask_with_key(key, builtin("ada")).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{key}");
    }
    world.ask_with_key(&"k".repeat(128), builtin("ada")).await.unwrap();
}

#[tokio::test]
async fn changes_to_one_agent_at_once_all_happen() {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    let changes = (0..20).map(|n| world.ask(edit("ada", n % 3)));
    for outcome in join_all(changes).await {
        outcome.unwrap();
    }
    let shown = world.ask(AgentShow { name: "ada".into() }).await.unwrap();
    assert_eq!(shown.agent.tier, 19 % 3);
}

#[tokio::test]
async fn the_limit_on_agents_holds_at_it_and_one_past() {
    let world = World::new().await;
    for n in 0..AGENTS_MAX {
        world.ask(builtin(&format!("a{n}"))).await.unwrap();
    }
    let refused = world.ask(builtin("one-more")).await.unwrap_err();
    assert_eq!(refused.code, Code::LimitReached);
    world.ask(AgentRemove { name: "a0".into() }).await.unwrap();
    world.ask(builtin("one-more")).await.unwrap();
}

#[tokio::test]
async fn pages_join_without_gap_or_overlap() {
    let world = World::new().await;
    for n in 0..25 {
        world.ask(builtin(&format!("a{n:02}"))).await.unwrap();
    }
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            world.ask(AgentList { limit: Some(10), cursor, ..AgentList::default() }).await.unwrap();
        names.extend(page.agents.into_iter().map(|agent| agent.name));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..25).map(|n| format!("a{n:02}")).collect::<Vec<_>>());
    for limit in [0, 1_001] {
        let refused =
            world.ask(AgentList { limit: Some(limit), ..AgentList::default() }).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{limit}");
    }
}

#[tokio::test]
async fn an_observer_and_a_runner_change_nothing() {
    let world = World::new().await;
    for role in [Role::Observer, Role::Runner] {
        let refused = world.ask_as(role, builtin("ada")).await.unwrap_err();
        assert_eq!(refused.code, Code::RoleTooLow);
    }
    assert_eq!(world.kinds().await, ["genesis", "watch.refused"], "of many, one is written");
}

/// A key belongs to a name, and a name may come with another role.
#[tokio::test]
async fn an_answer_is_not_given_to_one_who_may_not_ask() {
    let world = World::new().await;
    world.ask_with_key("k", builtin("ada")).await.unwrap();
    let observer = Actor { name: "somebody".into(), role: Role::Observer };
    let call = Call { key: Some("k".into()), ..Call::new(builtin("ada")) };
    let refused = call.ask::<AgentAdd>(&world.watch.handle(observer)).await.unwrap_err();
    assert_eq!(refused.code, Code::RoleTooLow);
}
