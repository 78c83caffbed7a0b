//! Stopping the daemon: what it waits for, what it cuts off, who may stop it, and what its terminal shows.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::terminal::Terminal;
use crate::support::wait::{wait_for, wait_until};
use crate::support::world::{PROGRAM, World, daily};

/// Says that it has begun, and works until the file `go` exists.
const WORK: &str =
    r#"echo $$ > "$0.begun"; while ! [ -e "$0.go" ]; do sleep 0.05; done; echo ended"#;

/// A world with the schedule `nightly`, whose program works until it is let go. Returns the id of the schedule.
fn with_slow_agent() -> (World, String) {
    let mut world = World::new();
    world.set("MIDWATCH_RUNS_DRAIN", "60s");
    let file = world.root().join("work");
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c", WORK];
    world.ok(&[&agent[..], &[file.to_str().unwrap()]].concat());
    let schedule = add_exclusive(&world, "nightly");
    (world, schedule)
}

/// Adds a schedule that does not run beside others of its kind.
fn add_exclusive(world: &World, name: &str) -> String {
    world.add_schedule(&[&daily(name, "ada", "go")[..], &["--key", "work"]].concat())
}

fn wait_until_begun(world: &World) {
    wait_until(|| world.root().join("work.begun").exists());
}

fn let_go(world: &World) {
    fs::write(world.root().join("work.go"), "").unwrap();
}

#[test]
fn stop_waits_for_running_runs_and_serves_meanwhile() {
    let (world, schedule) = with_slow_agent();
    let mut daemon = world.up();
    let first = world.start_run(&schedule);
    // Its key is taken, so it does not start.
    let second = world.start_run(&add_exclusive(&world, "later"));
    wait_until_begun(&world);
    let stop = world.command().arg("stop").stdout(Stdio::piped()).spawn().unwrap();
    // Another request of a stop changes nothing, and the daemon still answers.
    wait_until(|| {
        let waiting = world.run(&["run", "show", &first]);
        assert_eq!(waiting.code, Some(0), "{waiting:?}");
        waiting.stdout.contains("running")
    });
    let_go(&world);
    let printed = String::from_utf8(stop.wait_with_output().unwrap().stdout).unwrap();
    assert!(printed.starts_with("waiting up to 1m for 1 run (nightly, started "), "{printed}");
    assert!(printed.ends_with("stopped; `midwatch up` starts it again\n"), "{printed}");
    assert_eq!(daemon.wait().0, Some(0));
    let state = |run: &str| world.show_run(run)["state"].clone();
    assert_eq!((state(&first), state(&second)), ("done".into(), "queued".into()));
    let stopped = &world.events_of("watch.stopped")[0];
    let reason = stopped["body"]["reason"].as_str().unwrap_or_else(|| panic!("{stopped}"));
    assert!(reason.starts_with("`midwatch stop` by uid:"), "{reason}");
    world.verified();
}

#[test]
fn stop_now_names_what_it_cuts_off() {
    let (world, schedule) = with_slow_agent();
    let mut daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until_begun(&world);
    let stopped = world.json(&["stop", "--now"]);
    assert_eq!(stopped["cut_off"][0]["id"], run.as_str(), "{stopped}");
    assert_eq!(stopped["cut_off"][0]["schedule_name"], "nightly", "{stopped}");
    assert_eq!(stopped["cut_off"][0]["state"], "unknown", "{stopped}");
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("cut off a running run") && log.contains(&run), "{log}");
}

#[test]
fn stop_without_a_daemon_has_nothing_to_do() {
    let world = World::with_agent("ada");
    let outcome = world.run(&["stop"]);
    assert_eq!(outcome.code, Some(10), "{outcome:?}");
    assert!(outcome.stdout.starts_with("no daemon is running in "), "{outcome:?}");
    assert_eq!(world.json(&["stop"])["was_running"], false);
}

/// Neither its claim nor its ancestry lets a process of a run stop the daemon.
#[test]
fn run_cannot_stop_the_daemon() {
    let world = World::new();
    let mut daemon = world.up();
    let data = world.data().display();
    let program = format!("{PROGRAM} --data {data} --json stop");
    let stop = format!("{program} --now > $0; env -u MIDWATCH_RUN_ID {program} >> $0");
    let file = world.root().join("answers");
    let agent = ["agent", "add", "eve", "--backend", "command", "--", "sh", "-c"];
    world.ok(&[&agent[..], &[&stop, file.to_str().unwrap()]].concat());
    let run = world.start_run(&world.add_daily("nightly", "eve", "go"));
    world.wait_for_run(&run, |run| run["finished_at"].is_string());
    let answers = fs::read_to_string(&file).unwrap();
    assert_eq!(answers.matches("role_too_low").count(), 2, "{answers}");
    assert!(!daemon.has_ended());
    assert_eq!(world.count_events("watch.stopped"), 0);
}

