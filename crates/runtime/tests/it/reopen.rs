//! Data survives reopening. The binary's tests check the same with SQLite and PostgreSQL.

use api::{AgentList, AgentRemove, AgentSettings, LedgerCheckpoint, LedgerRebuild, ProgressSink};
use ledger::verify::{Anchors, Verdict};
use runtime::verify;

use crate::steps::edit_settings;
use crate::world::{World, builtin};

#[tokio::test]
async fn an_agent_survives_reopening_and_the_ledger_verifies() {
    let mut world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    world.send(builtin("bob")).await.unwrap();
    let edit = edit_settings("ada", AgentSettings { tier: Some(2), ..AgentSettings::default() });
    world.send(edit).await.unwrap();
    world.reopen().await.unwrap();

    let agents = world.send(AgentList::default()).await.unwrap().agents;
    let found: Vec<_> = agents.iter().map(|it| (it.name.as_str(), it.settings.tier)).collect();
    assert_eq!(found, [("ada", Some(2)), ("bob", Some(0))]);
    assert!(
        !world.send(builtin("bob")).await.unwrap().created,
        "adding the same agent again changes nothing"
    );
    world.send(AgentRemove { name: "ada".into() }).await.unwrap();
    world.send(LedgerCheckpoint {}).await.unwrap();
    assert_eq!(
        world
            .send_as(kernel::Role::Maintainer, LedgerRebuild {})
            .await
            .unwrap()
            .rebuilt
            .differences,
        0
    );

    let anchors = Anchors::default();
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
