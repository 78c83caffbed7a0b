//! The kill switch: a person types `midwatch freeze` once, and it works, whatever agents do. What agents do approves
//! nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use api::wire::Hello;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::faults::inject_fault;
use crate::support::wait::{wait_for, wait_until};
use crate::support::world::{Daemon, PROGRAM, World, agent_add, daily};

const FLOOD: &str = include_str!("../support/connection_flood.c");

/// Leaves its run, outlives the daemon, and then does what a person would do to approve a run. The daemon that it meets
/// then did not start it.
const ESCAPE: &str = r#"
out=$1; program=$2; data=$3
if [ "$4" = inner ]; then
  : > "$out.away"
  while [ ! -e "$out.attack" ]; do sleep 0.05; done
  . "$out.attack"
  midwatch() { env -i MIDWATCH_DATA="$data" "$program" --json "$@" >> "$out.part" 2>&1; }
  midwatch approval approve "$approval" --plan "$plan"
  midwatch token create --name eve --role maintainer
  printf '[feature_flags]\ntoken_files = true\n' > "$data/midwatch.toml"
  kill -HUP "$daemon"
  midwatch config reload
  mkdir -p "$data/approvals/pending"
  (umask 077; printf '{"approved_by": "ada", "approved_at": "%s"}' "$now" > "$data/approvals/pending/$schedule.token")
  mv "$out.part" "$out"
  while [ ! -e "$out.full" ]; do sleep 0.05; done
  exec "$flood" hang-up "$data/midwatch.sock" "$out.flood" 8
fi
setsid sh "$0" "$out" "$program" "$data" inner < /dev/null > /dev/null 2>&1 &
echo $! > "$out.pid"
while [ ! -e "$out.away" ]; do :; done
exit 0
"#;

/// A program of this test's own, with all processes that it starts.
struct Attack(Child);

impl Attack {
    fn start(world: &World, arguments: [&str; 2]) -> Attack {
        Attack::start_with(world, arguments, &[])
    }

    fn start_with(world: &World, [mode, processes]: [&str; 2], more: &[&str]) -> Attack {
        let (program, ready) =
            (world.compile_c("connection_flood", FLOOD), world.root().join("flooded"));
        let mut command = world.wrapped(&program);
        command
            .arg(mode)
            .arg(world.socket())
            .arg(&ready)
            .arg(processes)
            .args(more)
            .process_group(0);
        let attack = Attack(command.spawn().unwrap());
        wait_until(|| ready.exists());
        attack
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        kill_group(self.0.id());
        let _ = self.0.wait();
    }
}

fn kill_group(leader: u32) {
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw).unwrap();
    let _ = kill_process_group(group, Signal::KILL);
}

/// A run whose program sleeps.
pub(super) struct Sleeper {
    pub(super) run: String,
    /// The directory of its process in `/proc`.
    process: PathBuf,
}

impl Sleeper {
    pub(super) fn start(world: &World, name: &str) -> Sleeper {
        let file = world.root().join(name);
        let sleep = r#"echo $$ > "$0.new"; mv "$0.new" "$0"; exec sleep 1000"#;
        let argv = ["--", "sh", "-c", sleep, file.to_str().unwrap()];
        world.ok(&[&["agent", "add", name, "--backend", "command"], &argv[..]].concat());
        let run = world.start_run(&world.add_daily(name, name, "x"));
        let pid = wait_for(|| fs::read_to_string(&file).ok());
        world.wait_for_state(&run, "running");
        Sleeper { run, process: Path::new("/proc").join(pid.trim()) }
    }

    /// Waits until its program has ended, without asking the daemon.
    pub(super) fn wait_until_ended(&self) {
        wait_until(|| !self.process.exists());
    }
}