/// A second signal does not wait any longer, whatever sent the first.
#[test]
fn second_signal_cuts_off_running_runs() {
    let (world, schedule) = with_slow_agent();
    let mut daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until_begun(&world);
    daemon.signal(Signal::TERM);
    // The first one has arrived when no run starts any more; it is logged.
    wait_until(|| log_of(&world).contains("waiting for 1 run (nightly, started "));
    assert!(!daemon.has_ended());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().0, Some(0));
    assert_eq!(world.show_run(&run)["state"], "unknown");
}

fn log_of(world: &World) -> String {
    let logs = fs::read_dir(world.data().join("logs")).unwrap();
    logs.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn terminal_of_the_daemon_shows_runs_and_what_a_stop_waits_for() {
    let (world, schedule) = with_slow_agent();
    world.ok(&["agent", "add", "bob", "--backend", "command", "--", "sh", "-c", "exit 3"]);
    let once = [&daily("failing", "bob", "go")[..], &["--attempts", "1"]].concat();
    let failing = world.add_schedule(&once);
    let mut daemon = Terminal::start(&world, &["up"]);
    daemon.wait_for("ready: midwatch");
    assert!(daemon.text().starts_with("ready"), "{:?}", daemon.text());
    world.start_run(&failing);
    daemon.wait_for("  failing started");
    daemon.wait_for("x failed failing: ");
    world.start_run(&schedule);
    wait_until_begun(&world);
    daemon.wait_for("  nightly started");
    daemon.press("\x03");
    daemon.wait_for("waiting for 1 run (nightly, started ");
    daemon.wait_for("; ctrl-c again stops it now");
    daemon.press("\x03");
    daemon.wait_for("cut off nightly (unknown): `midwatch run show run_");
    wait_until(|| world.count_events("watch.stopped") == 1);
}

/// The commands that wait for something say what goes on without them.
#[test]
fn ctrl_c_says_what_goes_on() {
    let (world, schedule) = with_slow_agent();
    let daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until_begun(&world);
    let mut watch = Terminal::start(&world, &["run", "watch", &run]);
    watch.wait_for("running");
    watch.press("\x03");
    assert_eq!(watch.wait(), Some(130), "{}", watch.text());
    let text = watch.text();
    let expected = format!(
        "the run goes on without you: `midwatch run watch {run}` follows it again, `midwatch run cancel {run}` \
         stops it"
    );
    assert!(text.contains(&expected), "{text}");
    assert_eq!(world.show_run(&run)["state"], "running");
    let_go(&world);
    world.wait_for_state(&run, "done");

    // A test of an agent goes on in the daemon, and ends with a command that makes it itself.
    for (has_daemon, expected) in [
        (true, "the test goes on in the daemon; its result is not shown"),
        (false, "the test was stopped, and its program with it"),
    ] {
        for file in ["work.begun", "work.go"] {
            let _ = fs::remove_file(world.root().join(file));
        }
        if !has_daemon {
            world.ok(&["stop"]);
        }
        let mut test = Terminal::start(&world, &["agent", "test", "ada"]);
        wait_until_begun(&world);
        let pid = wait_for(|| {
            let pid = fs::read_to_string(world.root().join("work.begun")).unwrap();
            (!pid.trim().is_empty()).then(|| pid.trim().to_owned())
        });
        test.press("\x03");
        assert_eq!(test.wait(), Some(130), "{}", test.text());
        let text = test.text();
        assert!(text.contains(expected), "{text}");
        if has_daemon {
            assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "the program has ended");
            let_go(&world);
        }
        wait_until(|| !fs::exists(format!("/proc/{pid}")).unwrap());
    }
    drop(daemon);
}

/// A run that cannot start says why, and which command helps.
#[test]
fn run_that_cannot_start_says_why() {
    let world = World::with_agent("ada");
    let schedule = world.add_daily("nightly", "ada", "go");
    let started = world.ok(&["run", "start", &schedule]);
    assert!(started.contains("no daemon is running") && started.contains("`midwatch up`"));
    let other = world.add_daily("other", "ada", "go");
    let _daemon = world.up();
    world.ok(&["freeze"]);
    let started = world.ok(&["schedule", "fire", &other]);
    assert!(started.contains("frozen") && started.contains("`midwatch thaw`"), "{started}");
    world.ok(&["thaw"]);
    world.add_agent("bob");
    let last = world.add_daily("last", "bob", "go");
    assert_eq!(world.json(&["run", "start", &last])["held_by"], serde_json::Value::Null);
}
