//! The feed of the ledger over HTTP.

use serde_json::{Value, json};

use super::client::{ApiClient, next_line};
use crate::support::mcp_http::{HttpDaemon, http_daemon};
use crate::support::world::World;

const LINES: &str = "application/x-ndjson";
const SERVER_SENT: &str = "text/event-stream";

/// A daemon, and a client with the token of an observer.
fn observer(world: &mut World) -> (HttpDaemon, ApiClient) {
    let daemon = http_daemon(world);
    let (_, token) = world.create_token("olga", "observer");
    let client = ApiClient::new(&daemon.address, Some(&token));
    (daemon, client)
}

fn seqs(page: &Value) -> Vec<u64> {
    page["events"].as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()).collect()
}

#[test]
fn a_reader_gets_every_entry_once_from_any_position() {
    let mut world = World::new();
    let (_daemon, api) = observer(&mut world);
    let schedule = world.add_daily("news", "echo", "hi");
    let run = world.start_run(&schedule);
    world.wait_for_state(&run, "done");
    let all = world.events();
    let last = all.last().unwrap()["seq"].as_u64().unwrap();
    let (mut after, mut found) = (0, Vec::new());
    while after < last {
        let page = api.get(&format!("/events?after={after}&limit=3")).ok();
        found.extend(seqs(&page));
        after = page["cursor"].as_u64().unwrap();
    }
    assert_eq!(found, (1..=last).collect::<Vec<_>>());
    // As lines and as server-sent events, the same.
    let mut lines = api.stream("/events?after=0", LINES);
    for entry in &all {
        let line = next_line(&mut lines, |line| line.starts_with("{\"seq\""));
        assert_eq!(&serde_json::from_str::<Value>(&line).unwrap(), entry);
    }
    let mut sent = api.stream("/events?after=2", SERVER_SENT);
    for entry in &all[2..] {
        let id = next_line(&mut sent, |line| line.starts_with("id: "));
        assert_eq!(id, format!("id: {}", entry["seq"]));
        let data = next_line(&mut sent, |line| line.starts_with("data: "));
        assert_eq!(&serde_json::from_str::<Value>(&data["data: ".len()..]).unwrap(), entry);
    }
    // What happens later follows on the open streams.
    world.ok(&["schedule", "pause", &schedule]);
    let line = next_line(&mut lines, |line| line.starts_with("{\"seq\""));
    assert!(line.contains("schedule.paused"), "{line}");
    let data = next_line(&mut sent, |line| line.starts_with("data: "));
    assert!(data.contains("schedule.paused"), "{data}");
}

#[test]
fn a_reader_resumes_after_a_crash_without_a_gap() {
    let mut world = World::new();
    let (daemon, api) = observer(&mut world);
    let schedule = world.add_daily("news", "echo", "hi");
    let mut lines = api.stream("/events?after=0", LINES);
    let mut last = 0;
    for seq in 1..=world.events().len() {
        let line = next_line(&mut lines, |line| line.starts_with("{\"seq\""));
        last = serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64().unwrap();
        assert_eq!(last, seq as u64);
    }
    let token = daemon.token.clone();
    daemon.kill();
    let daemon = HttpDaemon::new(&mut world, token);
    let (_, token) = world.create_token("omar", "observer");
    world.ok(&["schedule", "pause", &schedule]);
    let api = ApiClient::new(&daemon.address, Some(&token));
    let rest = seqs(&api.get(&format!("/events?after={last}&limit=1000")).ok());
    let end = world.events().len() as u64;
    assert_eq!(rest, (last + 1..=end).collect::<Vec<_>>());
    // A browser says where it was in a header.
    let id = end.to_string();
    let page = api.send("GET", "/events?after=1", &[("Last-Event-ID", &id)], "").ok();
    assert_eq!(seqs(&page), [0; 0], "the larger of both positions counts");
}

