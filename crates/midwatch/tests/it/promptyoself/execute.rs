//! `execute`: what is due is delivered once, whoever asks for it and however often.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runtime::{Clock, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{list, ok, refused, run, world};
use crate::stand_in::{Act, StandIn, with_status};
use crate::world::{Daemon, Outcome, World, wait_for};

/// A world with an agent that writes each of its prompts into a file, one on a line.
fn with_scribe() -> (World, PathBuf) {
    let world = world();
    let file = world.root().join("prompts");
    let script = format!("read prompt; echo \"$prompt\" >> {}", file.display());
    let add = ["agent", "add", "scribe", "--backend", "command", "--", "/bin/sh", "-c", &script];
    world.ok(&add);
    (world, file)
}

fn written(file: &PathBuf) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// A prompt that is due right away.
fn due(world: &World, prompt: &str, flags: &[&str]) -> Value {
    due_for(world, "scribe", prompt, flags)
}

fn due_for(world: &World, agent: &str, prompt: &str, flags: &[&str]) -> Value {
    let register = ["register", "--agent-id", agent, "--prompt", prompt, "--every", "1s"];
    let id = ok(world, &[&register, flags].concat())["id"].clone();
    wait_for(|| {
        let schedules = world.json(&["schedule", "list"])["schedules"].clone();
        let name = format!("promptyoself {id}: 1s");
        let ours = schedules.as_array().unwrap().iter().find(|it| it["name"] == *name)?.clone();
        let next = calendar::parse_instant(ours["next_run_at"].as_str()?, None).unwrap();
        (next <= SystemClock.now().as_micros()).then_some(())
    });
    id
}

fn start(world: &World, flags: &[&str]) -> Child {
    let mut command: Command = world.command();
    command.args(["promptyoself", "execute"]).args(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> (Option<i32>, Vec<Value>) {
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    let lines = serde_json::Deserializer::from_str(&outcome.stdout).into_iter();
    let documents = lines.collect::<Result<_, _>>();
    (outcome.code, documents.unwrap_or_else(|error| panic!("{error}: {outcome:?}")))
}

fn terminate(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
}

/// Whoever has the token of an agent keeps no watch; that is said at once, and who has to.
#[test]
fn with_the_token_of_an_agent_and_no_daemon_nobody_is_kept_waiting() {
    let (mut world, file) = with_scribe();
    due(&world, "hello", &["--max-repetitions", "1"]);
    let token = ["token", "create", "--name", "scribe", "--role", "runner"];
    let secret = world.json(&token)["token"]["secret"].as_str().unwrap().to_owned();
    world.set("MIDWATCH_TOKEN", secret);
    for flags in [&["execute"][..], &["execute", "--loop"]] {
        let (code, document) = run(&world, flags);
        assert_eq!((code, &document["code"]), (Some(1), &json!("unsafe_setup")), "{document}");
        assert!(document["error"].as_str().unwrap().contains("no daemon keeps the watch"));
        assert!(document["hint"].as_str().unwrap().contains("`midwatch up`"), "{document}");
    }
    assert!(written(&file).is_empty());
    // With one, it is told what became of its own.
    let daemon = Daemon::start(world.command().arg("up").env_remove("MIDWATCH_TOKEN"));
    ok(&world, &["execute"]);
    assert_eq!(written(&file), ["hello"]);
    daemon.stop();
}

/// Nobody has registered the agent beforehand; the server is slow, and two want it delivered.
#[test]
fn a_prompt_to_letta_is_sent_once() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(300))]);
    let mut world = world();
    world.set("LETTA_BASE_URL", server.url());
    due_for(&world, "agent-123", "hello", &["--max-repetitions", "1", "--skip-validation"]);
    let both = [start(&world, &[]), start(&world, &[])];
    let codes = both.map(|child| end(child).0);
    assert_eq!(codes, [Some(0); 2]);
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
    let runs = world.json(&["run", "list"])["runs"].clone();
    assert_eq!((runs.as_array().unwrap().len(), &runs[0]["state"]), (1, &json!("done")), "{runs}");
    world.verified();
}

