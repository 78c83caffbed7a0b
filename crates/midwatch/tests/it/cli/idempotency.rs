//! Idempotency keys: a change requested twice with the same key happens once.

use std::collections::HashMap;

use api::wire::Hello;
use api::{
    Action, AgentAdd, AgentAdded, AgentEdit, AgentRemove, AgentRemoved, AgentSettings, Call, Code,
    Error, Handle, LedgerTail, Response, ScheduleAdd, When, send,
};
use sha2::{Digest, Sha256};
use transport::Socket;

use crate::support::world::World;

pub(super) async fn connect(world: &World) -> Socket {
    let path = world.socket();
    transport::connect(&path, &Hello::new("test")).await.unwrap().expect("a daemon listens")
}

fn with_key(request: impl api::ApiRequest, key: &str) -> Call {
    Call { key: Some(key.to_owned()), ..Call::new(request) }
}

fn add(name: &str) -> AgentAdd {
    AgentAdd { name: name.into(), backend: "builtin".into(), ..AgentAdd::default() }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

fn code(answer: Result<Response, Error>) -> Code {
    answer.unwrap_err().code
}

#[test]
fn same_request_with_the_same_key_gets_the_same_response() {
    let world = World::new();
    let daemon = world.up();
    let again = block_on(async {
        let socket = connect(&world).await;
        let first = socket.call(with_key(add("ada"), "key-1")).await.unwrap();
        assert!(
            matches!(&first, Response::AgentAdd(AgentAdded { created: true, .. })),
            "{first:?}"
        );
        let again = Response::Replayed(Box::new(first));
        assert_eq!(socket.call(with_key(add("ada"), "key-1")).await.unwrap(), again);
        // Also over another connection.
        let other = connect(&world).await;
        assert_eq!(other.call(with_key(add("ada"), "key-1")).await.unwrap(), again);
        again
    });
    assert_eq!(world.kinds(), ["genesis", "watch.started", "agent.registered"]);
    daemon.kill();

    // Also after the daemon was killed.
    let daemon = world.up();
    block_on(async {
        let socket = connect(&world).await;
        assert_eq!(socket.call(with_key(add("ada"), "key-1")).await.unwrap(), again);
        assert_eq!(code(socket.call(with_key(add("bob"), "key-1")).await), Code::KeyTaken);
        let settings = AgentSettings { tier: Some(1), ..AgentSettings::default() };
        let edit = AgentEdit { name: "ada".into(), settings, ..AgentEdit::default() };
        assert_eq!(code(socket.call(with_key(edit, "key-1")).await), Code::KeyTaken);
    });
    assert_eq!(world.agents(), ["ada"]);
    drop(daemon);
    assert_eq!(world.verified()["entries"], 4);
}

/// The second request has nothing left to remove and still gets the first response.
#[test]
fn removal_with_a_key_can_be_repeated() {
    let world = World::new();
    let daemon = world.up();
    block_on(async {
        let socket = connect(&world).await;
        socket.call(with_key(add("ada"), "add")).await.unwrap();
        let remove = || with_key(AgentRemove { name: "ada".into() }, "remove");
        let first = socket.call(remove()).await.unwrap();
        assert!(matches!(&first, Response::AgentRemove(AgentRemoved { .. })), "{first:?}");
        assert_eq!(socket.call(remove()).await.unwrap(), Response::Replayed(Box::new(first)));
        let again = Call::new(AgentRemove { name: "ada".into() });
        assert_eq!(code(socket.call(again).await), Code::NotFound);
    });
    assert_eq!(world.agents(), Vec::<String>::new());
    drop(daemon);
}

#[test]
fn concurrent_requests_with_one_key_make_one_change() {
    let world = World::new();
    let daemon = world.up();
    let answers = block_on(async {
        let mut sockets = Vec::new();
        for _ in 0..16 {
            sockets.push(connect(&world).await);
        }
        let calls = sockets.iter().map(|socket| socket.call(with_key(add("ada"), "key-1")));
        futures::future::join_all(calls).await
    });
    let answers = answers.into_iter().map(Result::unwrap);
    let (again, first): (Vec<_>, Vec<_>) =
        answers.partition(|answer| matches!(answer, Response::Replayed(_)));
    assert_eq!((first.len(), again.len()), (1, 15));
    assert!(matches!(&first[0], Response::AgentAdd(AgentAdded { created: true, .. })), "{first:?}");
    assert!(again.into_iter().all(|answer| answer.first() == first[0]));
    assert_eq!(world.kinds(), ["genesis", "watch.started", "agent.registered"]);
    drop(daemon);
}

/// Names whose schedule ids would share their first eight digits: one of each pair gets a longer id, also when
/// both are added at the same time.
#[test]
fn schedules_added_at_once_get_different_ids() {
    const PAIRS: usize = 6;
    let world = World::new();
    world.add_agent("ada");
    let daemon = world.up();
    block_on(async {
        let sockets = [connect(&world).await, connect(&world).await];
        let add = |name: &str| ScheduleAdd {
            name: name.to_owned(),
            when: When { every: Some("1h".into()), ..When::default() },
            action: Action {
                agent: Some("ada".into()),
                prompt: Some("x".into()),
                ..Action::default()
            },
            ..ScheduleAdd::default()
        };
        sockets[0].call(Call::new(add("sample"))).await.unwrap();
        let tail = LedgerTail { limit: Some(1), ..LedgerTail::default() };
        let events = send(&sockets[0], tail).await.unwrap().events;
        let mut definition = events[0].body["definition"].clone();
        definition["action"]["prompt"] = "x".into();
        let mut seen = HashMap::new();
        let pairs = (0..).filter_map(|number| {
            let name = format!("n{number}");
            definition["name"] = name.clone().into();
            let hash = Sha256::digest(ledger::canonical_json(&definition).unwrap());
            seen.insert(hash[..4].to_vec(), name.clone()).map(|other| [other, name])
        });
        for names in pairs.take(PAIRS) {
            let calls = sockets.iter().zip(&names).map(|(socket, name)| send(socket, add(name)));
            let added = futures::future::join_all(calls).await;
            let ids: Vec<String> = added.into_iter().map(|it| it.unwrap().schedule.id).collect();
            assert_eq!(ids[0][..12], ids[1][..12]);
            assert_ne!(ids[0], ids[1]);
        }
    });
    drop(daemon);
}

#[test]
fn invalid_and_overlong_keys_are_refused() {
    let world = World::new();
    let daemon = world.up();
    block_on(async {
        let socket = connect(&world).await;
        for key in ["", "with blank", "ä", "tab\t", &"k".repeat(129)] {
            assert_eq!(
                code(socket.call(with_key(add("ada"), key)).await),
                Code::InvalidInput,
                "{key}"
            );
        }
        assert_eq!(world.agents(), Vec::<String>::new());
        socket.call(with_key(add("ada"), &"k".repeat(128))).await.unwrap();
    });
    drop(daemon);
}

/// A refusal is not stored, since the same request may succeed later.
#[test]
fn refused_request_leaves_its_key_unused() {
    let world = World::new();
    let daemon = world.up();
    block_on(async {
        let socket = connect(&world).await;
        let remove = with_key(AgentRemove { name: "ada".into() }, "key-1");
        assert_eq!(code(socket.call(remove.clone()).await), Code::NotFound);
        socket.call(with_key(add("ada"), "key-2")).await.unwrap();
        socket.call(remove).await.unwrap();
    });
    assert_eq!(world.agents(), Vec::<String>::new());
    drop(daemon);
}