#[test]
fn detached_program_approves_nothing_and_a_person_freezes_with_one_command() {
    let world = World::new();
    let daemon = world.up();
    let (script, out) = (world.root().join("escape.sh"), world.root().join("out"));
    fs::write(&script, ESCAPE).unwrap();
    let [script, file, data] = [&script, &out, world.data()].map(|path| path.to_str().unwrap());
    world.ok(&[
        "agent",
        "add",
        "eve",
        "--backend",
        "command",
        "--",
        "sh",
        script,
        file,
        PROGRAM,
        data,
    ]);
    let escaped = world.start_run(&world.add_daily("escape", "eve", "hello"));
    world.wait_for_state(&escaped, "done");
    let detached: u32 =
        fs::read_to_string(out.with_extension("pid")).unwrap().trim().parse().unwrap();

    let effects = world.root().join("effects");
    let touch = ["--", "touch", effects.to_str().unwrap()];
    world.ok(&[&["agent", "add", "ada", "--backend", "command", "--tier", "2"], &touch[..]].concat());
    let schedule = world.add_schedule(&daily("news", "ada", "tell them"));
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    let shown = world.json(&["approval", "show", &approval]);
    let plan = shown["approval"]["plan_hash"].as_str().unwrap().to_owned();

    // The daemon dies, and the next one finds no space on its disk after a while.
    daemon.kill();
    assert!(Path::new(&format!("/proc/{detached}")).exists(), "it ended with the daemon");
    let mut full = inject_fault(&world, "pwrite64", "error=ENOSPC:when=250+", &[]);
    let daemon = Daemon::start(full.arg("up"));
    let sleeper = Sleeper::start(&world, "sleeper");
    let flood = world.compile_c("connection_flood", FLOOD);
    let now = shown["approval"]["asked_at"].as_str().unwrap();
    let pid = world.json(&["status"])["watch"]["pid"].clone();
    let attack = format!(
        "approval={approval} plan={plan} schedule={schedule} now={now} flood={flood} daemon={pid}\n"
    );
    fs::write(out.with_extension("part"), "").unwrap();
    fs::write(out.with_extension("tmp"), attack).unwrap();
    fs::rename(out.with_extension("tmp"), out.with_extension("attack")).unwrap();
    let output = wait_for(|| fs::read_to_string(&out).ok());
    let documents = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
    let codes: Vec<Value> = documents.map(|it| it.unwrap()["error"]["code"].clone()).collect();
    assert_eq!(codes, ["role_too_low", "role_too_low", "role_too_low"], "{output}");
    let mut numbers = 0..;
    wait_until(|| {
        let name = format!("agent-{}", numbers.next().unwrap());
        world.json(&agent_add(&name))["error"]["code"] == "disk_full"
    });
    fs::write(out.with_extension("full"), "").unwrap();
    wait_until(|| out.with_extension("flood").exists());

    // The tracer that fills the disk makes this daemon slow, so a marker may have to do it.
    let frozen = world.json(&["freeze", "--reason", "what is eve doing?"]);
    assert_eq!(frozen["recorded"], false, "{frozen}");
    sleeper.wait_until_ended();
    assert!(world.data().join("stop/freeze").exists());
    daemon.kill();
    kill_group(detached);

    // The next daemon obeys the marker, and records the freeze.
    let daemon = world.up();
    let frozen = wait_for(|| world.events_of("authority.frozen").pop());
    assert_eq!(frozen["words"]["note"], "what is eve doing?", "{frozen}");
    wait_until(|| !world.data().join("stop/freeze").exists());
    assert_eq!(world.show_run(&run)["state"], "waiting_permission");
    assert_eq!(world.count_events("approval.decided") + world.count_events("config.reloaded"), 0);
    assert!(!effects.exists());
    assert!(0 < world.count_events("watch.refused"));
    daemon.stop();
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}

#[test]
fn freeze_works_while_many_processes_connect_and_hang_up() {
    check_freeze_during("hang-up", "48");
}

#[test]
fn freeze_works_while_ten_thousand_connections_are_idle() {
    check_freeze_during("idle", "40");
}

