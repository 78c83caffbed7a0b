//! Notifications by a program and over HTTP: each is delivered once, across crashes and restarts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::http_stub::{Request, serve};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, World, daily};

/// Appends its input to the file `$0`, if the file `$1` exists.
const HOOK: &str = r#"test -e "$1" || { echo "no listener"; exit 1; }; cat >> "$0""#;

#[test]
fn program_is_notified_once_across_kills_and_restarts() {
    let mut world = World::new();
    let (file, listens) = (world.root().join("notices"), world.root().join("listens"));
    let command = json!(["sh", "-c", HOOK, file, listens]).to_string();
    world.set("MIDWATCH_NOTICE_COMMAND", command);
    fs::write(&listens, "").unwrap();
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world);

    let first = request_approval(&world, &schedule);
    wait_until(|| delivered(&file).len() == 1);
    let digest = &delivered(&file)[0];
    assert_eq!(digest["items"].as_array().unwrap().len(), 1, "{digest}");
    let item = &digest["items"][0];
    assert_eq!((&item["kind"], &item["id"]), (&"approval_asked".into(), &first.clone().into()));
    assert_eq!(item["command"], format!("midwatch approval show {first}"));
    let name = item["schedule_name"].as_str().unwrap_or_else(|| panic!("{digest}"));
    assert!(item["text"].as_str().unwrap().starts_with(&format!("{name}: Run run_")), "{digest}");
    assert!(!digest.to_string().contains("tell them"), "the digest contains the prompt");
    wait_until_settled(&world, "command");
    assert!(channel(&world)["last_success"].is_string());
    assert!(world.ok(&["status", "--all"]).contains("command: last sent "));
    daemon.kill();

    // A delivered notification is not repeated, and one that fails now is not lost.
    fs::remove_file(&listens).unwrap();
    let daemon = world.up();
    // Another prompt, because the same approval is not requested twice.
    world.ok(&["schedule", "edit", &schedule, "--prompt", "tell them again"]);
    let second = request_approval(&world, &schedule);
    let failure = wait_for_channel(&world, "/last_failure/what");
    assert_eq!(failure, "the program exited with code 1");
    daemon.kill();
    assert_eq!(delivered(&file).len(), 1);

    fs::write(&listens, "").unwrap();
    let daemon = world.up();
    wait_until(|| delivered(&file).len() == 2);
    wait_until_settled(&world, "command");
    daemon.stop();
    let ids: Vec<Value> = delivered(&file)
        .iter()
        .flat_map(|digest| digest["items"].as_array().unwrap().clone())
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, [first, second]);
    world.verified();
}

/// Delivery is retried after an error with the same idempotency key; a long response does not matter.
#[test]
fn url_is_notified_again_until_it_responds_with_success() {
    const TOKEN: &str = "canary-4f1d0c";
    let long =
        [b"HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n".to_vec(), vec![b'x'; 10 << 20]];
    let broken = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".to_vec();
    let (url, requests) = serve(vec![broken, long.concat()]);
    let mut world = World::new();
    world.set("MIDWATCH_NOTICE_URL", format!("{url}/hook"));
    world.set("MIDWATCH_NOTICE_TOKEN", "env:HOOK_TOKEN");
    world.set("HOOK_TOKEN", TOKEN);
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world);
    let approval = request_approval(&world, &schedule);
    wait_for_channel(&world, "/last_success");
    assert_eq!(channel(&world)["last_failure"]["what"], "the server responded with 500");
    let requests: Vec<Request> = requests.try_iter().collect();
    let [(head, first), (_, again)] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(first, again);
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["items"][0]["id"], approval);
    let key = format!("idempotency-key: {}", first["id"].as_str().unwrap());
    for line in ["post /hook http/1.1", "content-type: application/json", &key] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(head.contains(&format!("authorization: bearer {TOKEN}")), "{head}");
    let stderr = daemon.stop();
    let log = fs::read_to_string(world.data().join("logs/midwatch.log")).unwrap();
    for text in [stderr, log, world.ok(&["config", "show"])] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn redirect_and_timeout_of_a_url_are_delivery_failures() {
    let moved = |url: &str| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n")
    };
    let (elsewhere, never) = serve(Vec::new());
    let (redirecting, redirected) = serve(vec![moved(&elsewhere).into_bytes()]);
    let (silent, unanswered) = serve(Vec::new());
    for (url, requests, expected) in [
        (redirecting, redirected, "the server responded with 307"),
        (silent, unanswered, "timed out"),
    ] {
        let mut world = World::new();
        world.set("MIDWATCH_NOTICE_URL", format!("{url}/secret-topic"));
        let _daemon = world.up();
        let schedule = add_tier_2_schedule(&world);
        request_approval(&world, &schedule);
        let what = wait_for_channel(&world, "/last_failure/what");
        assert!(what.contains(expected) && !what.contains("secret-topic"), "{what}");
        assert!(requests.try_recv().is_ok());
    }
    assert!(never.try_recv().is_err(), "the redirect was followed");
}

