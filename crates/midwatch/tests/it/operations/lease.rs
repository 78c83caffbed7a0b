//! The lease: a person who looks keeps it from expiring, and a renewal releases what only the lease had parked.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::wrong_clock::{days_from_now, world_of};
use crate::faults::inject_fault;
use crate::support::mcp_http::HttpDaemon;
use crate::support::mcp_stdio::Client;
use crate::support::terminal::Terminal;
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, PROGRAM, World, daily};

/// A world with the agent `ada`, whose lease began some days ago.
fn begun_days_ago(days: i64) -> World {
    world_of(days_from_now(-days))
}

fn renewals(world: &World) -> usize {
    world.count_events("authority.renewed")
}

fn renewed_by(world: &World) -> Value {
    world.json(&["status"])["authority"]["lease"]["renewed"]["by"].clone()
}

#[test]
fn person_at_a_terminal_renews_the_lease_once_a_day() {
    for has_daemon in [true, false] {
        let world = begun_days_ago(3);
        let _daemon = has_daemon.then(|| world.up());
        assert_eq!(renewed_by(&world), "midwatch");
        world.ok(&["status"]);
        assert_eq!(renewals(&world), 0, "a script is no person");
        let page = Terminal::run(&world, &["status"]);
        assert_eq!(renewals(&world), 1, "daemon: {has_daemon}");
        // The page has the new deadline already.
        assert!(page.contains("(in 14d)") && page.contains("(in 28d)"), "{page}");
        assert!(renewed_by(&world).as_str().unwrap().starts_with("uid:"));
        for command in [&["status"][..], &["run", "list"], &["--json", "agent", "list"]] {
            Terminal::run(&world, command);
        }
        assert_eq!(renewals(&world), 1, "daemon: {has_daemon}");
        world.verified();
    }
}

/// Whatever the command is about; but one that stays could run long after the person has left.
#[test]
fn commands_that_stay_and_those_of_agents_do_not_renew_the_lease() {
    let world = begun_days_ago(3);
    let schedule = world.add_daily("news", "ada", "hello");
    let mut daemon = Terminal::start(&world, &["up"]);
    daemon.wait_for("ready: midwatch");
    let run = world.start_run(&schedule);
    daemon.wait_for("news done");
    for (command, expected) in [
        (&["run", "watch", &run][..], "done"),
        (&["timeline", "--follow"], "run done"),
        (&["ledger", "tail", "--follow"], "run.ended"),
    ] {
        let mut terminal = Terminal::start(&world, command);
        terminal.wait_for(expected);
    }
    let mut client = Client::legacy(&world, &[]);
    client.ok("status_get", serde_json::json!({}));
    assert_eq!(renewals(&world), 0, "{:?}", world.kinds());
    Terminal::run(&world, &["run", "show", &run]);
    assert_eq!(renewals(&world), 1);
}

/// A terminal that a run has opened: with and without the claim that it is a run, and with an operator's token.
#[test]
fn run_that_opens_a_terminal_does_not_renew_the_lease() {
    let world = begun_days_ago(3);
    let (_, token) = world.create_token("otto", "operator");
    let daemon = world.up();
    let out = world.root().join("out");
    let program = format!("{PROGRAM} --data {} status", world.data().display());
    let unclaimed = "env -u MIDWATCH_RUN_ID";
    let script = format!(
        "for claim in '' '{unclaimed}' '{unclaimed} MIDWATCH_TOKEN={token}'; do \
           script -qefc \"$claim {program}\" /dev/null; \
         done > $0"
    );
    let agent = ["agent", "add", "eve", "--backend", "command", "--", "sh", "-c", &script];
    world.ok(&[&agent[..], &[out.to_str().unwrap()]].concat());
    let run = world.start_run(&world.add_daily("news", "eve", "hello"));
    world.wait_for_state(&run, "done");
    let printed = fs::read_to_string(&out).unwrap();
    assert_eq!(printed.matches("running, pid ").count(), 3, "{printed}");
    assert_eq!(renewals(&world), 0);
    Terminal::run(&world, &["status"]);
    assert_eq!(renewals(&world), 1);
    daemon.stop();
}

#[test]
fn observer_at_a_terminal_does_not_renew_the_lease() {
    let mut world = begun_days_ago(3);
    let (_, token) = world.create_token("olga", "observer");
    let _daemon = world.up();
    world.set("MIDWATCH_TOKEN", token);
    assert!(Terminal::run(&world, &["agent", "list"]).contains("ada"));
    assert_eq!(renewals(&world), 0);
}

/// A look does not start what waits: that takes `lease renew`, which names it.
#[test]
fn look_at_an_expired_lease_says_so_and_renews_nothing() {
    let world = begun_days_ago(15);
    let _daemon = world.up();
    let run = world.start_run(&world.add_daily("news", "ada", "hello"));
    world.wait_for_approval(&run);
    let page = Terminal::run(&world, &["status"]);
    let expected = "you have not confirmed for 14 days that you are still there (the lease has expired), so every \
                    run needs approval: `midwatch lease renew`";
    assert!(page.contains(expected), "{page}");
    assert_eq!(renewals(&world), 0);
    let renewed = world.ok(&["lease", "renew"]);
    assert!(renewed.contains("1 run waited only for this and can start now: news"), "{renewed}");
    world.wait_for_state(&run, "done");
    assert_eq!(renewals(&world), 1);
}

