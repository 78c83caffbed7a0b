//! Prompts to a stand-in for Letta, over real connections: what is sent, and what becomes of every answer.

use std::time::Duration;

use agents::{Ended, TEXT_BYTES_MAX, Work};
use kernel::backend::{Backend, BackendKind, SecretRef, Settings};
use kernel::budget::Usage;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stand_in::{Act, StandIn, ok, with_status};
use crate::world::{SECRET, World, said, work};

const WAYS: [(&str, &str); 5] = [
    ("rest", "wait"),
    ("rest", "stream"),
    ("rest", "background"),
    ("openai", "wait"),
    ("openai", "stream"),
];

fn prompt_for(server: &StandIn, (api, sending): (&str, &str), text: &str) -> Work {
    let settings = Settings {
        url: Some(server.url()),
        remote_id: Some("agent-123".into()),
        api: Some(api.into()),
        sending: Some(sending.into()),
        ..Settings::default()
    };
    let backend = Backend::parse(BackendKind::Letta, settings).unwrap();
    let mut work = Work { schedule: Some("sch-1".into()), ..work(backend, text) };
    work.agent.credential = Some(SecretRef::Env("SECRET".into()));
    work
}

async fn told(act: Act, way: (&str, &str)) -> (Ended, StandIn) {
    let server = match way.0 {
        "openai" => StandIn::app_server([act]),
        _ => StandIn::new([act]),
    };
    let ended = World::new().run(prompt_for(&server, way, "hi")).await;
    (ended, server)
}

/// As the clients of Letta itself were recorded to send it.
#[tokio::test]
async fn a_prompt_is_sent_as_it_was_recorded() {
    let recorded = include_str!("../data/letta-requests.json");
    let recorded: Vec<Value> = serde_json::from_str(recorded).unwrap();
    let recorded = recorded.iter().find(|it| it["method"] == "POST").unwrap();
    let (ended, server) = told(Act::Stop("end_turn"), ("rest", "wait")).await;
    assert_eq!(said(&ended.outcome), "done");
    let asked = &server.asked()[0];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", recorded["path"].as_str().unwrap())
    );
    assert_eq!(asked.json(), recorded["body"]);
    let bearer = recorded["headers"]["authorization"].as_str().unwrap().replace("TOKEN", SECRET);
    assert_eq!(asked.header("authorization"), Some(bearer.as_str()));
    assert_eq!(asked.header("content-type"), recorded["headers"]["content-type"].as_str());
    assert_eq!(asked.header("idempotency-key"), Some("run-7"));
    assert_eq!(asked.header("origin"), None);
}

#[tokio::test]
async fn every_way_to_send_brings_the_answer_and_what_it_used() {
    for way in WAYS {
        let (ended, server) = told(Act::Stop("end_turn"), way).await;
        assert_eq!(said(&ended.outcome), "done", "{way:?}");
        let (text, tokens) = match way {
            ("rest", "background") => ("later", (5, 2)),
            _ => ("heard: hi", (12, 3)),
        };
        assert_eq!(ended.output.text.trim_end(), text, "{way:?}");
        let usage = Usage { input_tokens: tokens.0, output_tokens: tokens.1 };
        assert_eq!(ended.usage, Some(usage), "{way:?}");
        let posts = server.asked().into_iter().filter(|it| it.method == "POST").count();
        assert_eq!(posts, 1, "{way:?}");
    }
}

/// At the App Server the prompts of a schedule are one conversation, and a repeated one is known.
#[tokio::test]
async fn the_app_server_gets_a_model_a_conversation_and_a_key() {
    let (_, server) = told(Act::Stop("end_turn"), ("openai", "wait")).await;
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    let messages = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(asked.json(), json!({"model": "agent-123", "messages": messages, "stream": false}));
    assert_eq!(asked.header("x-letta-chat-key"), Some("sch-1"));
    assert_eq!(asked.header("idempotency-key"), Some("run-7"));
}

#[tokio::test]
async fn an_answer_with_a_bad_reason_to_stop_is_a_failure_with_that_reason() {
    for (reason, expected) in [
        ("llm_api_error", "llm_api_error delivered"),
        ("error", "error delivered"),
        ("insufficient_credits", "insufficient_credits unpaid"),
        ("max_steps", "max_steps permanent"),
        ("requires_approval", "requires_approval permanent"),
        ("who_knows", "stop_reason_unknown doubtful"),
    ] {
        for way in [WAYS[0], WAYS[1]] {
            let (ended, _) = told(Act::Stop(reason), way).await;
            let said = said(&ended.outcome);
            assert!(said.starts_with(expected), "{reason} {way:?}: {said}");
            assert!(ended.usage.is_some(), "what failed was used all the same");
        }
    }
}

