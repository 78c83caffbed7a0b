//! Configuration and rules that are read again while the daemon runs: all of it or nothing, and the log
//! says from where on it holds.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::{Daemon, World, wait_for};

const NO_ADA: &str = r#"
    [[rule]]
    id = "no-ada"
    deny = ["agent.prompt"]
    agent = ["ada"]
    match = [{ capability = "agent.prompt", agent = "ada" }]
    not_match = [{ capability = "agent.prompt", agent = "eve" }]
"#;

fn write(world: &World, file: &str, text: &str) {
    fs::write(world.data().join(file), text).unwrap();
}

/// A schedule that prompts `ada`, who is there from now on.
fn schedule(world: &World, agent: &[&str]) -> String {
    world.ok(&[&["agent", "add", "ada"], agent].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let what = [&what[..], &["--per-day", "100000", "--overlap", "allow:100"]].concat();
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    added["schedule"]["id"].as_str().unwrap().to_owned()
}

/// How a run of it ends.
fn run(world: &World, schedule: &str) -> (String, String) {
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        let text = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
        ["done", "cancelled"].contains(&&*text("state")).then(|| (text("state"), text("reason")))
    })
}

fn ended(state: &str, reason: &str) -> (String, String) {
    (state.to_owned(), reason.to_owned())
}

/// The events of a kind, the oldest first.
fn events(world: &World, kind: &str) -> Vec<Value> {
    let tail = world.json(&["ledger", "tail", "--limit", "1000"]);
    let events = tail["events"].as_array().unwrap().clone();
    events.into_iter().filter(|it| it["kind"] == kind).collect()
}

/// Nobody waits for the other end of a pipe, and a reload that found one is over.
#[test]
fn a_pipe_in_the_place_of_the_rules_is_refused_at_once() {
    let world = World::new();
    let daemon = world.up();
    let (policy, mode) = (world.data().join("policy.toml"), Mode::RUSR | Mode::WUSR);
    mknodat(CWD, &policy, FileType::Fifo, mode, 0).unwrap();
    for command in [["config", "reload"], ["policy", "check"]] {
        let said = world.refused(&command, "policy_invalid", 2);
        assert!(said.contains("it is not an ordinary file"), "{said}");
    }
    fs::remove_file(&policy).unwrap();
    assert!(world.json(&["config", "reload"])["reloaded"].is_object());
    assert_eq!(daemon.stop().0, Some(0));
}

#[test]
fn a_reload_puts_rules_and_configuration_in_force_together_or_not_at_all() {
    let world = World::new();
    let daemon = world.up();
    let schedule = schedule(&world, &["--backend", "builtin"]);
    let (done, refused) = (ended("done", ""), ended("cancelled", "refused"));
    assert_eq!(run(&world, &schedule), done);

    // Nothing holds before it is said to.
    write(&world, "policy.toml", NO_ADA);
    assert_eq!(run(&world, &schedule), done);
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["changed"], json!(["policy.toml"]), "{reloaded}");
    assert_eq!(reloaded["waiting"], json!([]), "{reloaded}");
    assert_eq!(run(&world, &schedule), refused);
    assert_eq!(world.json(&["status"])["watch"]["policy"], reloaded["policy"]);
    let event = events(&world, "config.reloaded").remove(0);
    assert_eq!(event["body"]["policy"], reloaded["policy"], "{event}");
    assert_eq!(event["body"]["config_hash"], reloaded["config_hash"], "{event}");

    // With a fault in one file, the good one beside it is not taken up either.
    write(&world, "policy.toml", &NO_ADA.replace("eve", "ada"));
    let said = world.refused(&["config", "reload"], "policy_invalid", 2);
    assert!(said.contains("no-ada"), "{said}");
    fs::remove_file(world.data().join("policy.toml")).unwrap();
    write(&world, "midwatch.toml", "[budget]\nruns = 7\n\n[lease]\nask_after = \"soon\"\n");
    let said = world.refused(&["config", "reload"], "config_invalid", 2);
    assert!(said.contains("midwatch.toml:5:13"), "{said}");
    let codes: Vec<Value> =
        events(&world, "config.refused").iter().map(|it| it["body"]["code"].clone()).collect();
    assert_eq!(codes, ["policy_invalid", "config_invalid"]);
    assert_eq!(run(&world, &schedule), refused);
    let status = world.json(&["status"]);
    assert_eq!(status["watch"]["policy"], reloaded["policy"]);
    assert_eq!(status["budget"]["runs_max"], 50_000);

    // What needs a restart is named and stays as it was.
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
    assert!(again.contains("everything is as it was"), "{again}");
    assert!(again.contains("`posture`, `log.level` waits for a restart"), "{again}");

    // What others can write is nobody's orders.
    write(&world, "policy.toml", NO_ADA);
    let path = world.data().join("policy.toml");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o622);
    fs::set_permissions(&path, open).unwrap();
    let said = world.refused(&["config", "reload"], "unsafe_setup", 4);
    assert!(said.contains("`files`") && said.contains("chmod go-w"), "{said}");
    assert_eq!(run(&world, &schedule), done);
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// The daemon has an environment of its own, which counts for it and for nobody else.
#[test]
fn what_the_daemon_goes_by_otherwise_is_told() {
    let world = World::new();
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
    assert!(page.contains("The daemon goes by other values:"), "{page}");
    // Files that nobody has read again are told of as well.
    let file = "[budget]\nruns = 7\n\n[feature_flags]\ntoken_files = false\n";
    write(&world, "midwatch.toml", file);
    let shown = world.json(&["config", "show"])["daemon"].clone();
    let keys: Vec<&str> =
        shown.as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["budget.runs", key]);
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(world.json(&["config", "show"]).get("daemon"), None);
}

