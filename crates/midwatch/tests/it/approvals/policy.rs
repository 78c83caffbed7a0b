//! Policy: a tier-2 run waits for approval through a crash, starts once when approved, and the ledger records
//! the rules that decided.

use std::fs;
use std::path::Path;

use crate::support::rules::DENY_ADA;
use crate::support::world::World;

/// Appends the id of its run to a file.
const PROGRAM: &str = r#"echo "$MIDWATCH_RUN_ID" >> "$0""#;

#[test]
fn tier_2_run_waits_for_approval_and_starts_once() {
    check_approved_run(&World::new());
}

#[test]
fn tier_2_run_waits_for_approval_on_postgresql() {
    check_approved_run(&World::on_postgres());
}

#[test]
fn approve_says_when_the_run_starts_with_and_without_a_daemon() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let schedule = world.add_daily("news", "ada", "tell them");
    let request_approval = || world.wait_for_approval(&world.start_run(&schedule));
    let output = world.approve(&request_approval());
    assert!(output.contains("its run starts now"), "{output}");
    let run = world.json(&["run", "list"])["runs"][0]["id"].as_str().unwrap().to_owned();
    world.wait_for_state(&run, "done");
    let approval = request_approval();
    daemon.stop();
    let output = world.approve(&approval);
    assert!(output.contains("its run starts once `midwatch up` runs"), "{output}");
}

fn check_approved_run(world: &World) {
    let effects = world.root().join("effects");
    let daemon = world.up();
    let file = effects.to_str().unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2"];
    world.ok(&[&agent[..], &["--", "sh", "-c", PROGRAM, file]].concat());
    let schedule = world.add_daily("news", "ada", "tell them");

    // Nothing starts before the approval, not even after a crash.
    let run = world.start_run(&schedule);
    let waiting = |run: &str| world.wait_for_state(run, "waiting_permission");
    let approval = waiting(&run)["approval_id"].as_str().unwrap().to_owned();
    daemon.kill();
    let daemon = world.up();
    assert_eq!(waiting(&run)["approval_id"], approval.as_str());
    // Another run is not allowed beside it; the refusal names what it waits for.
    let refused = world.run(&["run", "start", &schedule]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for command in [format!("approval show {approval}"), format!("run cancel {run}")] {
        assert!(refused.stderr.contains(&format!("`midwatch {command}`")), "{refused:?}");
    }
    let pending = world.json(&["approval", "show", &approval])["approval"].clone();
    assert_eq!((&pending["state"], &pending["tier"]), (&"pending".into(), &2.into()), "{pending}");
    assert_eq!(pending["plan"]["prompt"], "tell them");
    assert_eq!(pending["plan"]["backend"]["argv"][3], file, "{pending}");
    let status = world.json(&["status"]);
    assert_eq!((&status["runs"]["waiting"], &status["approvals"][0]), (&1.into(), &pending["id"]));
    assert_eq!(effects_in(&effects), Vec::<String>::new());

    // Approved twice, it starts once.
    let short = &pending["plan_hash"].as_str().unwrap()[..7];
    world.refused(&["approval", "approve", &approval, "--plan", short], "invalid_input", 2);
    world.refused(&["approval", "approve", &approval, "--plan", "00000000"], "not_now", 4);
    let hash = pending["plan_hash"].as_str().unwrap();
    let approve = ["approval", "approve", &approval, "--reason", "go", "--plan", &hash[..12]];
    let decided = world.json(&approve);
    assert_eq!(
        (&decided["changed"], &decided["approval"]["state"]),
        (&true.into(), &"approved".into())
    );
    assert_eq!(world.json(&approve)["changed"], false);
    world.wait_for_state(&run, "done");
    assert_eq!(effects_in(&effects), std::slice::from_ref(&run));
    assert_eq!(world.json(&["approval", "show", &approval])["approval"]["state"], "consumed");
    let explained = world.json(&["policy", "explain", "--run", &run]);
    assert_eq!(explained["ruling"]["verdict"], "ask", "{explained}");
    assert_eq!(explained["ruling"]["rules"][0], "@tier-2", "{explained}");
    // The ledger has the request and the facts of the decision, so the decision can be repeated.
    let (request, facts) = (&explained["request"], &explained["facts"]);
    assert_eq!((&request["capability"], &request["tier"]), (&"agent.prompt".into(), &2.into()));
    assert!(request["argv"][0].as_str().unwrap().starts_with('/'), "{explained}");
    assert!(request["path"].as_str().unwrap().starts_with('/'), "{explained}");
    assert_eq!((&facts["lease"], &facts["unattended"]), (&"full".into(), &false.into()));
    assert_eq!(facts["runs_left"], 10_000, "{explained}");
    let again = world.json(&["policy", "explain", "--request", &request.to_string()]);
    assert_eq!(again["ruling"], explained["ruling"]);

    // A denied run does not start, and records why.
    let second = world.start_run(&schedule);
    let approval = waiting(&second)["approval_id"].as_str().unwrap().to_owned();
    world.ok(&["approval", "deny", &approval, "--reason", "not today"]);
    let denied = world.show_run(&second);
    assert_eq!((&denied["state"], &denied["reason"]), (&"cancelled".into(), &"denied".into()));
    world.refused(&["approval", "approve", &approval], "not_now", 4);
    daemon.stop();
    assert_eq!(effects_in(&effects), [run]);
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}

/// A program that runs the command has seen no plan, so it must name the one it means.
#[test]
fn approving_without_a_terminal_needs_the_plan() {
    let world = World::new();
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let run = world.start_run(&world.add_daily("news", "ada", "hello"));
    let approval = world.wait_for_approval(&run);
    let message = world.refused(&["approval", "approve", &approval], "bad_usage", 2);
    assert!(message.contains("--plan"), "{message}");
    let human = world.run(&["approval", "approve", &approval]);
    assert_eq!(human.code, Some(2), "{human:?}");
    assert_eq!(world.json(&["approval", "show", &approval])["approval"]["state"], "pending");
    world.approve(&approval);
    world.wait_for_state(&run, "done");
}

/// A process started by a run has the rights of that run.
#[test]
fn decision_that_comes_too_late_exits_with_an_error() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let run = world.start_run(&world.add_daily("news", "ada", "tell them"));
    let approval = world.wait_for_approval(&run);
    let plan = world.plan_hash(&approval);
    world.ok(&["approval", "deny", &approval]);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    world.refused(&approve, "not_now", 4);
    world.refused(&["approval", "revoke", &approval], "not_now", 4);
    assert_eq!(world.show_run(&run)["state"], "cancelled");
    daemon.stop();
}

