//! Why a prompt would fail, as `find_problems` reports it for each backend.

use agents::{AgentBackend, supported_backends};
use kernel::backend::{Backend, BackendKind, SecretRef, Settings};

use crate::world::{World, attempt};

#[tokio::test]
async fn a_backend_that_is_not_available_is_a_problem() {
    let world = World::new();
    for (kind, settings) in [
        (BackendKind::Openai, Settings { model: Some("m".into()), ..Settings::default() }),
        (BackendKind::Anthropic, Settings { model: Some("m".into()), ..Settings::default() }),
        (BackendKind::Mcp, Settings { url: Some("http://x".into()), ..Settings::default() }),
    ] {
        // An earlier version registered it.
        let agent = attempt(Backend::parse(kind, settings).unwrap(), "").agent;
        let expected = format!("this version cannot prompt an agent with backend `{kind}`");
        assert_eq!(world.backends.find_problems(agent).await, [expected]);
    }
    assert_eq!(supported_backends(), "builtin, command, letta, webhook");
}

/// Only a backend that sends its secret needs it.
#[tokio::test]
async fn a_secret_that_is_used_and_cannot_be_read_is_a_problem() {
    let world = World::new();
    let url = || Some("https://example.org/hook".to_owned());
    let letta = Settings { remote_id: Some("a".into()), url: url(), ..Settings::default() };
    let webhook = Settings { url: url(), ..Settings::default() };
    let command = Settings { argv: vec!["sh".into()], ..Settings::default() };
    for (kind, settings, is_used) in [
        (BackendKind::Letta, letta, true),
        (BackendKind::Webhook, webhook, true),
        (BackendKind::Command, command, false),
        (BackendKind::Builtin, Settings::default(), false),
    ] {
        let mut agent = attempt(Backend::parse(kind, settings).unwrap(), "").agent;
        agent.credential = Some(SecretRef::Env("SECRET".into()));
        let none: Vec<String> = Vec::new();
        assert_eq!(world.backends.find_problems(agent.clone()).await, none, "{kind}");
        agent.credential = Some(SecretRef::Env("NOT_SET".into()));
        let found = world.backends.find_problems(agent).await;
        assert_eq!(found, vec!["there is no secret `env:NOT_SET`"; usize::from(is_used)], "{kind}");
    }
}
