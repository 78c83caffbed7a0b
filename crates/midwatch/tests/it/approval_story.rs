//! Standing orders: a run that reaches outside waits for a human through a kill -9, begins once when it
//! is approved, and the log says by which rules.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::world::{World, wait_for};

/// Notes that it took effect.
const PROGRAM: &str = r#"echo "$MIDWATCH_RUN_ID" >> "$0""#;

#[test]
fn a_run_of_tier_2_waits_for_a_human_and_takes_effect_once() {
    story(&World::new());
}

#[test]
fn a_run_of_tier_2_waits_for_a_human_on_postgresql() {
    story(&World::on_postgres());
}

#[test]
fn an_answer_without_a_daemon_says_when_the_run_begins() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "tell them"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let asked = || {
        let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
        wait_for(|| {
            let shown = world.json(&["run", "show", &run])["run"].clone();
            shown["approval_id"].as_str().map(str::to_owned)
        })
    };
    let said = world.ok(&["approval", "approve", &asked()]);
    assert!(said.contains("which begins now"), "{said}");
    wait_for(|| (world.json(&["run", "list"])["runs"][0]["state"] == "done").then_some(()));
    let question = asked();
    assert_eq!(daemon.stop().0, Some(0));
    let said = world.ok(&["approval", "approve", &question]);
    assert!(said.contains("which begins once `midwatch up` keeps the watch"), "{said}");
}

fn story(world: &World) {
    let effects = world.root().join("effects");
    let daemon = world.up();
    let file = effects.to_str().unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2"];
    world.ok(&[&agent[..], &["--", "sh", "-c", PROGRAM, file]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "tell them"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();

    // Nothing happens before a human has looked, not even after a crash.
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let waiting = |run: &str| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == "waiting_permission").then_some(shown)
    };
    let approval = wait_for(|| waiting(&run))["approval_id"].as_str().unwrap().to_owned();
    daemon.kill();
    let daemon = world.up();
    assert_eq!(wait_for(|| waiting(&run))["approval_id"], approval.as_str());
    let asked = world.json(&["approval", "show", &approval])["approval"].clone();
    assert_eq!((&asked["state"], &asked["tier"]), (&"pending".into(), &2.into()), "{asked}");
    assert_eq!(asked["plan"]["prompt"], "tell them");
    assert_eq!(asked["plan"]["backend"]["argv"][3], file, "{asked}");
    let status = world.json(&["status"]);
    assert_eq!((&status["runs"]["waiting"], &status["approvals"][0]), (&1.into(), &asked["id"]));
    assert_eq!(effects_in(&effects), Vec::<String>::new());

    // Approved twice, it takes effect once.
    world.refused(&["approval", "approve", &approval, "--plan", "00"], "not_now", 4);
    let hash = asked["plan_hash"].as_str().unwrap();
    let approve = ["approval", "approve", &approval, "--reason", "go", "--plan", &hash[..12]];
    let decided = world.json(&approve);
    assert_eq!(
        (&decided["changed"], &decided["approval"]["state"]),
        (&true.into(), &"approved".into())
    );
    assert_eq!(world.json(&approve)["changed"], false);
    wait_for(|| (world.json(&["run", "show", &run])["run"]["state"] == "done").then_some(()));
    assert_eq!(effects_in(&effects), std::slice::from_ref(&run));
    assert_eq!(world.json(&["approval", "show", &approval])["approval"]["state"], "consumed");
    let explained = world.json(&["policy", "explain", "--run", &run]);
    assert_eq!(explained["ruling"]["verdict"], "ask", "{explained}");
    assert_eq!(explained["ruling"]["rules"][0], "@tier-2", "{explained}");
    // What they were asked and what was so then can be told, and asked again.
    let (request, facts) = (&explained["request"], &explained["facts"]);
    assert_eq!((&request["capability"], &request["tier"]), (&"agent.prompt".into(), &2.into()));
    assert!(request["argv"][0].as_str().unwrap().starts_with('/'), "{explained}");
    assert!(request["path"].as_str().unwrap().starts_with('/'), "{explained}");
    assert_eq!((&facts["lease"], &facts["unattended"]), (&"full".into(), &false.into()));
    assert_eq!(facts["runs_left"], 10_000, "{explained}");
    let again = world.json(&["policy", "explain", "--request", &request.to_string()]);
    assert_eq!(again["ruling"], explained["ruling"]);

    // What is denied does not happen, and its slot says why.
    let second = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| waiting(&second))["approval_id"].as_str().unwrap().to_owned();
    world.ok(&["approval", "deny", &approval, "--reason", "not today"]);
    let denied = world.json(&["run", "show", &second])["run"].clone();
    assert_eq!((&denied["state"], &denied["reason"]), (&"cancelled".into(), &"denied".into()));
    world.refused(&["approval", "approve", &approval], "not_now", 4);
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(effects_in(&effects), [run]);
    world.verified();
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// A program that a run has started is that run, and a run answers nothing.
#[test]
fn b06_a_run_cannot_answer() {
    let world = World::new();
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        shown["approval_id"].as_str().map(str::to_owned)
    });
    for verb in ["approve", "deny", "revoke"] {
        let mut command = world.command();
        command.args(["--json", "approval", verb, &approval]).env("MIDWATCH_RUN_ID", &run);
        let refused = command.output().unwrap();
        let said: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!(said["error"]["code"], "role_too_low", "{verb}: {said}");
    }
    assert_eq!(world.json(&["approval", "show", &approval])["approval"]["state"], "pending");
}

/// Rules in the data directory hold beside those of the posture, and with a fault nothing starts.
#[test]
fn an_operators_rules_are_obeyed_and_faulty_ones_refused() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let policy = world.data().join("policy.toml");
    let rule = r#"
        [[rule]]
        id = "no-ada"
        deny = ["agent.prompt"]
        agent = ["ada"]
        match = [{ capability = "agent.prompt", agent = "ada" }]
        not_match = [{ capability = "agent.prompt", agent = "eve" }]
    "#;
    fs::write(&policy, rule).unwrap();
    assert!(world.ok(&["policy", "check"]).contains("in order for staging"));
    let daemon = world.up();
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let ended = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        (shown["state"] == "cancelled").then_some(shown)
    });
    assert_eq!(ended["reason"], "refused", "{ended}");
    let explained = world.json(&["policy", "explain", "--run", &run]);
    assert_eq!(explained["ruling"]["rules"][0], "policy.toml/no-ada", "{explained}");
    assert_eq!(daemon.stop().0, Some(0));

    fs::remove_file(&policy).unwrap();
    std::os::unix::fs::symlink("nowhere", &policy).unwrap();
    world.refused(&["policy", "check"], "policy_invalid", 2);
    fs::remove_file(&policy).unwrap();
    fs::write(&policy, rule.replace("eve", "ada")).unwrap();
    for command in [["policy", "check"], ["agent", "list"]] {
        let said = world.refused(&command, "policy_invalid", 2);
        assert!(said.contains("no-ada"), "{said}");
    }
}

fn effects_in(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}