/// Whatever comes back, the attempt ends, says why, and is in doubt only if the prompt may have arrived.
#[tokio::test]
async fn every_misbehaviour_has_an_end_and_a_name() {
    let status = |code, headers: &str| with_status(code, headers, r#"{"detail":"so it is"}"#);
    // Of a turn that has begun the App Server says 500 as well, and forgets that it had the key.
    for way in [WAYS[3], WAYS[4]] {
        let (ended, _) = told(Act::Raw(status(500, "")), way).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("server_error delivered:"), "{way:?}: {said}");
    }
    let table: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "connection_lost doubtful"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec(), "connection_lost doubtful"),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), "connection_lost doubtful"),
        (ok(&json!("what?")), "answer_unreadable doubtful"),
        (with_status(200, "", "<html>"), "answer_unreadable doubtful"),
        (status(401, ""), "credentials_refused permanent"),
        (status(404, ""), "not_found permanent"),
        (status(422, ""), "request_refused permanent"),
        (status(429, "retry-after: 7\r\n"), "too_many_requests passing after 7s"),
        (status(429, "retry-after: soon\r\n"), "too_many_requests passing"),
        (status(500, ""), "server_error passing"),
        (status(503, "retry-after: 120\r\n"), "server_error passing after 120s"),
        (status(504, ""), "timeout doubtful"),
        (status(302, "location: http://169.254.169.254/\r\n"), "redirected permanent"),
    ];
    for (bytes, expected) in table {
        let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let (ended, server) = told(Act::Raw(bytes), WAYS[0]).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with(&format!("{expected}:")), "{beginning}: {said}");
        assert_eq!(server.count("/messages"), 1, "{beginning}: nothing is sent twice");
        if beginning.contains("so it is") && !beginning.contains(" 200 ") {
            assert!(said.contains("so it is"), "{said}");
        }
    }
}

/// As the earlier promptyoself did: this fault comes before the model is asked, and a stream does not have it.
#[tokio::test]
async fn a_server_that_stumbles_over_its_wrapper_is_asked_for_a_stream() {
    let fault = r#"{"detail":"'description' is missing in ChatMLInnerMonologueWrapper"}"#;
    let stumble = Act::Raw(with_status(500, "", fault));
    let server = StandIn::new([stumble.clone(), Act::Stop("end_turn")]);
    let ended = World::new().run(prompt_for(&server, WAYS[0], "hi")).await;
    assert_eq!(
        (said(&ended.outcome).as_str(), ended.output.text.trim_end()),
        ("done", "heard: hi")
    );
    assert_eq!((server.count("/messages"), server.count("/messages/stream")), (1, 1));

    let (ended, server) = told(stumble, WAYS[1]).await;
    assert!(said(&ended.outcome).starts_with("server_error passing:"));
    assert_eq!(server.count("/messages/stream"), 1, "there is no other way to fall back to");
}

#[tokio::test]
async fn a_hundred_megabytes_are_not_read() {
    let (ended, _) = told(Act::Flood(100), WAYS[0]).await;
    let said = said(&ended.outcome);
    assert!(said.starts_with("answer_too_long doubtful:"), "{said}");
}

#[tokio::test]
async fn whoever_hangs_or_drips_is_given_up_and_told_so() {
    for (act, way) in [(Act::Hang, WAYS[0]), (Act::Drip, WAYS[1]), (Act::Drip, WAYS[0])] {
        let server = StandIn::new([act.clone()]);
        let time_max = Duration::from_millis(300);
        let work = Work { time_max, ..prompt_for(&server, way, "hi") };
        let ended = World::new().run(work).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("timeout doubtful:"), "{act:?}: {said}");
        assert_eq!(server.count("/messages/cancel"), 1, "{act:?}");
    }
}

#[tokio::test]
async fn an_endless_line_of_a_stream_is_cut_off() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ".to_vec();
    let endless = [head, vec![b'x'; 3 << 20]].concat();
    for way in [WAYS[1], WAYS[4]] {
        let (ended, _) = told(Act::Raw(endless.clone()), way).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("answer_too_long doubtful:"), "{said}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_in_doubt() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (way, part) in [
        (WAYS[1], r#"data: {"message_type":"assistant_message","content":"I am about to"}"#),
        (WAYS[4], r#"data: {"choices":[{"delta":{"content":"I am about to"}}]}"#),
    ] {
        let (ended, _) = told(Act::Raw(format!("{head}{part}\n\n").into_bytes()), way).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("connection_lost doubtful:"), "{said}");
        assert_eq!(ended.output.text.trim_end(), "I am about to");
    }
    let error = format!(
        "{head}data: {{\"error\":{{\"message\":\"no room\",\"type\":\"server_error\"}}}}\n\n"
    );
    let (ended, _) = told(Act::Raw(error.into_bytes()), WAYS[4]).await;
    assert_eq!(
        said(&ended.outcome),
        "server_error delivered: the turn failed at the server: no room"
    );
}

#[tokio::test]
async fn nobody_at_the_address_may_help_later() {
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
    let ended = World::new().run(work(backend, "hi")).await;
    let said = said(&ended.outcome);
    assert!(said.starts_with("not_reached passing: nobody was reached"), "{said}");
}

