//! Requests to a webhook: signed, to allowed addresses only, and within their limits whatever the server does.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents::{Attempt, AttemptResult, Egress, Http, Post};
use futures::future::{BoxFuture, FutureExt};
use hmac::{Hmac, KeyInit, Mac};
use kernel::Timestamp;
use kernel::backend::{Backend, BackendKind, SecretRef, Settings, Url};
use serde_json::json;
use sha2::Sha256;

use crate::stand_in::{Act, StandIn, with_status};
use crate::world::{HANG_TIMEOUT, SECRET, World, attempt, describe};

fn hook(url: &str, allow_private: bool) -> Attempt {
    let settings = Settings {
        url: Some(url.to_owned()),
        allow_private: allow_private.then_some(true),
        ..Settings::default()
    };
    let backend = Backend::parse(BackendKind::Webhook, settings).unwrap();
    let at = Timestamp::from_micros(1_763_200_000_500_000);
    let mut attempt = Attempt {
        started_at: at,
        number: 2,
        schedule: Some("sch-1".into()),
        slot: Some("2026-11-15T09:00:00Z".into()),
        ..attempt(backend, "tidy up")
    };
    attempt.agent.credential = Some(SecretRef::Env("SECRET".into()));
    attempt
}

async fn call(server: &StandIn) -> AttemptResult {
    World::new().run(hook(&format!("{}/hook?a=1", server.url()), true)).await
}

#[tokio::test]
async fn request_has_signature_attempt_and_idempotency_key() {
    let server = StandIn::new([Act::Raw(with_status(200, "", "taken\n"))]);
    let result = call(&server).await;
    assert_eq!(
        (describe(&result.outcome).as_str(), result.output.text.as_str()),
        ("done", "taken\n")
    );
    let asked = &server.asked()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/hook?a=1"));
    let expected = json!({
        "run": "run-7", "schedule": "sch-1", "slot": "2026-11-15T09:00:00Z", "attempt": 2,
        "agent": "ada", "prompt": "tidy up",
    });
    assert_eq!(asked.json(), expected);
    assert_eq!(asked.header("idempotency-key"), Some("run-7"));
    assert_eq!(asked.header("midwatch-attempt"), Some("2"));
    assert_eq!(asked.header("midwatch-timestamp"), Some("1763200000"));
    assert_eq!(asked.header("authorization"), None, "the secret only signs and is not sent");
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("1763200000.{}", asked.body).as_bytes());
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(asked.header("midwatch-signature"), Some(format!("v1={hex}").as_str()));
}

#[tokio::test]
async fn request_without_secret_is_not_signed() {
    let server = StandIn::new([]);
    let mut attempt = hook(&server.url(), true);
    attempt.agent.credential = None;
    assert_eq!(describe(&World::new().run(attempt).await.outcome), "done");
    assert_eq!(server.asked()[0].header("midwatch-signature"), None);
}

/// A success status decides the outcome; the body may be of any length and speed.
#[tokio::test]
async fn response_body_is_read_within_limits() {
    let result = call(&StandIn::new([Act::Flood(100)])).await;
    assert_eq!((describe(&result.outcome).as_str(), result.output.bytes), ("done", 64 << 10));

    let bomb = with_status(200, "content-encoding: gzip\r\n", "\u{1f}not unpacked");
    let result = call(&StandIn::new([Act::Raw(bomb)])).await;
    assert_eq!(result.output.text, "\u{1f}not unpacked");

    let echo = with_status(200, "", &format!("got {SECRET}"));
    let result = call(&StandIn::new([Act::Raw(echo)])).await;
    assert_eq!(result.output.text, "got [hidden]");
}

