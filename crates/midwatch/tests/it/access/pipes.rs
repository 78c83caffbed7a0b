//! A process that opens a pipe in place of a file waits. An agent may put one wherever a path can be given or is ours:
//! the daemon does not wait, so a freeze still works, and no command waits either.

use std::fs;
use std::io::{self, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::kill_switch::Sleeper;
use crate::support::wait::{TIMEOUT, ends_within, wait_until};
use crate::support::world::{Outcome, World, daily};

/// The time in which a freeze must work.
const FREEZE_TIME_MAX: Duration = Duration::from_secs(5);

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// A pipe that is in the place of a file or directory until this is dropped.
struct Pipe {
    path: PathBuf,
    aside: PathBuf,
}

impl Pipe {
    fn replace(path: PathBuf) -> Pipe {
        let mut aside = path.clone().into_os_string();
        aside.push(".aside");
        let aside = PathBuf::from(aside);
        let _ = fs::rename(&path, &aside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_pipe(&path);
        Pipe { path, aside }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The daemon may have put something in its place.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::rename(&self.aside, &self.path);
    }
}

/// Runs a command that must end within this time, whatever it prints.
fn run_within(world: &World, time_max: Duration, arguments: &[&str]) -> Outcome {
    run_command_within(world.command().arg("--json").args(arguments), time_max)
}

fn run_command_within(command: &mut Command, time_max: Duration) -> Outcome {
    // A long output would fill a pipe.
    let mut output = tempfile::tempfile().unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_ended = ends_within(&mut child, time_max);
    let _ = child.kill();
    let code = child.wait().unwrap().code();
    output.rewind().unwrap();
    let stdout = io::read_to_string(output).unwrap();
    assert!(has_ended, "{command:?} waits: {stdout}");
    Outcome { code, stdout, stderr: String::new() }
}

/// What causes the daemon to use the file.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// This command.
    Command(&'static [&'static str]),
    /// A run of this agent.
    Run(&'static str),
    /// A notice, because a run needs approval.
    Notice,
    /// The daemon looks for it by itself.
    Nothing,
}

/// An installation that uses every path that a configuration or an agent can name.
fn prepare() -> World {
    let world = World::new();
    let at = |name: &str| world.root().join(name).to_str().unwrap().to_owned();
    fs::create_dir(world.data()).unwrap();
    for (name, text) in [
        ("program", "#!/bin/sh\nexit 0\n"),
        ("notice", "#!/bin/sh\ncat > /dev/null\n"),
        ("canned", "[[answer]]\ntext = \"so\"\n"),
        ("secret", "canary-5e1a90"),
        ("script", "exit 0\n"),
    ] {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::create_dir(at("cwd")).unwrap();
    let config = format!(
        "[ledger]\ncheckpoint_copy = {}\n[notice]\ncommand = {}\n[feature_flags]\ntoken_files = true\n",
        json!(at("copy")),
        json!([at("notice")]),
    );
    fs::write(world.data().join("midwatch.toml"), config).unwrap();
    fs::write(world.data().join("policy.toml"), "").unwrap();
    let add = |name: &str, flags: &[&str]| {
        world.ok(&[&["agent", "add", name, "--backend"], flags].concat());
    };
    add("canned", &["builtin", "--script", &at("canned")]);
    add("program", &["command", "--", &at("program")]);
    add("script", &["command", "--", "sh", &at("script")]);
    add("elsewhere", &["command", "--cwd", &at("cwd"), "--", "true"]);
    let secret = format!("file:{}", at("secret"));
    let hook = [
        "webhook",
        "--tier",
        "1",
        "--url",
        "http://127.0.0.1:9/",
        "--allow-private",
        "--credential",
    ];
    add("hook", &[&hook[..], &[&secret]].concat());
    let print = "head -c 20000 /dev/zero | tr '\\0' x";
    add("loud", &["command", "--", "sh", "-c", print]);
    add("asks", &["command", "--tier", "2", "--", "true"]);
    world
}

/// Causes the daemon to use the file, and waits until it has.
fn cause(world: &World, name: &str, use_of_it: Use) {
    match use_of_it {
        Use::Command(arguments) => drop(run_within(world, TIMEOUT, arguments)),
        Use::Run(agent) => {
            let run = world.start_run(&world.add_daily(name, agent, "hello"));
            // The program of a run may wait for ever; the daemon may not.
            if agent != "script" {
                run_within(world, TIMEOUT, &["run", "watch", &run]);
            }
        }
        Use::Notice => {
            let run = world.start_run(&world.add_daily(name, "asks", name));
            world.wait_for_approval(&run);
        }
        Use::Nothing => {}
    }
}

#[test]
fn freeze_works_with_a_pipe_in_place_of_each_file() {
    let world = prepare();
    let daemon = world.up();
    let schedule = world.add_daily("by file", "asks", "hello");
    let token = format!("data/approvals/pending/{schedule}.token");
    let sensitive = ["schedule", "add", "--sensitive", "--name", "sealed", "--daily", "03:00"];
    let sensitive =
        [&sensitive[..], &["--tz", "UTC", "--agent", "canned", "--prompt", "x"]].concat();
    world.ok(&sensitive);
    world.ok(&["ledger", "export"]);
    let manifest = fs::read_dir(world.data().join("exports")).unwrap();
    let mut manifest = manifest.map(|it| it.unwrap().file_name().into_string().unwrap());
    let manifest =
        format!("data/exports/{}", manifest.find(|it| it.ends_with("manifest")).unwrap());

    let reload = Use::Command(&["config", "reload"]);
    let export = Use::Command(&["ledger", "export"]);
    let checkpoint = Use::Command(&["ledger", "checkpoint"]);
    let show = Use::Command(&["doctor"]);
    for (path, use_of_it) in [
        ("data/midwatch.toml", reload),
        ("data/policy.toml", reload),
        ("canned", Use::Run("canned")),
        ("program", Use::Run("program")),
        ("script", Use::Run("script")),
        ("cwd", Use::Run("elsewhere")),
        ("secret", Use::Run("hook")),
        ("data/outputs", Use::Run("loud")),
        ("notice", Use::Notice),
        ("data/notices/command", Use::Notice),
        ("data/notices", Use::Notice),
        ("copy", checkpoint),
        ("data/checkpoints.log", checkpoint),
        ("data/exports", export),
        (&manifest, export),
        ("data/logs/midwatch.log", show),
        ("data/logs", show),
        ("data/signing.key", show),
        ("data/sealing.key", Use::Command(&["schedule", "list"])),
        ("data/node", show),
        ("data/damaged", show),
        ("data/lock", show),
        ("data/midwatch.db-journal", show),
        (&token, Use::Nothing),
        ("data/approvals/pending", Use::Nothing),
        ("data/stop", Use::Nothing),
        ("data/stop/freeze", Use::Nothing),
        ("data/midwatch.sock", Use::Nothing),
    ] {
        println!("a pipe at {path}");
        let sleeper = Sleeper::start(&world, &format!("sleeper-{}", path.replace(['/', '.'], "-")));
        let pipe = Pipe::replace(world.root().join(path));
        cause(&world, path, use_of_it);
        let frozen = run_within(&world, FREEZE_TIME_MAX, &["freeze"]);
        assert_eq!(frozen.code, Some(0), "{path}: {frozen:?}");
        sleeper.wait_until_ended();
        drop(pipe);
        wait_until(|| world.json(&["thaw"])["changed"] == true);
        world.wait_for_state(&sleeper.run, "cancelled");
    }
    // The last checkpoint, too.
    let pipes = ["copy", "data/checkpoints.log"].map(|it| Pipe::replace(world.root().join(it)));
    daemon.stop();
    drop(pipes);
    world.verified();
}

/// Without a daemon, a freeze is recorded, or a marker freezes the next daemon. A daemon starts or refuses to.
#[test]
fn freeze_without_a_daemon_and_a_start_do_not_wait_for_a_pipe() {
    let original = prepare();
    original.up().stop();
    let paths = [
        "midwatch.toml",
        "policy.toml",
        "midwatch.db",
        "midwatch.db-journal",
        "midwatch.db-wal",
        "signing.key",
        "sealing.key",
        "checkpoints.log",
        "node",
        "damaged",
        "lock",
        "stop",
        "logs",
        "notices",
        "approvals",
        "midwatch.sock",
    ];
    std::thread::scope(|scope| {
        for path in paths {
            let original = &original;
            scope.spawn(move || {
                let world = original.copy();
                let _pipe = Pipe::replace(world.data().join(path));
                // Sixteen commands at once, so each gets twice the time.
                let frozen = run_within(&world, 2 * FREEZE_TIME_MAX, &["freeze"]);
                assert_eq!(frozen.code, Some(0), "{path}: {frozen:?}");
                let ready = world.root().join("ready");
                let mut up = world.command();
                let up = up.arg("up").stdout(fs::File::create(&ready).unwrap());
                let mut up = up.stderr(Stdio::null()).spawn().unwrap();
                let is_ready = || fs::metadata(&ready).unwrap().len() != 0;
                wait_until(|| is_ready() || up.try_wait().unwrap().is_some());
                let _ = up.kill();
                up.wait().unwrap();
            });
        }
    });
}

/// A configuration may name a pipe as the file of a secret or of certificates. Nothing waits for it, and a freeze is left as
/// a marker where the data cannot be opened.
#[test]
fn files_that_the_configuration_names_may_be_pipes() {
    let database = "url = 'postgres://ada@127.0.0.1:9/watch'\n";
    for (section, key) in [
        ("notice", "url = 'http://127.0.0.1:9/'\ntoken = 'file:PIPE'".to_owned()),
        ("store", format!("{database}password = 'file:PIPE'")),
        ("store", format!("{database}ca_file = 'PIPE'")),
        ("ledger", "checkpoint_copy = 'PIPE'".to_owned()),
    ] {
        let world = World::with_agent("ada");
        let pipe = world.root().join("pipe");
        make_pipe(&pipe);
        let key = key.replace("PIPE", pipe.to_str().unwrap());
        fs::write(world.data().join("midwatch.toml"), format!("[{section}]\n{key}\n")).unwrap();
        let frozen = run_within(&world, FREEZE_TIME_MAX, &["freeze"]);
        let marker = world.data().join("stop/freeze");
        assert!(frozen.code == Some(0) || marker.exists(), "{key}: {frozen:?}");
        for command in ["doctor", "status"] {
            run_within(&world, TIMEOUT, &[command]);
        }
        if section != "ledger" {
            let up = run_within(&world, TIMEOUT, &["up"]);
            assert_eq!(up.code.map(|code| code != 0), Some(true), "{key}: {up:?}");
            assert!(!up.stdout.contains("\"ready\""), "{key}: {up:?}");
        }
    }
}

#[test]
fn command_refuses_a_pipe_as_an_argument_at_once() {
    let world = World::with_agent("ada");
    let at = |name: &str| world.root().join(name).to_str().unwrap().to_owned();
    let pipe = at("pipe");
    make_pipe(Path::new(&pipe));
    for (directory, name) in [
        ("astra", "index.json"),
        ("chain", "2026-11.ndjson.gz"),
        ("export", "ledger-2026-11.manifest"),
    ] {
        fs::create_dir(at(directory)).unwrap();
        make_pipe(Path::new(&at(directory)).join(name).as_path());
    }
    fs::write(at("shown"), "{}").unwrap();
    let prompt = format!("@{pipe}");
    let import = |from, path| vec!["schedule", "import", "--from", from, path];
    let daily = daily("news", "ada", &prompt);
    for arguments in [
        vec!["--config", &pipe, "status"],
        [&["schedule", "add"], &daily[..]].concat(),
        vec!["schedule", "add", "--file", &pipe],
        [import("crontab", &pipe), vec!["--tz", "UTC"]].concat(),
        import("promptyoself", &pipe),
        import("astra", &at("astra")),
        import("astra", &at("chain")),
        vec!["policy", "explain", "--request", &prompt],
        vec!["policy", "replay", "--with", &pipe],
        vec!["approval", "sign", "--key", &pipe, &at("shown")],
        vec!["approval", "sign", "--key", &at("shown"), &pipe],
        vec!["ledger", "verify", "--expect-checkpoint", &pipe],
        vec!["ledger", "verify", "--export", &at("export")],
        vec!["ledger", "rebuild", "--from-export", &at("export")],
        vec!["ledger", "export", "--dir", &pipe],
        vec!["store", "copy", "--from", &pipe, "--to", &at("new")],
        vec!["--data", &pipe, "status"],
    ] {
        let outcome = run_within(&world, TIMEOUT, &arguments);
        let is_refused = outcome.code != Some(0) && !outcome.stdout.contains("bad_usage");
        assert!(is_refused, "{arguments:?}: {outcome:?}");
    }
}

/// The `.env` beside which promptyoself's commands are run.
#[test]
fn env_file_is_not_read_from_a_pipe() {
    let world = World::with_agent("ada");
    make_pipe(&world.root().join(".env"));
    let mut command = world.wrapped(crate::support::world::PROGRAM);
    command.args(["promptyoself", "list"]).current_dir(world.root());
    run_command_within(&mut command, TIMEOUT);
}