#[test]
fn what_is_due_is_delivered_and_reported() {
    let (world, file) = with_scribe();
    let none = ok(&world, &["execute"]);
    assert_eq!(none, json!({"status": "success", "executed": [], "message": "0 prompts executed"}));
    let id = due(&world, "hello", &["--max-repetitions", "1"]);
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
    // Somebody who was frozen is not kept waiting.
    due(&world, "later", &["--max-repetitions", "1"]);
    world.ok(&["freeze"]);
    assert!(refused(&world, &["execute"]).contains("frozen"));
    world.ok(&["thaw"]);
    assert_eq!(ok(&world, &["execute"])["executed"][0]["delivered"], true);
    assert_eq!(written(&file), ["hello", "later"]);
    world.verified();
}

#[test]
fn two_at_once_deliver_each_prompt_once() {
    let (world, file) = with_scribe();
    for _ in 0..3 {
        fs::write(&file, "").unwrap();
        due(&world, "one", &["--max-repetitions", "1"]);
        due(&world, "two", &["--max-repetitions", "1"]);
        let children: Vec<Child> = (0..4).map(|_| start(&world, &[])).collect();
        let ends: Vec<_> = children.into_iter().map(end).collect();
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
fn with_a_daemon_the_daemon_delivers() {
    let (world, file) = with_scribe();
    due(&world, "hello", &["--max-repetitions", "1"]);
    let daemon = world.up();
    ok(&world, &["execute"]);
    assert_eq!(wait_for(|| Some(written(&file)).filter(|it| !it.is_empty())), ["hello"]);
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    daemon.stop();
    assert_eq!(written(&file), ["hello"]);
}

/// Whoever is told to come back in an hour is not waited for, and the report says when it is tried again.
#[test]
fn a_server_that_wants_a_long_pause_holds_nobody_up() {
    let busy = with_status(429, "retry-after: 3600\r\n", "later");
    let server = StandIn::new([Act::Raw(busy)]);
    let mut world = world();
    world.set("LETTA_BASE_URL", server.url());
    due_for(&world, "agent-123", "hello", &["--max-repetitions", "1", "--skip-validation"]);
    for _ in 0..2 {
        let executed = ok(&world, &["execute"])["executed"].clone();
        assert_eq!(executed[0]["delivered"], false, "{executed}");
        let error = executed[0]["error"].as_str().unwrap();
        assert!(error.contains("429") && error.contains("it is tried again at 20"), "{error}");
    }
    assert_eq!(server.count("/messages"), 1, "{:?}", server.asked());
}

/// No server of Letta listens there: what cannot be delivered is told, tried no more, and stops nothing.
#[test]
fn what_cannot_be_delivered_is_told_and_the_rest_goes_on() {
    let (world, file) = with_scribe();
    let fail = ["agent", "add", "broken", "--backend", "command", "--", "/no/such/program"];
    world.ok(&fail);
    let register = ["register", "--agent-id", "broken", "--prompt", "p", "--every", "1s"];
    let broken = ok(&world, &[&register[..], &["--max-repetitions", "1"]].concat())["id"].clone();
    due(&world, "hello", &["--max-repetitions", "1"]);
    let executed = ok(&world, &["execute"])["executed"].as_array().unwrap().clone();
    assert_eq!(written(&file), ["hello"]);
    let failed = executed.iter().find(|item| item["id"] == broken).unwrap();
    assert_eq!((&failed["delivered"], &failed["next_run"]), (&json!(false), &json!(null)));
    assert!(failed["error"].as_str().is_some_and(|text| !text.is_empty()), "{failed}");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
}

/// Nobody knows whether what was cut off has arrived, so it is not sent again.
#[test]
fn a_crash_in_the_middle_of_a_delivery_sends_nothing_twice() {
    let world = world();
    let file = world.root().join("prompts");
    let script = format!("read prompt; echo \"$prompt\" >> {}; sleep 60", file.display());
    let add = ["agent", "add", "scribe", "--backend", "command", "--", "/bin/sh", "-c", &script];
    world.ok(&add);
    let id = due(&world, "hello", &["--max-repetitions", "1"]);
    let mut child = start(&world, &[]);
    wait_for(|| (!written(&file).is_empty()).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let executed = ok(&world, &["execute"])["executed"].clone();
    assert_eq!((&executed[0]["id"], &executed[0]["delivered"]), (&id, &json!(false)), "{executed}");
    assert_eq!(executed.as_array().unwrap().len(), 1);
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(written(&file), ["hello"]);
    assert_eq!(world.json(&["status"])["unknown"].as_array().unwrap().len(), 1);
}

/// Two of them and a daemon want to deliver, and whoever does is killed: nothing is sent twice.
#[test]
fn each_prompt_is_sent_once_whoever_is_killed() {
    let server = StandIn::new([Act::Slow(Duration::from_millis(300))]);
    let mut world = world();
    world.set("LETTA_BASE_URL", server.url());
    let prompts: Vec<String> = (0..9).map(|number| format!("prompt {number}.")).collect();
    for (prompt, agent) in prompts.iter().zip(["agent-1", "agent-2", "agent-3"].iter().cycle()) {
        due_for(&world, agent, prompt, &["--max-repetitions", "1", "--skip-validation"]);
    }
    let sent = |at_least: usize| {
        wait_for(|| (at_least <= server.count("/messages")).then_some(()));
    };
    let mut executors = [start(&world, &[]), start(&world, &[])];
    sent(1);
    for executor in &mut executors {
        executor.kill().unwrap();
        executor.wait().unwrap();
    }
    let daemon = world.up();
    sent(4);
    daemon.kill();
    ok(&world, &["execute"]);
    let runs = world.json(&["run", "list", "--limit", "100"])["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), prompts.len(), "{runs}");
    let asked = server.asked();
    for run in runs.as_array().unwrap() {
        let schedule = world.json(&["schedule", "show", run["schedule_id"].as_str().unwrap()]);
        let prompt = schedule["schedule"]["action"]["prompt"].as_str().unwrap().to_owned();
        let count = asked.iter().filter(|asked| asked.body.contains(&prompt)).count();
        match run["state"].as_str().unwrap() {
            "done" => assert_eq!(count, 1, "{run}"),
            "unknown" => assert!(count <= 1, "{count} {run}"),
            other => panic!("{other}: {run}"),
        }
    }
    world.verified();
}

/// What others were told is delivered, and not shown.
#[test]
fn who_is_held_to_itself_reads_nothing_of_others() {
    let (mut world, file) = with_scribe();
    due(&world, "hello", &["--max-repetitions", "1"]);
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    world.set("LETTA_AGENT_ID", "agent-1");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(written(&file), ["hello"]);
}

/// It does not wait for a server that does not answer, and what became of its prompt is for a human.
#[test]
fn a_loop_that_is_told_to_stop_leaves_a_server_that_hangs() {
    let server = StandIn::new([Act::Hang]);
    let mut world = world();
    world.set("LETTA_BASE_URL", server.url());
    let child = start(&world, &["--loop", "--interval", "1"]);
    wait_for(|| world.data().join("midwatch.sock").exists().then_some(()));
    let register = ["register", "--agent-id", "agent-123", "--prompt", "tick", "--every", "1s"];
    ok(&world, &[&register[..], &["--max-repetitions", "1", "--skip-validation"]].concat());
    wait_for(|| (server.count("/messages") == 1).then_some(()));
    terminate(&child);
    let (code, documents) = end(child);
    assert_eq!((code, documents.len()), (Some(0), 1), "{documents:?}");
    assert_eq!(world.json(&["status"])["unknown"].as_array().unwrap().len(), 1, "{documents:?}");
    assert_eq!(ok(&world, &["execute"])["executed"], json!([]));
    assert_eq!(server.count("/messages"), 1);
}

#[test]
fn a_loop_delivers_until_it_is_told_to_stop_and_reports_what_it_did() {
    let (world, file) = with_scribe();
    let child = start(&world, &["--loop", "--interval", "1"]);
    wait_for(|| world.data().join("midwatch.sock").exists().then_some(()));
    // Others work with it meanwhile, and a second one does nothing twice.
    let second = start(&world, &["--loop", "--report"]);
    let register = ["register", "--agent-id", "scribe", "--prompt", "tick", "--every", "1s"];
    ok(&world, &[&register[..], &["--max-repetitions", "2"]].concat());
    wait_for(|| list(&world, &[]).is_empty().then_some(()));
    wait_for(|| (written(&file).len() == 2).then_some(()));
    terminate(&child);
    let (code, documents) = end(child);
    assert_eq!((code, documents.len()), (Some(0), 1), "{documents:?}");
    assert_eq!(documents[0]["message"], "2 prompts executed");
    assert_eq!(documents[0]["executed"][1]["completed"], true);
    terminate(&second);
    assert_eq!(end(second).0, Some(0));
    assert_eq!(written(&file), ["tick", "tick"]);
    let (code, _) = run(&world, &["list"]);
    assert_eq!(code, Some(0));
}