#[test]
fn run_cannot_approve_deny_or_revoke() {
    let world = World::new();
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let schedule = world.add_daily("news", "ada", "hello");
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    let plan = world.plan_hash(&approval);
    for verb in [&["approve", "--plan", &plan][..], &["deny"], &["revoke"]] {
        let as_run = [("MIDWATCH_RUN_ID", run.as_str())];
        let command = [&["approval"], verb, &[&approval]].concat();
        let refused = world.json_with(&as_run, &command);
        assert_eq!(refused["error"]["code"], "role_too_low", "{verb:?}: {refused}");
    }
    assert_eq!(world.json(&["approval", "show", &approval])["approval"]["state"], "pending");
}

/// Rules in the data directory apply beside those of the posture; an invalid file stops every command.
#[test]
fn policy_file_is_applied_and_an_invalid_one_refused() {
    let world = World::new();
    world.add_agent("ada");
    let policy = world.data().join("policy.toml");
    fs::write(&policy, DENY_ADA).unwrap();
    assert!(world.ok(&["policy", "check"]).contains("all valid (posture staging"));
    let daemon = world.up();
    let schedule = world.add_daily("news", "ada", "hello");
    let run = world.start_run(&schedule);
    let ended = world.wait_for_state(&run, "cancelled");
    assert_eq!(ended["reason"], "refused", "{ended}");
    let explained = world.json(&["policy", "explain", "--run", &run]);
    assert_eq!(explained["ruling"]["rules"][0], "policy.toml/no-ada", "{explained}");
    daemon.stop();

    fs::remove_file(&policy).unwrap();
    std::os::unix::fs::symlink("nowhere", &policy).unwrap();
    world.refused(&["policy", "check"], "policy_invalid", 2);
    fs::remove_file(&policy).unwrap();
    fs::write(&policy, DENY_ADA.replace("eve", "ada")).unwrap();
    for command in [["policy", "check"], ["agent", "list"]] {
        let message = world.refused(&command, "policy_invalid", 2);
        assert!(message.contains("no-ada"), "{message}");
    }
}

fn effects_in(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}