#[test]
fn a_reader_filters_by_kind_schedule_and_run() {
    let mut world = World::new();
    let (_daemon, api) = observer(&mut world);
    let [first, second] = ["one", "two"].map(|name| world.add_daily(name, "echo", name));
    let run = world.start_run(&first);
    let other = world.start_run(&second);
    for run in [&run, &other] {
        world.wait_for_state(run, "done");
    }
    let kinds = |query: &str| -> Vec<String> {
        let page = api.get(&format!("/events?after=0&limit=1000&{query}")).ok();
        assert_eq!(page["cursor"], world.events().len(), "{page}");
        let events = page["events"].as_array().unwrap();
        events.iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
    };
    let of_run = kinds(&format!("run={run}"));
    assert_eq!(of_run.iter().filter(|kind| *kind == "run.queued").count(), 1, "{of_run:?}");
    assert_eq!(kinds(&format!("run={run}&kind=run.queued")), ["run.queued"]);
    assert_eq!(kinds("kind=run.queued"), ["run.queued", "run.queued"]);
    assert!(kinds("kind=run.*").iter().all(|kind| kind.starts_with("run.")));
    let of_schedule = kinds("schedule=one");
    assert_eq!(of_schedule[0], "schedule.added");
    let ends = of_schedule.iter().filter(|kind| kind.starts_with("run.finished")).count();
    assert!(ends <= 1 && of_schedule.len() == 1 + of_run.len(), "{of_schedule:?} {of_run:?}");
    assert_eq!(kinds("kind=nothing"), [""; 0]);
    // A filtered reader learns how far it was searched.
    let mut lines = api.stream("/events?after=0&kind=nothing", LINES);
    let bookmark = next_line(&mut lines, |line| line.starts_with('{'));
    let bookmark: Value = serde_json::from_str(&bookmark).unwrap();
    assert_eq!(bookmark["bookmark"], world.events().len(), "{bookmark}");
}

#[test]
fn a_wrong_position_is_refused() {
    let mut world = World::new();
    let (_daemon, api) = observer(&mut world);
    let end = world.events().len();
    let log = api.get("/events").ok()["log"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("/events?log={log}&after=1")).status, 200);
    for (query, status, code) in [
        (format!("after={}", end + 1), 400, "invalid_input"),
        ("log=other&after=1".to_owned(), 409, "other_ledger"),
        (format!("log=other&after={}", end + 1), 409, "other_ledger"),
        ("after=-1".to_owned(), 400, "invalid_input"),
        ("wait=26".to_owned(), 400, "invalid_input"),
        ("wait=1&wait=1".to_owned(), 400, "invalid_input"),
        ("wait_ms=1".to_owned(), 400, "invalid_input"),
        ("more=1".to_owned(), 400, "invalid_input"),
        ("kind=%3Cb%3E".to_owned(), 400, "invalid_input"),
        ("run=run_nonsense".to_owned(), 404, "not_found"),
    ] {
        let reply = api.get(&format!("/events?{query}"));
        assert_eq!(reply.problem(), (status, code.to_owned()), "{query}: {reply:?}");
    }
    let id = api.send("GET", "/events", &[("Last-Event-ID", "x")], "");
    assert_eq!(id.problem(), (400, "invalid_input".to_owned()));
    let html = api.send("GET", "/events", &[("Accept", "text/html")], "");
    assert_eq!(html.problem(), (406, "invalid_input".to_owned()));
}

#[test]
fn a_long_poll_ends_with_the_next_entry() {
    let mut world = World::new();
    let (daemon, api) = observer(&mut world);
    let at = world.events().len();
    let (_, token) = world.create_token("omar", "observer");
    let created = world.events().len();
    let waiting = std::thread::spawn({
        let address = daemon.address.clone();
        move || ApiClient::new(&address, Some(&token)).get("/events?wait=25").ok()
    });
    // The reader waits from the end of the ledger, wherever that is when it starts.
    let page = loop {
        world.ok(&["event", "publish", "nothing/waits"]);
        world.add_daily(&format!("s{}", world.events().len()), "echo", "x");
        if waiting.is_finished() {
            break waiting.join().unwrap();
        }
    };
    assert!(created < seqs(&page)[0] as usize, "{page}");
    assert!(at < created);
    let now = api.get("/events").ok();
    assert_eq!(now["events"], json!([]), "without a wait it returns at once");
}

/// What a reader may not see is not shown, and a stream ends when its token is revoked.
#[test]
fn a_stream_shows_only_what_its_reader_may_see() {
    let mut world = World::new();
    let (daemon, _) = observer(&mut world);
    let (_, agent) = world.create_token("echo", "runner");
    let refused = ApiClient::new(&daemon.address, Some(&agent)).get("/events");
    assert_eq!(refused.problem(), (403, "role_too_low".to_owned()));
    let (id, token) = world.create_token("omar", "observer");
    let reader = ApiClient::new(&daemon.address, Some(&token));
    let mut lines = reader.stream("/events?after=0", LINES);
    let first = next_line(&mut lines, |line| line.starts_with('{'));
    assert!(first.contains("\"seq\":1,"), "{first}");
    world.ok(&["token", "revoke", &id]);
    let gone = next_line(&mut lines, |line| line.starts_with("{\"gone\""));
    let gone: Value = serde_json::from_str(&gone).unwrap();
    assert_eq!(gone["gone"]["error"]["code"], "token_invalid", "{gone}");
    assert!(gone["gone"]["resume"].is_u64(), "{gone}");
}
