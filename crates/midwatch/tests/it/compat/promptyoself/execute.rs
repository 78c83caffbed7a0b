//! `execute`: each due prompt is delivered once, by however many processes and attempts.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runtime::{Clock, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{list, ok, refused, run, world};
use crate::support::stand_in::{Act, StandIn, with_status};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, Outcome, World};

/// Flags of a prompt that is sent once, to an agent that is not validated.
const ONCE: [&str; 3] = ["--max-repetitions", "1", "--skip-validation"];

/// A world with an agent that appends each prompt to a file.
fn world_with_scribe() -> (World, PathBuf) {
    let world = world();
    let file = world.root().join("prompts");
    add_scribe(&world, &format!("read prompt; echo \"$prompt\" >> {}", file.display()));
    (world, file)
}

/// A world whose Letta server is this one.
fn world_of(server: &StandIn) -> World {
    let mut world = world();
    world.set("LETTA_BASE_URL", server.url());
    world
}

fn add_scribe(world: &World, script: &str) {
    world.ok(&["agent", "add", "scribe", "--backend", "command", "--", "/bin/sh", "-c", script]);
}

fn written(file: &PathBuf) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Registers a prompt and waits until it is due. Returns its number.
fn register_due(world: &World, prompt: &str, flags: &[&str]) -> Value {
    register_due_for(world, "scribe", prompt, flags)
}

fn register_due_for(world: &World, agent: &str, prompt: &str, flags: &[&str]) -> Value {
    let register = ["register", "--agent-id", agent, "--prompt", prompt, "--every", "1s"];
    let id = ok(world, &[&register, flags].concat())["id"].clone();
    let schedules = world.json(&["schedule", "list"])["schedules"].clone();
    let name = format!("promptyoself {id}: 1s");
    let ours = schedules.as_array().unwrap().iter().find(|it| it["name"] == *name).unwrap();
    let next = calendar::parse_instant(ours["next_run_at"].as_str().unwrap(), None).unwrap();
    wait_until(|| next <= SystemClock.now().as_micros());
    id
}

fn spawn_execute(world: &World, flags: &[&str]) -> Child {
    let mut command: Command = world.command();
    command.args(["promptyoself", "execute"]).args(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for_exit(child: Child) -> (Option<i32>, Vec<Value>) {
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    let lines = serde_json::Deserializer::from_str(&outcome.stdout).into_iter();
    let documents = lines.collect::<Result<_, _>>();
    (outcome.code, documents.unwrap_or_else(|error| panic!("{error}: {outcome:?}")))
}

fn terminate(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// An agent may not run the daemon's loops, so `execute` fails at once and names what to start.
#[test]
fn execute_with_an_agent_token_and_no_daemon_fails_at_once() {
    let (mut world, file) = world_with_scribe();
    register_due(&world, "hello", &["--max-repetitions", "1"]);
    let (_, secret) = world.create_token("scribe", "runner");
    world.set("MIDWATCH_TOKEN", secret);
    for flags in [&["execute"][..], &["execute", "--loop"]] {
        let (code, document) = run(&world, flags);
        assert_eq!((code, &document["code"]), (Some(1), &json!("unsafe_setup")), "{document}");
        assert!(document["error"].as_str().unwrap().contains("no daemon is running"));
        assert!(document["hint"].as_str().unwrap().contains("`midwatch up`"), "{document}");
    }
    assert!(written(&file).is_empty());
    // With a daemon, `execute` reports the agent's own prompts.
    let daemon = Daemon::start(world.command().arg("up").env_remove("MIDWATCH_TOKEN"));
    ok(&world, &["execute"]);
    assert_eq!(written(&file), ["hello"]);
    daemon.stop();
}

/// The agent was not registered before, the server is slow, and two processes deliver.
#[test]
fn prompt_to_letta_is_sent_once_by_two_processes() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(300))]);
    let world = world_of(&server);
    register_due_for(&world, "agent-123", "hello", &ONCE);
    let both = [spawn_execute(&world, &[]), spawn_execute(&world, &[])];
    let codes = both.map(|child| wait_for_exit(child).0);
    assert_eq!(codes, [Some(0); 2]);
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
    let runs = world.json(&["run", "list"])["runs"].clone();
    assert_eq!((runs.as_array().unwrap().len(), &runs[0]["state"]), (1, &json!("done")), "{runs}");
    world.verified();
}