#[test]
fn person_on_the_page_of_an_approval_renews_the_lease() {
    let mut world = begun_days_ago(3);
    let (_, token) = world.create_token("otto", "operator");
    world.ok(&["agent", "add", "pay", "--backend", "builtin", "--tier", "2"]);
    let daemon = HttpDaemon::new(&mut world, token.clone());
    let run = world.start_run(&world.add_daily("invoices", "pay", "go"));
    let approval = world.wait_for_approval(&run);
    let path = format!("/approvals/{approval}");
    let host = ("Host", daemon.address.as_str());
    assert_eq!(daemon.request("GET", &path, &[host], "").status, 200);
    assert_eq!(renewals(&world), 0, "they have not signed in yet");
    let origin = format!("http://{}", daemon.address);
    let headers =
        [host, ("Origin", &origin), ("Content-Type", "application/x-www-form-urlencoded")];
    let shown = daemon.request("POST", &path, &headers, format!("token={token}"));
    assert_eq!(shown.status, 200, "{shown:?}");
    // Times have their distance from now beside them.
    assert!(shown.body.contains(" UTC (in ") && shown.body.contains(" UTC (now)"), "{shown:?}");
    assert_eq!(renewed_by(&world), "otto");
    assert_eq!(renewals(&world), 1);
}

/// People hear of the lease with their first schedules, added or imported, in words that need no explanation.
#[test]
fn first_schedules_explain_the_lease() {
    const TERMS: &str = "confirm every 14 days that you are still there: any command that you run in a terminal does";
    const EFFECT: &str =
        "without you, every run needs approval after 14 days, and no run starts after 28 days";
    let add = |world: &World, name: &str| {
        world.ok(&[&["schedule", "add"], &daily(name, "ada", "go")[..]].concat()).replace('\n', " ")
    };
    let import = |world: &World| {
        let crontab = world.root().join("crontab");
        fs::write(&crontab, "0 3 * * * backup\n").unwrap();
        let flags =
            ["--from", "crontab", "--tz", "UTC", "--agent", "ada", crontab.to_str().unwrap()];
        world.ok(&[&["schedule", "import"], &flags[..]].concat()).replace('\n', " ")
    };
    let mut world = World::with_agent("ada");
    let first = add(&world, "first");
    assert!(first.contains(TERMS) && first.contains(EFFECT), "{first}");
    assert!(!add(&world, "second").contains("confirm") && !import(&world).contains("confirm"));
    let status = world.ok(&["status"]).replace("\n                ", "");
    assert!(status.contains(TERMS) && status.contains(EFFECT), "{status}");

    world = World::with_agent("ada");
    let imported = import(&world);
    assert!(imported.contains(TERMS) && imported.contains(EFFECT), "{imported}");
    assert!(imported.ends_with("1 added, 0 unchanged, 0 left out "), "{imported}");

    world = World::with_agent("ada");
    world.set("MIDWATCH_LEASE_ASK_AFTER", "0s");
    world.set("MIDWATCH_LEASE_PAUSE_AFTER", "0s");
    assert!(!add(&world, "first").contains("confirm") && !import(&world).contains("confirm"));
    assert!(world.ok(&["status"]).contains("lease          does not expire"));
}

/// Runs that one `lease renew` releases.
const PARKED: usize = 5;

/// The daemon is killed after it has released some of them.
#[test]
fn renewal_that_is_killed_halfway_is_completed_by_the_next_daemon() {
    let world = begun_days_ago(15);
    let effects = world.root().join("effects");
    let append =
        ["--", "sh", "-c", r#"echo "$MIDWATCH_RUN_ID" >> "$0""#, effects.to_str().unwrap()];
    world.ok(&[&["agent", "add", "worker", "--backend", "command"], &append[..]].concat());
    let daemon = world.up();
    let names: Vec<String> = (0..PARKED).map(|number| format!("job {number}")).collect();
    let runs: Vec<String> =
        names.iter().map(|name| world.start_run(&world.add_daily(name, "worker", "go"))).collect();
    for run in &runs {
        world.wait_for_approval(run);
    }
    daemon.stop();

    // Every flush takes so long that the release of all of them cannot be missed.
    let wal = world.data().join("midwatch.db-wal");
    let mut slow = inject_fault(&world, "fsync,fdatasync", "delay_enter=400ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let mut renew = world.command();
    let renew = renew.args(["lease", "renew"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut renew = renew.spawn().unwrap();
    let recorded = |kind: &str| {
        world.stored_entries().iter().filter(|(_, recorded, _)| recorded == kind).count()
    };
    wait_until(|| 0 < recorded("approval.lapsed"));
    daemon.kill();
    let _ = renew.kill();
    renew.wait().unwrap();
    let released = recorded("approval.lapsed");
    assert!((1..PARKED).contains(&released), "{released} were released before the kill");
    assert_eq!(recorded("authority.renewed"), 1);

    let daemon = world.up();
    wait_until(|| recorded("approval.lapsed") == PARKED);
    // A run that had started before the kill is unknown; whether it took effect is not.
    let states: Vec<String> = runs
        .iter()
        .map(|run| world.wait_for_run(run, |run| run["finished_at"].is_string()))
        .map(|run| run["state"].as_str().unwrap().to_owned())
        .collect();
    assert!(states.iter().all(|state| ["done", "unknown"].contains(&&**state)), "{states:?}");
    assert_eq!(world.json(&["approval", "list"])["approvals"], serde_json::json!([]));
    daemon.stop();
    let mut ran: Vec<String> =
        fs::read_to_string(&effects).unwrap().lines().map(str::to_owned).collect();
    ran.sort();
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), all, "one ran twice: {ran:?}");
    for (run, state) in runs.iter().zip(&states) {
        assert!(state == "unknown" || ran.contains(run), "{run} did not run: {ran:?}");
    }
    world.verified();
}
