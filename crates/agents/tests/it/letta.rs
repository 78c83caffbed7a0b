//! Prompts to a stand-in for Letta over real connections: the requests, and the outcome of every response.

use std::time::Duration;

use agents::{Attempt, AttemptResult, TEXT_BYTES_MAX};
use kernel::backend::{Backend, BackendKind, SecretRef, Settings};
use kernel::budget::Usage;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stand_in::{Act, StandIn, ok, with_status};
use crate::world::{SECRET, World, attempt, describe};

const MODES: [(&str, &str); 5] = [
    ("rest", "wait"),
    ("rest", "stream"),
    ("rest", "background"),
    ("openai", "wait"),
    ("openai", "stream"),
];

fn prompt_for(server: &StandIn, (api, sending): (&str, &str), text: &str) -> Attempt {
    let settings = Settings {
        url: Some(server.url()),
        remote_id: Some("agent-123".into()),
        api: Some(api.into()),
        sending: Some(sending.into()),
        ..Settings::default()
    };
    let backend = Backend::parse(BackendKind::Letta, settings).unwrap();
    let mut attempt = Attempt { schedule: Some("sch-1".into()), ..attempt(backend, text) };
    attempt.agent.credential = Some(SecretRef::Env("SECRET".into()));
    attempt
}

async fn prompt_with(act: Act, mode: (&str, &str)) -> (AttemptResult, StandIn) {
    let server = match mode.0 {
        "openai" => StandIn::app_server([act]),
        _ => StandIn::new([act]),
    };
    let result = World::new().run(prompt_for(&server, mode, "hi")).await;
    (result, server)
}

/// The recording is of Letta's own clients.
#[tokio::test]
async fn prompt_request_matches_the_recording() {
    let recorded = include_str!("../data/letta-requests.json");
    let recorded: Vec<Value> = serde_json::from_str(recorded).unwrap();
    let recorded = recorded.iter().find(|it| it["method"] == "POST").unwrap();
    let (result, server) = prompt_with(Act::Stop("end_turn"), ("rest", "wait")).await;
    assert_eq!(describe(&result.outcome), "done");
    let request = &server.asked()[0];
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", recorded["path"].as_str().unwrap())
    );
    assert_eq!(request.json(), recorded["body"]);
    let bearer = recorded["headers"]["authorization"].as_str().unwrap().replace("TOKEN", SECRET);
    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    assert_eq!(request.header("content-type"), recorded["headers"]["content-type"].as_str());
    assert_eq!(request.header("idempotency-key"), Some("run-7"));
    assert_eq!(request.header("origin"), None);
}

#[tokio::test]
async fn every_mode_returns_output_and_usage() {
    for mode in MODES {
        let (result, server) = prompt_with(Act::Stop("end_turn"), mode).await;
        assert_eq!(describe(&result.outcome), "done", "{mode:?}");
        let (text, tokens) = match mode {
            ("rest", "background") => ("later", (5, 2)),
            _ => ("heard: hi", (12, 3)),
        };
        assert_eq!(result.output.text.trim_end(), text, "{mode:?}");
        let usage = Usage { input_tokens: tokens.0, output_tokens: tokens.1 };
        assert_eq!(result.usage, Some(usage), "{mode:?}");
        let posts = server.asked().into_iter().filter(|it| it.method == "POST").count();
        assert_eq!(posts, 1, "{mode:?}");
    }
}

/// At the App Server the prompts of a schedule share a conversation, and a repeated prompt is recognised.
#[tokio::test]
async fn app_server_gets_model_conversation_and_idempotency_key() {
    let (_, server) = prompt_with(Act::Stop("end_turn"), ("openai", "wait")).await;
    let request = &server.asked()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    let messages = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(
        request.json(),
        json!({"model": "agent-123", "messages": messages, "stream": false})
    );
    assert_eq!(request.header("x-letta-chat-key"), Some("sch-1"));
    assert_eq!(request.header("idempotency-key"), Some("run-7"));
}

