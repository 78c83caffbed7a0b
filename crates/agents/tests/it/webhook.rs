//! Requests to a webhook: signed, to where they may go, and over in time whatever comes back.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents::{Ended, Http, Post, Reach, Work};
use futures::future::{BoxFuture, FutureExt};
use hmac::{Hmac, KeyInit, Mac};
use kernel::Timestamp;
use kernel::backend::{Backend, BackendKind, SecretRef, Settings, Url};
use serde_json::json;
use sha2::Sha256;

use crate::stand_in::{Act, StandIn, with_status};
use crate::world::{HANGING, SECRET, World, said, work};

fn hook(url: &str, allow_private: bool) -> Work {
    let settings = Settings {
        url: Some(url.to_owned()),
        allow_private: allow_private.then_some(true),
        ..Settings::default()
    };
    let backend = Backend::parse(BackendKind::Webhook, settings).unwrap();
    let at = Timestamp::from_micros(1_763_200_000_500_000);
    let mut work = Work {
        at,
        attempt: 2,
        schedule: Some("sch-1".into()),
        slot: Some("2026-11-15T09:00:00Z".into()),
        ..work(backend, "tidy up")
    };
    work.agent.credential = Some(SecretRef::Env("SECRET".into()));
    work
}

async fn called(server: &StandIn) -> Ended {
    World::new().run(hook(&format!("{}/hook?a=1", server.url()), true)).await
}

#[tokio::test]
async fn a_call_is_signed_over_its_time_and_body_and_can_be_told_from_others() {
    let server = StandIn::new([Act::Raw(with_status(200, "", "taken\n"))]);
    let ended = called(&server).await;
    assert_eq!((said(&ended.outcome).as_str(), ended.output.text.as_str()), ("done", "taken\n"));
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
    assert_eq!(asked.header("authorization"), None, "the secret signs and does not travel");
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("1763200000.{}", asked.body).as_bytes());
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(asked.header("midwatch-signature"), Some(format!("v1={hex}").as_str()));
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let server = StandIn::new([]);
    let mut work = hook(&server.url(), true);
    work.agent.credential = None;
    assert_eq!(said(&World::new().run(work).await.outcome), "done");
    assert_eq!(server.asked()[0].header("midwatch-signature"), None);
}

/// The head of a good answer says all; the rest may be as long and as slow as it likes.
#[tokio::test]
async fn an_answer_is_taken_up_to_its_limits() {
    let ended = called(&StandIn::new([Act::Flood(100)])).await;
    assert_eq!((said(&ended.outcome).as_str(), ended.output.bytes), ("done", 64 << 10));

    let bomb = with_status(200, "content-encoding: gzip\r\n", "\u{1f}not unpacked");
    let ended = called(&StandIn::new([Act::Raw(bomb)])).await;
    assert_eq!(ended.output.text, "\u{1f}not unpacked");

    let echo = with_status(200, "", &format!("got {SECRET}"));
    let ended = called(&StandIn::new([Act::Raw(echo)])).await;
    assert_eq!(ended.output.text, "got [hidden]");
}

#[tokio::test]
async fn every_misbehaviour_has_an_end_and_a_name() {
    let (elsewhere, moved) = {
        let elsewhere = StandIn::new([]);
        let location = format!("location: {}/x\r\n", elsewhere.url());
        (elsewhere, with_status(307, &location, ""))
    };
    for (act, expected) in [
        (Act::Raw(Vec::new()), "connection_lost doubtful"),
        (Act::Raw(moved), "redirected permanent"),
        (
            Act::Raw(with_status(429, "retry-after: 3\r\n", "")),
            "too_many_requests passing after 3s",
        ),
        (Act::Raw(with_status(500, "", "")), "server_error passing"),
        (Act::Raw(with_status(400, "", "")), "request_refused permanent"),
    ] {
        let server = StandIn::new([act.clone()]);
        let said = said(&called(&server).await.outcome);
        assert!(said.starts_with(&format!("{expected}:")), "{said}");
        assert_eq!(server.asked().len(), 1);
    }
    assert!(elsewhere.asked().is_empty(), "nobody followed");

    let server = StandIn::new([Act::Hang]);
    let time_max = Duration::from_millis(200);
    let ended = World::new().run(Work { time_max, ..hook(&server.url(), true) }).await;
    assert!(said(&ended.outcome).starts_with("timeout doubtful:"));
}

/// Whatever the spelling, nothing is connected to that is not of the internet.
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
        let ended = World::new().run(hook(&format!("http://{host}:{port}/"), false)).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("not_allowed permanent: it was not sent:"), "{host}: {said}");
    }
    for host in ["[::]", "0.0.0.0", "255.255.255.255", "224.0.0.1"] {
        let ended = World::new().run(hook(&format!("http://{host}:{port}/"), true)).await;
        let said = said(&ended.outcome);
        assert!(said.starts_with("not_allowed permanent:"), "{host} is nobody's: {said}");
    }
    assert!(server.asked().is_empty());
    for url in ["file:///etc/passwd", "unix:/run/docker.sock", "http://a@127.0.0.1/", "gopher://x"]
    {
        assert!(url.parse::<Url>().is_err(), "{url}");
    }
}

static LOOKUPS: AtomicUsize = AtomicUsize::new(0);

/// Another address each time it is asked: the first leads here, the next would lead elsewhere.
fn fickle(_: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    let number = LOOKUPS.fetch_add(1, Ordering::SeqCst);
    let address = if number == 0 { [127, 0, 0, 1] } else { [127, 0, 0, 99] };
    async move { Ok(vec![IpAddr::from(address)]) }.boxed()
}

fn mixed(_: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
    async { Ok(vec![IpAddr::from([1, 1, 1, 1]), IpAddr::from([127, 0, 0, 1])]) }.boxed()
}

#[tokio::test]
async fn g1_a_name_is_looked_up_once_and_every_address_is_judged() {
    let server = StandIn::new([]);
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let url: Url = format!("http://rebind.example:{port}/").parse().unwrap();
    let post = |reach| Post {
        url: &url,
        reach,
        token: None,
        key: None,
        body: &[(); 0],
        time_max: HANGING,
    };
    let http = Http::with_names(fickle);
    assert_eq!(http.post(post(Reach::Private)).await.unwrap().status(), 200);
    assert_eq!((LOOKUPS.load(Ordering::SeqCst), server.asked().len()), (1, 1));

    for lookup in [mixed, fickle] {
        for name in ["rebind.example", "localhost."] {
            let url: Url = format!("http://{name}:{port}/").parse().unwrap();
            let refused = Post { url: &url, ..post(Reach::Public) };
            let said = Http::with_names(lookup).post(refused).await.unwrap_err().to_string();
            assert!(said.ends_with("is an address of this machine"), "{name}: {said}");
        }
    }
    assert_eq!(server.asked().len(), 1);
}