/// The daemon needs the secret to start; a command does not.
/// The operator may name a server in a private network, but a notice never goes to a link-local or metadata address.
#[test]
fn g1_notice_goes_to_no_metadata_address() {
    for host in ["169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"] {
        let mut world = World::new();
        world.set("MIDWATCH_NOTICE_URL", format!("https://{host}/latest/secret-topic"));
        let daemon = world.up();
        request_approval(&world, &add_tier_2_schedule(&world));
        let failure = wait_for_channel(&world, "/last_failure/what");
        assert!(failure.ends_with("is a link-local or metadata address"), "{host}: {failure}");
        assert!(!failure.contains("secret-topic"), "{failure}");
        daemon.stop();
    }
}

#[test]
fn daemon_does_not_start_without_its_notification_token() {
    let mut world = World::new();
    world.set("MIDWATCH_NOTICE_URL", "http://127.0.0.1:9/hook");
    world.set("MIDWATCH_NOTICE_TOKEN", "env:NOT_SET");
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("env:NOT_SET") && stderr.contains("notice.token"), "{stderr}");
    world.add_agent("ada");
}

fn write_config(world: &World, command: &Value) {
    fs::create_dir_all(world.data()).unwrap();
    let text = format!("[notice]\ncommand = {command}\n");
    fs::write(world.data().join("midwatch.toml"), text).unwrap();
}

#[test]
fn channels_are_tested_listed_and_reloaded() {
    let world = World::with_agent("ada");
    assert!(world.ok(&["notice", "list"]).contains("no channel is configured"));
    assert!(world.run(&["doctor"]).stdout.contains("none: no one is notified when a run fails"));
    world.refused(&["notice", "test"], "not_now", 4);

    let (file, listens) = (world.root().join("notices"), world.root().join("listens"));
    fs::write(&listens, "").unwrap();
    let daemon = world.up();
    world.refused(&["notice", "test"], "not_found", 3);
    write_config(&world, &json!(["sh", "-c", HOOK, file, listens]));
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    let expected = (json!(["notice.command"]), json!([]));
    assert_eq!((reloaded["changed"].clone(), reloaded["waiting"].clone()), expected, "{reloaded}");
    wait_until(|| channel(&world)["channel"] == "command");
    assert_eq!(world.ok(&["notice", "test"]), "command: delivered\n");
    assert_eq!(delivered(&file)[0]["items"][0]["kind"], "test");
    let listed = world.json(&["notice", "list"])["channels"][0].clone();
    assert!(listed["last_success"].is_string() && listed["failing_since"].is_null(), "{listed}");

    fs::remove_file(&listens).unwrap();
    let tested = world.run(&["notice", "test"]);
    assert_eq!(tested.stdout, "command: FAILED: the program exited with code 1\n");
    assert_eq!(tested.code, Some(1));
    assert!(world.ok(&["notice", "list"]).contains("FAILING since"));
    assert!(world.ok(&["status"]).contains("notices do not reach command since"));
    assert!(world.run(&["doctor"]).stdout.contains("`command` has failed since"));

    // The new channel delivers what happens from now on.
    let elsewhere = world.root().join("elsewhere");
    fs::write(&listens, "").unwrap();
    write_config(&world, &json!(["sh", "-c", HOOK, elsewhere, listens]));
    world.ok(&["config", "reload"]);
    wait_until(|| channel(&world)["last_failure"].is_null());
    let schedule = add_tier_2_schedule_of(&world, "eve");
    let approval = request_approval(&world, &schedule);
    wait_until(|| !delivered(&elsewhere).is_empty());
    assert_eq!(delivered(&elsewhere)[0]["items"][0]["id"], approval);
    assert_eq!(delivered(&file).len(), 1);
    daemon.stop();
}