/// The daemon answers, or a marker freezes it if the machine is too busy for that. Either way one command is enough.
fn check_freeze_during(mode: &str, processes: &str) {
    let world = World::new();
    let daemon = world.up();
    let sleeper = Sleeper::start(&world, "sleeper");
    let attack = Attack::start(&world, [mode, processes]);
    freeze_within_five_seconds(&world);
    sleeper.wait_until_ended();
    drop(attack);
    world.wait_for_state(&sleeper.run, "cancelled");
    daemon.stop();
    assert_eq!(world.count_events("authority.frozen"), 1);
}

/// Types `midwatch freeze` once.
#[expect(clippy::disallowed_methods, reason = "measures how long a stop takes")]
fn freeze_within_five_seconds(world: &World) -> Value {
    let typed = Instant::now();
    let frozen = world.json(&["freeze"]);
    assert_eq!(frozen["error"], Value::Null, "{frozen}");
    assert!(typed.elapsed() < Duration::from_secs(5), "{:?}", typed.elapsed());
    frozen
}

/// Assistants send frames without an end. Those of people still have room, and the daemon's memory stays bounded.
#[test]
fn freeze_works_while_programs_send_large_frames() {
    let world = World::new();
    let daemon = world.up();
    let sleeper = Sleeper::start(&world, "sleeper");
    let hello = |assistant: bool| {
        let hello = Hello { assistant, ..Hello::new("test") };
        format!("{}\n", serde_json::to_string(&hello).unwrap())
    };
    let small = "{\"request\":{\"call\":\"health\",\"with\":{}}}\n";
    let attack = Attack::start_with(&world, ["large", "12"], &[&format!("{}{small}", hello(true))]);
    // 48 connections have sent up to 15 MB each.
    let peak = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 300 << 10, "{peak_kib} KiB");

    let name = "x".repeat(1 << 20);
    let large = format!(r#"{{"request":{{"call":"agent.show","with":{{"name":"{name}"}}}}}}"#);
    let code = |assistant| {
        let stream = UnixStream::connect(world.socket()).unwrap();
        let text = format!("{}{small}{large}\n", hello(assistant));
        // The daemon may close the connection before everything was sent.
        let _ = (&stream).write_all(text.as_bytes());
        let replies: Vec<Value> = BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .take(3)
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        replies[2]["error"]["code"].clone()
    };
    assert_eq!(code(true), "limit_reached");
    assert_ne!(code(false), "limit_reached");
    assert_eq!(freeze_within_five_seconds(&world)["recorded"], true);
    sleeper.wait_until_ended();
    drop(attack);
    world.wait_for_state(&sleeper.run, "cancelled");
    daemon.stop();
}

/// The disk fills up while the daemon runs.
#[test]
fn freeze_works_while_the_disk_is_full() {
    let world = World::new();
    let mut full = inject_fault(&world, "pwrite64", "error=ENOSPC:when=250+", &[]);
    let daemon = Daemon::start(full.arg("up"));
    let sleeper = Sleeper::start(&world, "sleeper");
    let mut numbers = 0..;
    wait_until(|| {
        let name = format!("agent-{}", numbers.next().unwrap());
        world.json(&agent_add(&name))["error"]["code"] == "disk_full"
    });
    let frozen = freeze_within_five_seconds(&world);
    assert_eq!(frozen["recorded"], false, "{frozen}");
    sleeper.wait_until_ended();
    daemon.kill();
    let daemon = world.up();
    wait_until(|| world.count_events("authority.frozen") == 1);
    daemon.stop();
}