#[tokio::test]
async fn every_misbehaviour_ends_with_a_reason() {
    let (elsewhere, moved) = {
        let elsewhere = StandIn::new([]);
        let location = format!("location: {}/x\r\n", elsewhere.url());
        (elsewhere, with_status(307, &location, ""))
    };
    for (act, expected) in [
        (Act::Raw(Vec::new()), "connection_lost indeterminate"),
        (Act::Raw(moved), "redirected permanent"),
        (
            Act::Raw(with_status(429, "retry-after: 3\r\n", "")),
            "too_many_requests transient after 3s",
        ),
        (Act::Raw(with_status(500, "", "")), "server_error transient"),
        (Act::Raw(with_status(400, "", "")), "request_refused permanent"),
    ] {
        let server = StandIn::new([act.clone()]);
        let outcome = describe(&call(&server).await.outcome);
        assert!(outcome.starts_with(&format!("{expected}:")), "{outcome}");
        assert_eq!(server.asked().len(), 1);
    }
    assert!(elsewhere.asked().is_empty(), "the redirect was followed");

    // Never a byte, or one byte after the other without end.
    for act in [Act::Hang, Act::Drip] {
        let server = StandIn::new([act]);
        let time_max = Duration::from_millis(200);
        let result = World::new().run(Attempt { time_max, ..hook(&server.url(), true) }).await;
        assert!(describe(&result.outcome).starts_with("timeout indeterminate:"));
    }
}

/// In every spelling, addresses outside the internet are refused.
#[tokio::test]
async fn g1_internal_addresses_are_refused_before_a_connection() {
    let server = StandIn::new([]);
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::]",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "①②⑦.0.0.1",
    ] {
        let result = World::new().run(hook(&format!("http://{host}:{port}/"), false)).await;
        let outcome = describe(&result.outcome);
        assert!(
            outcome.starts_with("not_allowed permanent: the request was not sent:"),
            "{host}: {outcome}"
        );
    }
    // Reserved, link-local and metadata addresses, for an agent that may use private networks too.
    for host in [
        "[::]",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[::ffff:169.254.169.254]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
    ] {
        let result = World::new().run(hook(&format!("http://{host}:{port}/"), true)).await;
        let outcome = describe(&result.outcome);
        assert!(outcome.starts_with("not_allowed permanent:"), "{host}: {outcome}");
    }
    assert!(server.asked().is_empty());
    for url in ["file:///etc/passwd", "unix:/run/docker.sock", "http://a@127.0.0.1/", "gopher://x"]
    {
        assert!(url.parse::<Url>().is_err(), "{url}");
    }
}

static LOOKUPS: AtomicUsize = AtomicUsize::new(0);

/// Returns this machine for the first lookup, and another address for later ones.
fn rebinding(_: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    let number = LOOKUPS.fetch_add(1, Ordering::SeqCst);
    let address = if number == 0 { [127, 0, 0, 1] } else { [127, 0, 0, 99] };
    async move { Ok(vec![IpAddr::from(address)]) }.boxed()
}

fn mixed(_: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    async { Ok(vec![IpAddr::from([1, 1, 1, 1]), IpAddr::from([127, 0, 0, 1])]) }.boxed()
}

#[tokio::test]
async fn g1_name_is_looked_up_once_and_every_address_is_checked() {
    let server = StandIn::new([]);
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let url: Url = format!("http://rebind.example:{port}/").parse().unwrap();
    let post = |egress| Post {
        url: &url,
        egress,
        token: None,
        key: None,
        body: &[(); 0],
        time_max: HANG_TIMEOUT,
    };
    let http = Http::with_lookup(rebinding);
    assert_eq!(http.post(post(Egress::Unrestricted)).await.unwrap().status(), 200);
    assert_eq!((LOOKUPS.load(Ordering::SeqCst), server.asked().len()), (1, 1));

    for lookup in [mixed, rebinding] {
        for name in ["rebind.example", "localhost."] {
            let url: Url = format!("http://{name}:{port}/").parse().unwrap();
            let refused = Post { url: &url, ..post(Egress::Public) };
            let outcome = Http::with_lookup(lookup).post(refused).await.unwrap_err().to_string();
            assert!(outcome.ends_with("is an address of this machine"), "{name}: {outcome}");
        }
    }
    assert_eq!(server.asked().len(), 1);
}
