//! A terminal of 80 columns: a shell in an empty home directory, with `midwatch` on its path.
#![expect(clippy::disallowed_methods, reason = "commands are run as a user runs them")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use test_postgres::{Options, PostgresServer};

use super::normalize::ascii_regex;
use crate::support::daemon::Daemon;
use crate::support::wait::TIMEOUT;
use crate::support::world::PROGRAM;

/// How pages name the database of the walk.
const DATABASE: &str = "postgres://midwatch@localhost/midwatch";
/// How pages show the address of the daemon's HTTP server, the user, access tokens and signatures.
const SHOWN: &[(&str, &str)] = &[
    (r"127\.0\.0\.1:\d+", "127.0.0.1:7400"),
    (r"\buid:\d+", "uid:1000"),
    (r"\b(mw[ts])_[0-9a-f]{64,}", "${1}_…"),
];
/// What a shell sources before a command and writes after it, so that variables and the directory stay.
const STATE: &str = "state";

pub(super) struct Terminal {
    /// Holds `home`, `bin` and the state of the shell. Its name has the same length on every machine, because the width
    /// of a path moves what stands beside it.
    root: TempDir,
    daemon: Option<Daemon>,
    /// A server that flushes, unlike that of other tests, so that the program has nothing to warn of; and the url of its
    /// database.
    database: OnceLock<(PostgresServer, String)>,
}

impl Terminal {
    pub(super) fn new() -> Terminal {
        let root = tempfile::Builder::new().prefix("walk-").tempdir_in("/tmp").unwrap();
        for folder in ["home", "bin"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        symlink(PROGRAM, root.path().join("bin/midwatch")).unwrap();
        fs::write(root.path().join(STATE), "cd\n").unwrap();
        Terminal { root, daemon: None, database: OnceLock::new() }
    }

    /// Runs a command and returns what it prints.
    pub(super) fn run(&mut self, command: &str) -> String {
        match command.trim_end_matches(" &") {
            up if up.starts_with("midwatch up") => self.up(up),
            _ => self.shell(command),
        }
    }

    /// The text as a page shows it: without secrets, and without what only this machine has.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut text = text.replace(&self.path("home"), "~");
        if let Some((_, url)) = self.database.get() {
            text = text.replace(url, DATABASE);
        }
        SHOWN.iter().fold(text, |text, (pattern, to)| {
            ascii_regex(pattern).replace_all(&text, *to).into_owned()
        })
    }

    /// Waits by `ledger tail --follow` until the ledger has this many entries of a kind.
    pub(super) fn wait_for_events(&self, kind: &str, count: usize) {
        let mut command =
            self.with_deadline("exec midwatch --json ledger tail --follow --cursor 0");
        let mut tail = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(tail.stdout.take().unwrap()).lines().map(Result::unwrap);
        let events = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let found = events.filter(|event| event["kind"] == kind).take(count).count();
        // `timeout` passes SIGTERM on; it may have ended the shell itself.
        let pid = Pid::from_raw(i32::try_from(tail.id()).unwrap()).unwrap();
        let _ = kill_process(pid, Signal::TERM);
        tail.wait().unwrap();
        assert_eq!(found, count, "`ledger tail` ended before `{kind}`");
    }

    /// Starts a daemon, and returns its first line, or why it does not start.
    fn up(&mut self, command: &str) -> String {
        let mut command = self.script(Command::new("/bin/sh"), &format!("exec {command}"));
        let mut daemon = Daemon::spawn(&mut command);
        if daemon.ready.is_empty() {
            return daemon.wait().1;
        }
        self.daemon.insert(daemon).ready.clone()
    }

    fn shell(&self, command: &str) -> String {
        let state = self.path(STATE);
        let script =
            format!("exec 2>&1\n{command}\n{{ export -p; echo \"cd '$PWD'\"; }} > {state}");
        let output = self.with_deadline(&script).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// A shell that is ended if it waits for something that does not happen.
    fn with_deadline(&self, script: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args([&TIMEOUT.as_secs().to_string(), "/bin/sh"]);
        self.script(command, script)
    }

    /// Gives a shell a script, and the variables and the directory that the commands before it have set.
    fn script(&self, mut command: Command, script: &str) -> Command {
        let script = match script.contains(DATABASE) {
            true => script.replace(DATABASE, &self.database.get_or_init(start_database).1),
            false => script.to_owned(),
        };
        command.env_clear().stdin(Stdio::null());
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin")));
        command.env("HOME", self.path("home")).env("LANG", "C.UTF-8").env("COLUMNS", "80");
        // Any free port; pages show the default one.
        command.env("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0").env("TZ", "Europe/Berlin");
        command.args(["-c", &format!(". {}\n{script}", self.path(STATE))]);
        command
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }
}

fn start_database() -> (PostgresServer, String) {
    let server = PostgresServer::start_with(Options::default().durable()).unwrap();
    let url = server.create_database().unwrap();
    (server, url)
}

/// Counts the quarters of an hour.
pub(super) fn quarter_hour() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    now.as_secs() / (15 * 60)
}