#[tokio::test]
async fn bad_stop_reason_is_a_failure_with_that_reason() {
    for (reason, expected) in [
        ("llm_api_error", "llm_api_error delivered"),
        ("error", "error delivered"),
        ("insufficient_credits", "insufficient_credits payment_required"),
        ("max_steps", "max_steps permanent"),
        ("requires_approval", "requires_approval permanent"),
        ("who_knows", "stop_reason_unknown indeterminate"),
    ] {
        for mode in [MODES[0], MODES[1]] {
            let (result, _) = prompt_with(Act::Stop(reason), mode).await;
            let outcome = describe(&result.outcome);
            assert!(outcome.starts_with(expected), "{reason} {mode:?}: {outcome}");
            assert!(result.usage.is_some(), "a failed turn reports usage, too");
        }
    }
}

/// Whatever the server does, the attempt ends with a reason, and is indeterminate only if the prompt may have arrived.
#[tokio::test]
async fn every_misbehaviour_ends_with_a_reason() {
    let status = |code, headers: &str| with_status(code, headers, r#"{"detail":"so it is"}"#);
    // The App Server also responds with 500 when a started turn fails, and forgets the idempotency key.
    for mode in [MODES[3], MODES[4]] {
        let (result, _) = prompt_with(Act::Raw(status(500, "")), mode).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with("server_error delivered:"), "{mode:?}: {outcome}");
    }
    let table: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "connection_lost indeterminate"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec(),
            "connection_lost indeterminate",
        ),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), "connection_lost indeterminate"),
        (ok(&json!("what?")), "answer_unreadable indeterminate"),
        (with_status(200, "", "<html>"), "answer_unreadable indeterminate"),
        (status(401, ""), "credentials_refused permanent"),
        (status(404, ""), "not_found permanent"),
        (status(422, ""), "request_refused permanent"),
        (status(429, "retry-after: 7\r\n"), "too_many_requests transient after 7s"),
        (status(429, "retry-after: soon\r\n"), "too_many_requests transient"),
        (status(500, ""), "server_error transient"),
        (status(503, "retry-after: 120\r\n"), "server_error transient after 120s"),
        (status(504, ""), "timeout indeterminate"),
        (status(302, "location: http://169.254.169.254/\r\n"), "redirected permanent"),
    ];
    for (bytes, expected) in table {
        let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let (result, server) = prompt_with(Act::Raw(bytes), MODES[0]).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with(&format!("{expected}:")), "{beginning}: {outcome}");
        assert_eq!(server.count("/messages"), 1, "{beginning}: nothing is sent twice");
        if beginning.contains("so it is") && !beginning.contains(" 200 ") {
            assert!(outcome.contains("so it is"), "{outcome}");
        }
    }
}

/// As the original promptyoself did: this fault occurs before the model is called, and not with a stream.
#[tokio::test]
async fn wrapper_fault_falls_back_to_a_stream() {
    let fault = r#"{"detail":"'description' is missing in ChatMLInnerMonologueWrapper"}"#;
    let wrapper_fault = Act::Raw(with_status(500, "", fault));
    let server = StandIn::new([wrapper_fault.clone(), Act::Stop("end_turn")]);
    let result = World::new().run(prompt_for(&server, MODES[0], "hi")).await;
    assert_eq!(
        (describe(&result.outcome).as_str(), result.output.text.trim_end()),
        ("done", "heard: hi")
    );
    assert_eq!((server.count("/messages"), server.count("/messages/stream")), (1, 1));

    let (result, server) = prompt_with(wrapper_fault, MODES[1]).await;
    assert!(describe(&result.outcome).starts_with("server_error transient:"));
    assert_eq!(server.count("/messages/stream"), 1, "a stream has no fallback");
}

#[tokio::test]
async fn oversized_response_is_not_read() {
    let (result, _) = prompt_with(Act::Flood(100), MODES[0]).await;
    let outcome = describe(&result.outcome);
    assert!(outcome.starts_with("answer_too_long indeterminate:"), "{outcome}");
}