/// Another process holds the write lock of the database.
#[test]
fn freeze_and_cancel_work_while_the_store_does_not_answer() {
    let world = World::new();
    let daemon = world.up();
    let [first, second] = ["first", "second"].map(|name| Sleeper::start(&world, name));
    let lock = Connection::open(world.data().join("midwatch.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let cancelled = world.json(&["run", "cancel", &first.run]);
    assert_eq!(cancelled["recorded"], false, "{cancelled}");
    let frozen = freeze_within_five_seconds(&world);
    assert_eq!(
        (&frozen["changed"], &frozen["recorded"]),
        (&json!(true), &json!(false)),
        "{frozen}"
    );
    lock.execute_batch("ROLLBACK").unwrap();
    for sleeper in [first, second] {
        world.wait_for_state(&sleeper.run, "cancelled");
    }
    wait_until(|| world.count_events("authority.frozen") == 1);
    wait_until(|| fs::read_dir(world.data().join("stop")).unwrap().count() == 0);
    daemon.stop();
}

/// A daemon that was stopped by a signal does not answer at all.
#[test]
fn marker_stops_a_daemon_that_does_not_answer() {
    let world = World::new();
    let daemon = world.up();
    let sleeper = Sleeper::start(&world, "sleeper");
    daemon.signal(Signal::STOP);
    let marked = world.json(&["freeze", "--reason", "now"]);
    assert_eq!((&marked["marked"], &marked["recorded"]), (&json!(true), &json!(false)), "{marked}");
    assert!(world.data().join("stop/freeze").exists());
    daemon.signal(Signal::CONT);
    world.wait_for_state(&sleeper.run, "cancelled");
    let frozen = world.wait_for_event("authority.frozen");
    assert_eq!(frozen["words"]["note"], "now", "{frozen}");
    wait_until(|| !world.data().join("stop/freeze").exists());
    assert_eq!(world.json(&["thaw"])["changed"], true);
    daemon.stop();
}

/// A program that left its run would act on while no daemon watches it.
#[test]
fn orderly_stop_ends_the_processes_that_runs_left_behind() {
    let world = World::new();
    let daemon = world.up();
    let file = world.root().join("pid");
    let leave = r#"setsid sh -c 'echo $$ > "$0.new"; mv "$0.new" "$0"; exec sleep 1000' "$0" \
                   < /dev/null > /dev/null 2>&1 & while [ ! -e "$0" ]; do :; done"#;
    let argv = ["--", "sh", "-c", leave, file.to_str().unwrap()];
    world.ok(&[&["agent", "add", "eve", "--backend", "command"], &argv[..]].concat());
    let run = world.start_run(&world.add_daily("leave", "eve", "hello"));
    world.wait_for_state(&run, "done");
    let pid = fs::read_to_string(&file).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    assert!(process.exists(), "it did not leave its run");
    daemon.stop();
    wait_until(|| !process.exists());
}

/// Markers are obeyed by name alone: their content and their kind do not matter.
#[test]
fn any_file_of_the_name_is_a_marker() {
    let world = World::new();
    let daemon = world.up();
    let marker = world.data().join("stop/freeze");
    wait_until(|| marker.parent().is_some_and(Path::exists));
    std::os::unix::fs::symlink("/dev/zero", &marker).unwrap();
    wait_until(|| world.count_events("authority.frozen") == 1);
    wait_until(|| !marker.exists() && !marker.is_symlink());
    daemon.stop();
    let mode = fs::metadata(world.data().join("stop")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// A marker that was left for an attempt that is over does not stop the next one.
#[test]
fn retried_run_is_not_stopped_by_an_old_marker() {
    let world = World::new();
    let daemon = world.up();
    let Sleeper { run, process } = Sleeper::start(&world, "sleeper");
    let cancelled = world.json(&["run", "cancel", &run]);
    assert_eq!((&cancelled["changed"], &cancelled["recorded"]), (&json!(true), &json!(true)));
    world.wait_for_state(&run, "cancelled");
    assert!(!process.exists());
    let marker = world.data().join("stop").join(&run);
    fs::write(&marker, "").unwrap();
    world.ok(&["run", "retry", &run]);
    assert!(!marker.exists());
    world.wait_for_state(&run, "running");
    daemon.stop();
}