#[test]
fn due_prompt_is_delivered_and_reported() {
    let (world, file) = world_with_scribe();
    let none = ok(&world, &["execute"]);
    assert_eq!(none, json!({"status": "success", "executed": [], "message": "0 prompts executed"}));
    let id = register_due(&world, "hello", &["--max-repetitions", "1"]);
    let executed = ok(&world, &["execute"]);
    let expected = json!({
        "status": "success",
        "executed": [{
            "id": id, "agent_id": "scribe", "delivered": true, "next_run": null,
            "repetition_count": 1, "max_repetitions": 1, "completed": true,
        }],
        "message": "1 prompts executed",
    });
    assert_eq!(executed, expected);
    assert_eq!(written(&file), ["hello"]);
    assert_eq!(list(&world, &[]).len(), 0);
    assert_eq!(list(&world, &["--all"])[0]["repetition_count"], 1);
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    // A freeze is an error, not a reason to wait.
    register_due(&world, "later", &["--max-repetitions", "1"]);
    world.ok(&["freeze"]);
    assert!(refused(&world, &["execute"]).contains("frozen"));
    world.ok(&["thaw"]);
    assert_eq!(ok(&world, &["execute"])["executed"][0]["delivered"], true);
    assert_eq!(written(&file), ["hello", "later"]);
    world.verified();
}

#[test]
fn concurrent_processes_deliver_each_prompt_once() {
    let (world, file) = world_with_scribe();
    for _ in 0..3 {
        fs::write(&file, "").unwrap();
        register_due(&world, "one", &["--max-repetitions", "1"]);
        register_due(&world, "two", &["--max-repetitions", "1"]);
        let children: Vec<Child> = (0..4).map(|_| spawn_execute(&world, &[])).collect();
        let ends: Vec<_> = children.into_iter().map(wait_for_exit).collect();
        for (code, documents) in &ends {
            assert_eq!((*code, documents.len()), (Some(0), 1), "{documents:?}");
        }
        let mut prompts = written(&file);
        prompts.sort();
        assert_eq!(prompts, ["one", "two"], "{ends:?}");
    }
    world.verified();
}

#[test]
fn daemon_delivers_where_one_is_running() {
    let (world, file) = world_with_scribe();
    register_due(&world, "hello", &["--max-repetitions", "1"]);
    let daemon = world.up();
    ok(&world, &["execute"]);
    wait_until(|| !written(&file).is_empty());
    assert_eq!(written(&file), ["hello"]);
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    daemon.stop();
    assert_eq!(written(&file), ["hello"]);
}

/// `execute` does not wait for an hour; its report names the time of the next attempt.
#[test]
fn long_retry_after_does_not_block_execute() {
    let busy = with_status(429, "retry-after: 3600\r\n", "later");
    let server = StandIn::new([Act::Raw(busy)]);
    let world = world_of(&server);
    register_due_for(&world, "agent-123", "hello", &ONCE);
    for _ in 0..2 {
        let executed = ok(&world, &["execute"])["executed"].clone();
        assert_eq!(executed[0]["delivered"], false, "{executed}");
        let error = executed[0]["error"].as_str().unwrap();
        assert!(error.contains("429") && error.contains("next attempt at 20"), "{error}");
    }
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
}

/// A prompt that cannot be delivered is reported, not retried, and does not stop the others.
#[test]
fn undeliverable_prompt_is_reported_and_the_rest_delivered() {
    let (world, file) = world_with_scribe();
    let fail = ["agent", "add", "broken", "--backend", "command", "--", "/no/such/program"];
    world.ok(&fail);
    let register = ["register", "--agent-id", "broken", "--prompt", "p", "--every", "1s"];
    let broken = ok(&world, &[&register[..], &["--max-repetitions", "1"]].concat())["id"].clone();
    register_due(&world, "hello", &["--max-repetitions", "1"]);
    let executed = ok(&world, &["execute"])["executed"].as_array().unwrap().clone();
    assert_eq!(written(&file), ["hello"]);
    let failed = executed.iter().find(|item| item["id"] == broken).unwrap();
    assert_eq!((&failed["delivered"], &failed["next_run"]), (&json!(false), &json!(null)));
    assert!(failed["error"].as_str().is_some_and(|text| !text.is_empty()), "{failed}");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
}