fn hang_up(daemon: &Daemon) {
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
}

#[test]
fn a_hangup_reloads_and_a_faulty_file_changes_nothing() {
    let world = World::new();
    let daemon = world.up();
    let schedule = schedule(&world, &["--backend", "builtin"]);
    write(&world, "policy.toml", NO_ADA);
    hang_up(&daemon);
    let reloaded = wait_for(|| events(&world, "config.reloaded").pop());
    assert_eq!(reloaded["actor"], "midwatch", "{reloaded}");
    assert_eq!(run(&world, &schedule), ended("cancelled", "refused"));
    write(&world, "policy.toml", "[[rule]]\n");
    hang_up(&daemon);
    let refused = wait_for(|| events(&world, "config.refused").pop());
    assert_eq!(refused["body"]["code"], "policy_invalid", "{refused}");
    assert!(refused["words"]["reason"].as_str().unwrap().contains("policy.toml:1"), "{refused}");
    assert_eq!(run(&world, &schedule), ended("cancelled", "refused"));
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("what was in force stays so"), "{said}");
}

/// As with a restart: an answer is to a question under the rules that held then.
#[test]
fn an_approval_under_the_old_rules_begins_nothing_under_the_new() {
    let world = World::new();
    let _daemon = world.up();
    let schedule = schedule(&world, &["--backend", "builtin", "--tier", "2"]);
    let run = world.json(&["run", "start", &schedule])["run"]["id"].as_str().unwrap().to_owned();
    let shown = || world.json(&["run", "show", &run])["run"].clone();
    let approval = wait_for(|| shown()["approval_id"].as_str().map(str::to_owned));
    write(&world, "policy.toml", &NO_ADA.replace("\"ada\"", "\"bob\""));
    world.ok(&["config", "reload"]);
    let said = world.refused(&["approval", "approve", &approval], "not_now", 4);
    assert!(said.contains("under other rules") && said.contains("midwatch run retry"), "{said}");
    assert_eq!(shown()["state"], "waiting_permission");
    world.ok(&["approval", "deny", &approval]);
    let ended = wait_for(|| (shown()["state"] == "cancelled").then(shown));
    assert_eq!(ended["reason"], "denied", "{ended}");
    world.ok(&["run", "retry", &run]);
    let second = wait_for(|| {
        let asked = shown()["approval_id"].as_str().map(str::to_owned);
        asked.filter(|asked| *asked != approval)
    });
    world.ok(&["approval", "approve", &second]);
    wait_for(|| (shown()["state"] == "done").then_some(()));
}

#[test]
fn only_a_maintainer_reloads_and_only_a_daemon() {
    let world = World::new();
    world.refused(&["config", "reload"], "not_found", 3);
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    world.refused(&["config", "reload"], "not_now", 4);
    let create = ["token", "create", "--name", "otto", "--role", "operator"];
    let token = world.json(&create)["token"]["secret"].as_str().unwrap().to_owned();
    let _daemon = world.up();
    let mut command = world.command();
    command.args(["--json", "config", "reload"]).env("MIDWATCH_TOKEN", token);
    let refused: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(refused["error"]["code"], "role_too_low", "{refused}");
    assert_eq!(events(&world, "config.reloaded").len(), 0);
}

fn capability(world: &World, name: &str) -> Value {
    let document = world.json(&["status", "--capabilities"]);
    let all = document["capabilities"].as_array().unwrap().clone();
    all.into_iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{document}"))
}

