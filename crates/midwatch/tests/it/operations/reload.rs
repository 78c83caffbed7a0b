//! Reloading configuration and rules while the daemon runs: all of it or nothing, and the ledger records from
//! which entry on it is active.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::rules::DENY_ADA;
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, World, daily};

fn write(world: &World, file: &str, text: &str) {
    fs::write(world.data().join(file), text).unwrap();
}

/// Adds the agent `ada` and a schedule that prompts it.
fn add_schedule(world: &World, agent: &[&str]) -> String {
    world.ok(&[&["agent", "add", "ada"], agent].concat());
    let limits = ["--per-day", "100000", "--overlap", "allow:100"];
    world.add_schedule(&[&daily("news", "ada", "hello")[..], &limits].concat())
}

/// Starts a run. Returns the state that it ends in, and the reason.
fn run(world: &World, schedule: &str) -> (String, String) {
    let has_ended = |run: &Value| ["done", "cancelled"].contains(&run["state"].as_str().unwrap());
    let ended = world.wait_for_run(&world.start_run(schedule), has_ended);
    let text = |key: &str| ended[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("reason"))
}

fn ended(state: &str, reason: &str) -> (String, String) {
    (state.to_owned(), reason.to_owned())
}

/// Opening a pipe must not block the reload.
#[test]
fn pipe_instead_of_the_policy_file_is_refused_without_blocking() {
    let world = World::new();
    let daemon = world.up();
    let (policy, mode) = (world.data().join("policy.toml"), Mode::RUSR | Mode::WUSR);
    mknodat(CWD, &policy, FileType::Fifo, mode, 0).unwrap();
    for command in [["config", "reload"], ["policy", "check"]] {
        let message = world.refused(&command, "policy_invalid", 2);
        assert!(message.contains("it is not a regular file"), "{message}");
    }
    fs::remove_file(&policy).unwrap();
    assert!(world.json(&["config", "reload"])["reloaded"].is_object());
    daemon.stop();
}

#[test]
fn reload_activates_policy_and_configuration_together_or_neither() {
    let world = World::new();
    let daemon = world.up();
    let schedule = add_schedule(&world, &["--backend", "builtin"]);
    let (done, refused) = (ended("done", ""), ended("cancelled", "refused"));
    assert_eq!(run(&world, &schedule), done);

    // A changed file is not active before the reload.
    write(&world, "policy.toml", DENY_ADA);
    assert_eq!(run(&world, &schedule), done);
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["changed"], json!(["policy.toml"]), "{reloaded}");
    assert_eq!(reloaded["waiting"], json!([]), "{reloaded}");
    assert_eq!(run(&world, &schedule), refused);
    assert_eq!(world.json(&["status"])["watch"]["policy"], reloaded["policy"]);
    let event = world.events_of("config.reloaded").remove(0);
    assert_eq!(event["body"]["policy"], reloaded["policy"], "{event}");
    assert_eq!(event["body"]["config_hash"], reloaded["config_hash"], "{event}");

    // If one file is invalid, the valid one beside it is not loaded either.
    write(&world, "policy.toml", &DENY_ADA.replace("eve", "ada"));
    let message = world.refused(&["config", "reload"], "policy_invalid", 2);
    assert!(message.contains("no-ada"), "{message}");
    fs::remove_file(world.data().join("policy.toml")).unwrap();
    write(&world, "midwatch.toml", "[budget]\nruns = 7\n\n[lease]\nask_after = \"soon\"\n");
    let message = world.refused(&["config", "reload"], "config_invalid", 2);
    assert!(message.contains("midwatch.toml:5:13"), "{message}");
    let codes: Vec<Value> =
        world.events_of("config.refused").iter().map(|it| it["body"]["code"].clone()).collect();
    assert_eq!(codes, ["policy_invalid", "config_invalid"]);
    assert_eq!(run(&world, &schedule), refused);
    let status = world.json(&["status"]);
    assert_eq!(status["watch"]["policy"], reloaded["policy"]);
    assert_eq!(status["budget"]["runs_max"], 50_000);

    // Settings that need a restart are named and stay as they were.
    let file = "posture = \"debug\"\n\n[log]\nlevel = \"debug\"\n\n[budget]\nruns = 7\n";
    write(&world, "midwatch.toml", file);
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["changed"], json!(["budget.runs", "policy.toml"]), "{reloaded}");
    assert_eq!(reloaded["waiting"], json!(["posture", "log.level"]), "{reloaded}");
    let status = world.json(&["status"]);
    assert_eq!(status["watch"]["posture"], "staging");
    assert_eq!(status["budget"]["runs_max"], 7);
    assert_eq!(run(&world, &schedule), done);
    let again = world.ok(&["config", "reload"]);
    assert!(again.contains("nothing reloaded"), "{again}");
    assert!(again.contains("`posture`, `log.level` take effect after a restart"), "{again}");

    // A policy file that other users can write is refused.
    write(&world, "policy.toml", DENY_ADA);
    let path = world.data().join("policy.toml");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o622);
    fs::set_permissions(&path, open).unwrap();
    let message = world.refused(&["config", "reload"], "unsafe_setup", 4);
    assert!(message.contains("`files`") && message.contains("chmod go-w"), "{message}");
    assert_eq!(run(&world, &schedule), done);
    daemon.stop();
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}