/// The outcome of an interrupted delivery is unknown, so the prompt is not sent again.
#[test]
fn crash_during_a_delivery_sends_nothing_twice() {
    let world = world();
    let file = world.root().join("prompts");
    add_scribe(&world, &format!("read prompt; echo \"$prompt\" >> {}; sleep 60", file.display()));
    let id = register_due(&world, "hello", &["--max-repetitions", "1"]);
    let mut child = spawn_execute(&world, &[]);
    wait_until(|| !written(&file).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let executed = ok(&world, &["execute"])["executed"].clone();
    assert_eq!((&executed[0]["id"], &executed[0]["delivered"]), (&id, &json!(false)), "{executed}");
    assert_eq!(executed.as_array().unwrap().len(), 1);
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(written(&file), ["hello"]);
    assert_eq!(world.json(&["status"])["unknown"].as_array().unwrap().len(), 1);
}

/// Two processes and a daemon deliver and are killed while they do.
#[test]
fn prompts_are_sent_at_most_once_when_every_process_is_killed() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(300))]);
    let world = world_of(&server);
    let prompts: Vec<String> = (0..9).map(|number| format!("prompt {number}.")).collect();
    for (prompt, agent) in prompts.iter().zip(["agent-1", "agent-2", "agent-3"].iter().cycle()) {
        register_due_for(&world, agent, prompt, &ONCE);
    }
    let wait_for_sent = |at_least: usize| wait_until(|| at_least <= server.count("/messages"));
    let mut executors = [spawn_execute(&world, &[]), spawn_execute(&world, &[])];
    wait_for_sent(1);
    for executor in &mut executors {
        executor.kill().unwrap();
        executor.wait().unwrap();
    }
    let daemon = world.up();
    wait_for_sent(4);
    daemon.kill();
    ok(&world, &["execute"]);
    let runs = world.json(&["run", "list", "--limit", "100"])["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), prompts.len(), "{runs}");
    let requests = server.asked();
    for run in runs.as_array().unwrap() {
        let schedule = world.json(&["schedule", "show", run["schedule_id"].as_str().unwrap()]);
        let prompt = schedule["schedule"]["action"]["prompt"].as_str().unwrap().to_owned();
        let count = requests.iter().filter(|request| request.body.contains(&prompt)).count();
        match run["state"].as_str().unwrap() {
            "done" => assert_eq!(count, 1, "{run}"),
            "unknown" => assert!(count <= 1, "{count} {run}"),
            other => panic!("{other}: {run}"),
        }
    }
    world.verified();
}

/// The prompts of others are delivered, and not shown.
#[test]
fn self_only_agent_sees_no_prompts_of_others() {
    let (mut world, file) = world_with_scribe();
    register_due(&world, "hello", &["--max-repetitions", "1"]);
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    world.set("LETTA_AGENT_ID", "agent-1");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(written(&file), ["hello"]);
}

/// The loop does not wait for the response; the outcome of its prompt is unknown.
#[test]
fn loop_stops_while_a_server_hangs() {
    let server = StandIn::new([Act::Hang]);
    let world = world_of(&server);
    let child = spawn_execute(&world, &["--loop", "--interval", "1"]);
    wait_until(|| world.socket().exists());
    let register = ["register", "--agent-id", "agent-123", "--prompt", "tick", "--every", "1s"];
    ok(&world, &[&register[..], &ONCE].concat());
    wait_until(|| server.count("/messages") == 1);
    terminate(&child);
    let (code, documents) = wait_for_exit(child);
    assert_eq!((code, documents.len()), (Some(0), 1), "{documents:?}");
    assert_eq!(world.json(&["status"])["unknown"].as_array().unwrap().len(), 1, "{documents:?}");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(server.count("/messages"), 1);
}

#[test]
fn loop_delivers_until_stopped_and_prints_a_report() {
    let (world, file) = world_with_scribe();
    let child = spawn_execute(&world, &["--loop", "--interval", "1"]);
    wait_until(|| world.socket().exists());
    // A second loop and other commands work at the same time, and nothing is sent twice.
    let second = spawn_execute(&world, &["--loop", "--report"]);
    let register = ["register", "--agent-id", "scribe", "--prompt", "tick", "--every", "1s"];
    ok(&world, &[&register[..], &["--max-repetitions", "2"]].concat());
    wait_until(|| list(&world, &[]).is_empty());
    wait_until(|| written(&file).len() == 2);
    terminate(&child);
    let (code, documents) = wait_for_exit(child);
    assert_eq!((code, documents.len()), (Some(0), 1), "{documents:?}");
    assert_eq!(documents[0]["message"], "2 prompts executed");
    assert_eq!(documents[0]["executed"][1]["completed"], true);
    terminate(&second);
    assert_eq!(wait_for_exit(second).0, Some(0));
    assert_eq!(written(&file), ["tick", "tick"]);
    let (code, _) = run(&world, &["list"]);
    assert_eq!(code, Some(0));
}