#[test]
fn flags_are_switched_while_the_watch_is_kept() {
    let world = World::new();
    let _daemon = world.up();
    let schedule = schedule(&world, &["--backend", "command", "--", "sleep", "1000"]);
    let run = world.json(&["run", "start", &schedule])["run"]["id"].as_str().unwrap().to_owned();
    let state = || world.json(&["run", "show", &run])["run"]["state"].clone();
    wait_for(|| (state() == "running").then_some(()));
    // What the program of the run would do.
    let add = |name: &str| {
        let what = ["--daily", "04:00", "--tz", "UTC", "--agent", "ada", "--prompt", "more"];
        let mut command = world.command();
        command.args(["--json", "schedule", "add", "--name", name]).args(what);
        let said = command.env("MIDWATCH_RUN_ID", &run).output().unwrap();
        let said: Value = serde_json::from_slice(&said.stdout).unwrap();
        said["error"]["code"].as_str().unwrap_or("ok").to_owned()
    };
    assert_eq!(add("one"), "ok");
    assert_eq!(capability(&world, "schedules_by_runs")["enabled"], true);

    let flags = "[feature_flags]\nschedules_by_runs = false\nlocal_approvals = false\n";
    write(&world, "midwatch.toml", flags);
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    let changed = ["feature_flags.local_approvals", "feature_flags.schedules_by_runs"];
    assert_eq!(reloaded["changed"], json!(changed), "{reloaded}");
    assert_eq!(reloaded["warnings"][0]["check"], "approvers", "{reloaded}");
    assert_eq!(add("two"), "switched_off");
    let off = capability(&world, "schedules_by_runs");
    assert_eq!((&off["supported"], &off["enabled"]), (&true.into(), &false.into()), "{off}");
    assert!(off["why"].as_str().unwrap().contains("feature_flags.schedules_by_runs"), "{off}");
    let files = capability(&world, "token_files");
    assert!(files["why"].as_str().unwrap().contains("feature_flags.local_approvals"), "{files}");
    let missing = capability(&world, "agent.mcp");
    assert_eq!((&missing["supported"], &missing["enabled"]), (&false.into(), &false.into()));
    let said = world.ok(&["status"]);
    assert!(said.contains("local_approvals, token_files, schedules_by_runs"), "{said}");

    // A person with a token still approves.
    world.ok(&["agent", "add", "eve", "--backend", "builtin", "--tier", "2"]);
    let what = ["--daily", "05:00", "--tz", "UTC", "--agent", "eve", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "out"], &what[..]].concat());
    let outside = added["schedule"]["id"].as_str().unwrap();
    let second = world.json(&["run", "start", outside])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &second])["run"].clone();
        shown["approval_id"].as_str().map(str::to_owned)
    });
    let said = world.refused(&["approval", "approve", &approval], "role_too_low", 4);
    assert!(said.contains("a token of their own"), "{said}");
    let create = ["token", "create", "--name", "otto", "--role", "operator"];
    let token = world.json(&create)["token"]["secret"].as_str().unwrap().to_owned();
    let mut command = world.command();
    command.args(["approval", "approve", &approval]).env("MIDWATCH_TOKEN", token);
    assert!(command.output().unwrap().status.success());

    write(&world, "midwatch.toml", "");
    let reloaded = world.json(&["config", "reload"])["reloaded"].clone();
    assert_eq!(reloaded["warnings"], json!([]), "{reloaded}");
    assert_eq!(add("two"), "ok");
}

/// While runs begin all the time, the entry of each reload divides what was judged by the old rules from
/// what was judged by the new.
#[test]
fn no_run_is_judged_by_rules_that_the_log_says_are_over() {
    const RELOADS: usize = 20;
    let world = World::new();
    let daemon = world.up();
    let schedule = schedule(&world, &["--backend", "builtin"]);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let fire = || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                world.run(&["run", "start", &schedule]);
            }
        };
        let fires = [scope.spawn(fire), scope.spawn(fire)];
        for round in 0..RELOADS {
            write(&world, "policy.toml", &format!("# {round}\n"));
            world.ok(&["config", "reload"]);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        fires.into_iter().for_each(|it| it.join().unwrap());
    });
    assert_eq!(daemon.stop().0, Some(0));
    let tail = world.json(&["ledger", "tail", "--limit", "1000"]);
    let (mut policy, mut judged, mut reloads) = (Value::Null, 0, 0);
    for event in tail["events"].as_array().unwrap() {
        match event["kind"].as_str().unwrap() {
            "watch.started" => policy = event["body"]["policy"].clone(),
            "config.reloaded" => {
                policy = event["body"]["policy"].clone();
                reloads += 1;
            }
            "run.started" if policy.is_string() => {
                assert_eq!(event["body"]["ruling"]["policy"], policy, "{event}");
                judged += 1;
            }
            _ => {}
        }
    }
    assert!(0 < reloads && 0 < judged, "{reloads} {judged}");
}