#[tokio::test]
async fn hanging_or_dripping_server_times_out_and_is_sent_a_cancel() {
    for (act, mode) in [(Act::Hang, MODES[0]), (Act::Drip, MODES[1]), (Act::Drip, MODES[0])] {
        let server = StandIn::new([act.clone()]);
        let time_max = Duration::from_millis(300);
        let attempt = Attempt { time_max, ..prompt_for(&server, mode, "hi") };
        let result = World::new().run(attempt).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with("timeout indeterminate:"), "{act:?}: {outcome}");
        assert_eq!(server.count("/messages/cancel"), 1, "{act:?}");
    }
}

#[tokio::test]
async fn endless_line_of_a_stream_is_too_long() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ".to_vec();
    let endless = [head, vec![b'x'; 3 << 20]].concat();
    for mode in [MODES[1], MODES[4]] {
        let (result, _) = prompt_with(Act::Raw(endless.clone()), mode).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with("answer_too_long indeterminate:"), "{outcome}");
    }
}

#[tokio::test]
async fn truncated_stream_is_indeterminate() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (mode, part) in [
        (MODES[1], r#"data: {"message_type":"assistant_message","content":"I am about to"}"#),
        (MODES[4], r#"data: {"choices":[{"delta":{"content":"I am about to"}}]}"#),
    ] {
        let (result, _) =
            prompt_with(Act::Raw(format!("{head}{part}\n\n").into_bytes()), mode).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with("connection_lost indeterminate:"), "{outcome}");
        assert_eq!(result.output.text.trim_end(), "I am about to");
    }
    let error = format!(
        "{head}data: {{\"error\":{{\"message\":\"no room\",\"type\":\"server_error\"}}}}\n\n"
    );
    let (result, _) = prompt_with(Act::Raw(error.into_bytes()), MODES[4]).await;
    assert_eq!(
        describe(&result.outcome),
        "server_error delivered: the turn failed at the server: no room"
    );
}

#[tokio::test]
async fn refused_connection_is_transient() {
    let server = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let settings = Settings {
        url: Some(format!("http://{server}")),
        remote_id: Some("agent-123".into()),
        ..Settings::default()
    };
    let backend = Backend::parse(BackendKind::Letta, settings).unwrap();
    let result = World::new().run(attempt(backend, "hi")).await;
    let outcome = describe(&result.outcome);
    let expected = format!(
        "not_reached transient: http://{server} refused the connection; is Letta running? `--url` names another"
    );
    assert_eq!(outcome, expected);
}