/// The daemon's own environment overrides the file for the daemon only.
#[test]
fn config_show_lists_values_that_the_daemon_overrides() {
    let mut world = World::new();
    // The daemons of tests have a short drain, and so has the command here.
    world.set("MIDWATCH_RUNS_DRAIN", "5s");
    let daemon = {
        let mut command = world.command();
        Daemon::start(command.env("MIDWATCH_FEATURE_FLAGS_TOKEN_FILES", "true").arg("up"))
    };
    write(&world, "midwatch.toml", "[feature_flags]\ntoken_files = false\n");
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["overridden"], json!(["feature_flags.token_files"]), "{reloaded}");
    let shown = world.json(&["config", "show"]);
    let key = "feature_flags.token_files";
    let own = shown["config"].as_array().unwrap().iter().find(|it| it["key"] == key).unwrap();
    assert_eq!(own["value"], false, "{own}");
    let variable = "MIDWATCH_FEATURE_FLAGS_TOKEN_FILES";
    assert_eq!(shown["daemon"], json!([{ "key": key, "value": "true", "origin": variable }]));
    let page = world.ok(&["config", "show"]);
    assert!(page.contains("The daemon uses other values:"), "{page}");
    // `config show` also lists what was changed and not reloaded.
    let file = "[budget]\nruns = 7\n\n[feature_flags]\ntoken_files = false\n";
    write(&world, "midwatch.toml", file);
    let shown = world.json(&["config", "show"])["daemon"].clone();
    let keys: Vec<&str> =
        shown.as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["budget.runs", key]);
    daemon.stop();
    assert_eq!(world.json(&["config", "show"]).get("daemon"), None);
}

/// Any process of the same user can send the signal, so it must change nothing.
#[test]
fn sighup_changes_neither_policy_nor_configuration() {
    let world = World::new();
    let daemon = world.up();
    let schedule = add_schedule(&world, &["--backend", "builtin"]);
    write(&world, "policy.toml", DENY_ADA);
    let log = world.data().join("logs/midwatch.log");
    fs::rename(&log, world.root().join("rotated.log")).unwrap();
    daemon.signal(Signal::HUP);
    wait_until(|| fs::read_to_string(&log).is_ok_and(|it| it.contains("reopened the log file")));
    assert_eq!(run(&world, &schedule), ended("done", ""));
    assert_eq!(world.count_events("config.reloaded") + world.count_events("config.refused"), 0);
    assert_eq!(world.json(&["config", "reload"])["reloaded"]["changed"], json!(["policy.toml"]));
    assert_eq!(run(&world, &schedule), ended("cancelled", "refused"));
    daemon.stop();
}

/// An approval is bound to the rules under which it was requested.
#[test]
fn approval_requested_under_old_rules_starts_nothing_under_new_ones() {
    let world = World::new();
    let _daemon = world.up();
    let schedule = add_schedule(&world, &["--backend", "builtin", "--tier", "2"]);
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    write(&world, "policy.toml", &DENY_ADA.replace("\"ada\"", "\"bob\""));
    world.ok(&["config", "reload"]);
    let plan = world.plan_hash(&approval);
    let message = world.refused(&["approval", "approve", &approval, "--plan", &plan], "not_now", 4);
    assert!(
        message.contains("under other rules") && message.contains("midwatch run retry"),
        "{message}"
    );
    assert_eq!(world.show_run(&run)["state"], "waiting_permission");
    world.ok(&["approval", "deny", &approval]);
    let ended = world.wait_for_state(&run, "cancelled");
    assert_eq!(ended["reason"], "denied", "{ended}");
    world.ok(&["run", "retry", &run]);
    let has_another = |run: &Value| run["approval_id"].as_str().is_some_and(|it| it != approval);
    let second = world.wait_for_run(&run, has_another)["approval_id"].clone();
    world.approve(second.as_str().unwrap());
    world.wait_for_state(&run, "done");
}

#[test]
fn reload_needs_a_maintainer_and_a_daemon() {
    let world = World::new();
    world.refused(&["config", "reload"], "not_found", 3);
    world.add_agent("ada");
    world.refused(&["config", "reload"], "not_now", 4);
    let (_, token) = world.create_token("otto", "operator");
    let _daemon = world.up();
    assert_eq!(world.code_as(&token, &["config", "reload"]), "role_too_low");
    assert_eq!(world.events_of("config.reloaded").len(), 0);
}