#[tokio::test]
async fn a_cancel_is_passed_on() {
    let server = StandIn::new([Act::Hang]);
    let world = World::new();
    let stop = CancellationToken::new();
    let running = world.run_until(prompt_for(&server, WAYS[0], "hi"), stop.clone());
    let cancelling = async {
        crate::world::until(|| server.count("/messages") == 1).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(running, cancelling);
    assert_eq!(said(&ended.outcome), "cancelled");
    assert_eq!(server.count("/v1/agents/agent-123/messages/cancel"), 1);
}

/// An answer may repeat the secret that it was asked with, in one piece or in many.
#[tokio::test]
async fn a_secret_that_comes_back_is_hidden() {
    let echo = Act::Say(format!("your key is {SECRET}\nand again {SECRET}"));
    for way in [WAYS[0], WAYS[1], WAYS[3], WAYS[4]] {
        let (ended, _) = told(echo.clone(), way).await;
        assert!(ended.output.text.contains("and again [hidden]"), "{way:?}: {}", ended.output.text);
        assert!(!ended.output.text.contains(SECRET), "{way:?}: {}", ended.output.text);
    }
    let refused = with_status(401, "", &format!("who is {SECRET}?"));
    let (ended, _) = told(Act::Raw(refused), WAYS[0]).await;
    let said = said(&ended.outcome);
    assert_eq!(said, "credentials_refused permanent: the answer was 401: who is [hidden]?");
}

#[tokio::test]
async fn a_secret_is_there_and_does_not_travel_in_the_clear() {
    let server = StandIn::new([]);
    let mut missing = prompt_for(&server, WAYS[0], "hi");
    missing.agent.credential = Some(SecretRef::Env("NOT_SET".into()));
    let ended = World::new().run(missing).await;
    let expected = "secret_missing permanent: there is no secret at `env:NOT_SET` that can be read";
    assert_eq!(said(&ended.outcome), expected);

    let mut open = prompt_for(&server, WAYS[0], "hi");
    if let Backend::Letta(letta) = &mut open.agent.backend {
        letta.url = "http://letta.example".parse().unwrap();
    }
    let told = said(&World::new().run(open).await.outcome);
    let expected = "not_allowed permanent: it was not sent: its secret would go";
    assert!(told.starts_with(expected), "{told}");
    // Who may be reached in a private network is not therefore told a secret on the internet.
    let mut open = prompt_for(&server, WAYS[0], "hi");
    if let Backend::Letta(letta) = &mut open.agent.backend {
        letta.url = "http://1.1.1.1".parse().unwrap();
        letta.allow_private = true;
    }
    let told = said(&World::new().run(open).await.outcome);
    let expected = "not_allowed permanent: it was not sent: 1.1.1.1 is an address of the internet, \
                    and its secret would go there in the clear: use an https url";
    assert_eq!(told, expected);
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let server = StandIn::new([]);
    let mut work = prompt_for(&server, WAYS[0], "hi");
    work.agent.credential = None;
    assert_eq!(said(&World::new().run(work).await.outcome), "done");
    assert_eq!(server.asked()[0].header("authorization"), None);
}

/// The id of an agent stays one piece of the path, whatever it holds.
#[tokio::test]
async fn an_id_cannot_leave_its_place_in_the_path() {
    let server = StandIn::new([]);
    let mut work = prompt_for(&server, WAYS[0], "hi");
    if let Backend::Letta(letta) = &mut work.agent.backend {
        letta.remote_id = "../../admin?x=1#".to_owned();
    }
    World::new().run(work).await;
    assert_eq!(server.asked()[0].path, "/v1/agents/..%2F..%2Fadmin%3Fx=1%23/messages");
}

#[tokio::test]
async fn an_agent_may_take_its_time() {
    let (ended, server) = told(Act::Slow(Duration::from_millis(100)), WAYS[0]).await;
    assert_eq!((said(&ended.outcome).as_str(), ended.output.text.as_str()), ("done", "at last\n"));
    assert_eq!(server.most_at_work(), 1);
}

#[tokio::test]
async fn a_long_answer_is_kept_whole() {
    let long = "x".repeat(2 * TEXT_BYTES_MAX);
    let (ended, _) = told(Act::Say(long.clone()), WAYS[0]).await;
    assert_eq!(ended.output.text, long[..TEXT_BYTES_MAX]);
    assert_eq!(ended.output.bytes, long.len() as u64 + 1);
}

/// The App Server ends such a turn like any other, and says so in words of its own; an agent that talks about
/// approvals has only talked.
#[tokio::test]
async fn l4_a_turn_that_ended_for_an_approval_is_no_good_run() {
    let wanted = "The agent attempted a tool call that requires interactive approval, \
                  which this API does not support.";
    for (text, expected) in [
        (wanted.to_owned(), "requires_approval permanent: "),
        (format!("{wanted} Shall I go on?"), "done"),
        (format!("I am told: {wanted}"), "done"),
        (String::new(), "done"),
    ] {
        for send in ["wait", "stream"] {
            let (ended, _) = told(Act::Say(text.clone()), ("openai", send)).await;
            let said = said(&ended.outcome);
            assert!(said.starts_with(expected), "{send} {text}: {said}");
            assert_eq!(ended.output.text, text, "{send}");
        }
        // Nobody but the App Server speaks so.
        let (ended, _) = told(Act::Say(text), ("rest", "wait")).await;
        assert_eq!(said(&ended.outcome), "done");
    }
}