#[tokio::test]
async fn cancel_is_sent_to_the_server() {
    let server = StandIn::new([Act::Hang]);
    let world = World::new();
    let stop = CancellationToken::new();
    let running = world.run_until(prompt_for(&server, MODES[0], "hi"), stop.clone());
    let cancelling = async {
        crate::world::until(|| server.count("/messages") == 1).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(running, cancelling);
    assert_eq!(describe(&result.outcome), "cancelled");
    assert_eq!(server.count("/v1/agents/agent-123/messages/cancel"), 1);
}

/// A response may echo the secret of its request, in one piece or in many.
#[tokio::test]
async fn echoed_secret_is_redacted() {
    let echo = Act::Say(format!("your key is {SECRET}\nand again {SECRET}"));
    for mode in [MODES[0], MODES[1], MODES[3], MODES[4]] {
        let (result, _) = prompt_with(echo.clone(), mode).await;
        assert!(
            result.output.text.contains("and again [hidden]"),
            "{mode:?}: {}",
            result.output.text
        );
        assert!(!result.output.text.contains(SECRET), "{mode:?}: {}", result.output.text);
    }
    let refused = with_status(401, "", &format!("who is {SECRET}?"));
    let (result, _) = prompt_with(Act::Raw(refused), MODES[0]).await;
    let outcome = describe(&result.outcome);
    assert_eq!(
        outcome,
        "credentials_refused permanent: the server responded with 401: who is [hidden]?"
    );
}

#[tokio::test]
async fn missing_secret_and_unencrypted_secret_are_refused() {
    let server = StandIn::new([]);
    let mut missing = prompt_for(&server, MODES[0], "hi");
    missing.agent.credential = Some(SecretRef::Env("NOT_SET".into()));
    let result = World::new().run(missing).await;
    let expected = "secret_missing permanent: there is no secret `env:NOT_SET`";
    assert_eq!(describe(&result.outcome), expected);

    let mut open = prompt_for(&server, MODES[0], "hi");
    if let Backend::Letta(letta) = &mut open.agent.backend {
        letta.url = "http://letta.example".parse().unwrap();
    }
    let outcome = describe(&World::new().run(open).await.outcome);
    let expected = "not_allowed permanent: the request was not sent: the secret would go";
    assert!(outcome.starts_with(expected), "{outcome}");
    // Allowing private networks does not allow an unencrypted secret on the internet.
    let mut open = prompt_for(&server, MODES[0], "hi");
    if let Backend::Letta(letta) = &mut open.agent.backend {
        letta.url = "http://1.1.1.1".parse().unwrap();
        letta.allow_private = true;
    }
    let outcome = describe(&World::new().run(open).await.outcome);
    let expected = "not_allowed permanent: the request was not sent: 1.1.1.1 is an internet address, \
                    where the secret would go unencrypted: use an https url";
    assert_eq!(outcome, expected);
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn agent_without_credential_sends_no_authorization() {
    let server = StandIn::new([]);
    let mut attempt = prompt_for(&server, MODES[0], "hi");
    attempt.agent.credential = None;
    assert_eq!(describe(&World::new().run(attempt).await.outcome), "done");
    assert_eq!(server.asked()[0].header("authorization"), None);
}

/// The id of an agent stays one segment of the path, whatever it contains.
#[tokio::test]
async fn agent_id_is_escaped_in_the_path() {
    let server = StandIn::new([]);
    let mut attempt = prompt_for(&server, MODES[0], "hi");
    if let Backend::Letta(letta) = &mut attempt.agent.backend {
        letta.remote_id = "../../admin?x=1#".to_owned();
    }
    World::new().run(attempt).await;
    assert_eq!(server.asked()[0].path, "/v1/agents/..%2F..%2Fadmin%3Fx=1%23/messages");
}

#[tokio::test]
async fn slow_response_is_awaited() {
    let (result, server) = prompt_with(Act::Slow(Duration::from_millis(100)), MODES[0]).await;
    assert_eq!(
        (describe(&result.outcome).as_str(), result.output.text.as_str()),
        ("done", "at last\n")
    );
    assert_eq!(server.most_at_work(), 1);
}

#[tokio::test]
async fn long_output_is_truncated_in_the_text_only() {
    let long = "x".repeat(2 * TEXT_BYTES_MAX);
    let (result, _) = prompt_with(Act::Say(long.clone()), MODES[0]).await;
    assert_eq!(result.output.text, long[..TEXT_BYTES_MAX]);
    assert_eq!(result.output.bytes, long.len() as u64 + 1);
}

/// The App Server ends such a turn like any other, and sends a fixed message; an agent that only quotes the message
/// is done.
#[tokio::test]
async fn l4_turn_that_needs_an_approval_is_a_failure() {
    let wanted = "The agent attempted a tool call that requires interactive approval, \
                  which this API does not support.";
    for (text, expected) in [
        (wanted.to_owned(), "requires_approval permanent: "),
        (format!("{wanted} Shall I go on?"), "done"),
        (format!("I am outcome: {wanted}"), "done"),
        (String::new(), "done"),
    ] {
        for send in ["wait", "stream"] {
            let (result, _) = prompt_with(Act::Say(text.clone()), ("openai", send)).await;
            let outcome = describe(&result.outcome);
            assert!(outcome.starts_with(expected), "{send} {text}: {outcome}");
            assert_eq!(result.output.text, text, "{send}");
        }
        // Only the App Server sends this message.
        let (result, _) = prompt_with(Act::Say(text), ("rest", "wait")).await;
        assert_eq!(describe(&result.outcome), "done");
    }
}