fn capability(world: &World, name: &str) -> Value {
    let document = world.json(&["status", "--capabilities"]);
    let all = document["capabilities"].as_array().unwrap().clone();
    all.into_iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{document}"))
}

#[test]
fn feature_flags_are_switched_by_a_reload() {
    let world = World::new();
    let _daemon = world.up();
    let schedule = add_schedule(&world, &["--backend", "command", "--", "sleep", "1000"]);
    let run = world.start_run(&schedule);
    world.wait_for_state(&run, "running");
    // A schedule that the program of the run adds.
    let add = |name: &str| {
        let add = [&["schedule", "add"], &daily(name, "ada", "more")[..]].concat();
        let added = world.json_with(&[("MIDWATCH_RUN_ID", &run)], &add);
        added["error"]["code"].as_str().unwrap_or("ok").to_owned()
    };
    assert_eq!(add("one"), "ok");
    assert_eq!(capability(&world, "schedules_by_runs")["enabled"], true);

    let flags = "[feature_flags]\nschedules_by_runs = false\nlocal_approvals = false\n";
    write(&world, "midwatch.toml", flags);
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    let changed = ["feature_flags.local_approvals", "feature_flags.schedules_by_runs"];
    assert_eq!(reloaded["changed"], json!(changed), "{reloaded}");
    assert_eq!(reloaded["warnings"][0]["check"], "approvers", "{reloaded}");
    assert_eq!(reloaded["warnings"][0]["refuses"], false, "{reloaded}");
    assert_eq!(add("two"), "switched_off");
    let off = capability(&world, "schedules_by_runs");
    assert_eq!((&off["supported"], &off["enabled"]), (&true.into(), &false.into()), "{off}");
    assert!(off["why"].as_str().unwrap().contains("feature_flags.schedules_by_runs"), "{off}");
    let files = capability(&world, "token_files");
    assert!(files["why"].as_str().unwrap().contains("feature_flags.local_approvals"), "{files}");
    let missing = capability(&world, "agent.mcp");
    assert_eq!((&missing["supported"], &missing["enabled"]), (&false.into(), &false.into()));
    let output = world.ok(&["status", "--all"]);
    assert!(output.contains("local_approvals, schedules_by_runs"), "{output}");

    // A person with a token still approves.
    world.ok(&["agent", "add", "eve", "--backend", "builtin", "--tier", "2"]);
    let second = world.start_run(&world.add_daily("out", "eve", "hello"));
    let approval = world.wait_for_approval(&second);
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    let message = world.refused(&approve, "role_too_low", 4);
    assert!(message.contains("approving needs a personal token"), "{message}");
    let (_, token) = world.create_token("otto", "operator");
    assert_eq!(world.code_as(&token, &approve), "ok");

    write(&world, "midwatch.toml", "");
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["warnings"], json!([]), "{reloaded}");
    assert_eq!(add("two"), "ok");
}

/// While runs start all the time, the entry of each reload separates decisions by the old rules from decisions
/// by the new ones.
#[test]
fn no_run_is_decided_by_rules_that_a_recorded_reload_replaced() {
    const RELOADS: usize = 20;
    let world = World::new();
    let daemon = world.up();
    let schedule = add_schedule(&world, &["--backend", "builtin"]);
    let is_finished = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let fire = || {
            while !is_finished.load(std::sync::atomic::Ordering::Relaxed) {
                world.run(&["run", "start", &schedule]);
            }
        };
        let fires = [scope.spawn(fire), scope.spawn(fire)];
        for round in 0..RELOADS {
            write(&world, "policy.toml", &format!("# {round}\n"));
            world.ok(&["config", "reload"]);
        }
        is_finished.store(true, std::sync::atomic::Ordering::Relaxed);
        fires.into_iter().for_each(|it| it.join().unwrap());
    });
    daemon.stop();
    let tail = world.json(&["ledger", "tail", "--limit", "1000"]);
    let (mut policy, mut decided, mut reloads) = (Value::Null, 0, 0);
    for event in tail["events"].as_array().unwrap() {
        match event["kind"].as_str().unwrap() {
            "watch.started" => policy = event["body"]["policy"].clone(),
            "config.reloaded" => {
                policy = event["body"]["policy"].clone();
                reloads += 1;
            }
            "run.started" if policy.is_string() => {
                assert_eq!(event["body"]["ruling"]["policy"], policy, "{event}");
                decided += 1;
            }
            _ => {}
        }
    }
    assert!(0 < reloads && 0 < decided, "{reloads} {decided}");
}
