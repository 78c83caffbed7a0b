//! The keel's story on the store in memory: what the program does on a file and on a database.

use api::{AgentEdit, AgentList, AgentRemove, LedgerCheckpoint, LedgerRebuild, ProgressSink};
use ledger::verify::{Anchors, Verdict};
use runtime::verify;

use crate::world::{World, builtin};

#[tokio::test]
async fn an_agent_is_there_after_reopening_and_the_log_verifies() {
    let mut world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    world.ask(builtin("bob")).await.unwrap();
    let edit = AgentEdit { name: "ada".into(), tier: Some(2), ..AgentEdit::default() };
    world.ask(edit).await.unwrap();
    world.reopen().await.unwrap();

    let agents = world.ask(AgentList::default()).await.unwrap().agents;
    let found: Vec<(&str, u8)> = agents.iter().map(|it| (it.name.as_str(), it.tier)).collect();
    assert_eq!(found, [("ada", 2), ("bob", 0)]);
    assert!(!world.ask(builtin("bob")).await.unwrap().created, "the same again is no change");
    world.ask(AgentRemove { name: "ada".into() }).await.unwrap();
    world.ask(LedgerCheckpoint {}).await.unwrap();
    assert_eq!(
        world.ask_as(kernel::Role::Maintainer, LedgerRebuild {}).await.unwrap().rebuilt.differences,
        0
    );

    let anchors = Anchors { keys: Vec::new(), checkpoints: None };
    let report = verify(&*world.store, anchors, &ProgressSink::default()).await.unwrap();
    assert_eq!((report.verdict, report.checkpoints), (Verdict::Ok, 1));
    let expected = [
        "genesis",
        "agent.registered",
        "agent.registered",
        "agent.changed",
        "agent.removed",
        "ledger.rebuilt",
    ];
    assert_eq!(world.kinds().await, expected);
}