#[test]
fn used_up_budget_is_notified_once_a_day() {
    let mut world = World::new();
    let (file, listens) = (world.root().join("notices"), world.root().join("listens"));
    fs::write(&listens, "").unwrap();
    let command = json!(["sh", "-c", HOOK, file, listens]).to_string();
    world.set("MIDWATCH_NOTICE_COMMAND", command);
    world.set("MIDWATCH_BUDGET_RUNS", "1");
    world.ok(&["agent", "add", "ada", "--backend", "command", "--", "/bin/true"]);
    let schedule = world.add_daily("news", "ada", "hello");
    let end_run = |state: &str| {
        let run = world.start_run(&schedule);
        world.wait_for_state(&run, state)
    };
    let daemon = world.up();
    end_run("done");
    assert_eq!(end_run("cancelled")["reason"], "budget_used_up");
    wait_until(|| !delivered(&file).is_empty());
    let item = delivered(&file)[0]["items"][0].clone();
    assert_eq!(item["kind"], "budget_used_up", "{item}");
    let text =
        "The daily budget of runs of all agents together is used up (1 of 1); runs that need it";
    assert!(item["text"].as_str().unwrap().starts_with(text), "{item}");
    end_run("cancelled");
    daemon.kill();
    let daemon = world.up();
    end_run("cancelled");
    assert_eq!(world.count_events("budget.used_up"), 1);
    daemon.stop();
    world.verified();
}

#[test]
fn channel_that_gives_up_is_reported_through_the_other_one() {
    let gone = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    let (url, _requests) = serve(vec![gone]);
    let mut world = World::new();
    let (file, listens) = (world.root().join("notices"), world.root().join("listens"));
    fs::write(&listens, "").unwrap();
    world.set("MIDWATCH_NOTICE_COMMAND", json!(["sh", "-c", HOOK, file, listens]).to_string());
    world.set("MIDWATCH_NOTICE_URL", format!("{url}/hook"));
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world);
    request_approval(&world, &schedule);
    let failing = world.wait_for_event("notice.failing");
    assert_eq!(failing["body"]["channel"], "url", "{failing}");
    let kinds = || -> Vec<Value> {
        let digests = delivered(&file);
        let items = digests.iter().flat_map(|it| it["items"].as_array().unwrap().clone());
        items.map(|item| item["kind"].clone()).collect()
    };
    wait_until(|| kinds().contains(&json!("channel_failing")));
    drop(daemon);
}

/// Adds a tier-2 agent and a schedule whose runs need approval.
fn add_tier_2_schedule(world: &World) -> String {
    add_tier_2_schedule_of(world, "ada")
}

fn add_tier_2_schedule_of(world: &World, agent: &str) -> String {
    world.ok(&["agent", "add", agent, "--backend", "builtin", "--tier", "2"]);
    let flags = [&daily("news", agent, "tell them")[..], &["--overlap", "allow"]].concat();
    world.add_schedule(&flags)
}

/// Starts a run. Returns the id of its approval.
fn request_approval(world: &World, schedule: &str) -> String {
    world.wait_for_approval(&world.start_run(schedule))
}

/// The only channel, as `status` shows it.
fn channel(world: &World) -> Value {
    world.json(&["status"])["notices"][0].clone()
}

/// Waits until the status of the only channel has this text, and returns it.
fn wait_for_channel(world: &World, pointer: &str) -> String {
    world.wait_for_status(|status| {
        status["notices"][0].pointer(pointer)?.as_str().map(str::to_owned)
    })
}

/// Waits until the daemon has recorded that no delivery is in progress.
fn wait_until_settled(world: &World, channel: &str) {
    let path = world.data().join("notices").join(channel);
    wait_until(|| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.trim_end().split_once(' ').is_some_and(|(done, through)| done == through)
    });
}

/// The notifications that the program has received.
fn delivered(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
