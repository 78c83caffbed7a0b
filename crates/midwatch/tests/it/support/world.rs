//! A throw-away installation: its data directory, its environment and its commands.
#![expect(clippy::disallowed_methods, reason = "the tests start the real program")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use api::wire::Hello;
use api::{Call, Handle, Response, StatusShow};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;
use test_postgres::PostgresServer;

pub(crate) use super::daemon::Daemon;
pub(crate) use super::wait::wait_for;

/// One server for all tests; each test creates its own database.
pub(crate) static POSTGRES: LazyLock<PostgresServer> =
    LazyLock::new(|| PostgresServer::start().unwrap());

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_midwatch");

#[derive(Debug)]
pub(crate) struct World {
    root: TempDir,
    data: PathBuf,
    variables: Vec<(String, String)>,
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        World { root, data, variables: Vec::new() }
    }

    /// A world with the builtin agent `name`, which answers at once with its prompt.
    pub(crate) fn with_agent(name: &str) -> World {
        let world = World::new();
        world.add_agent(name);
        world
    }

    /// A world that stores its data in its own PostgreSQL database.
    pub(crate) fn on_postgres() -> World {
        let mut world = World::new();
        world.set("MIDWATCH_STORE_URL", POSTGRES.create_database().unwrap());
        world
    }

    /// Moves the data directory to this path below the root.
    pub(crate) fn with_data(mut self, data: impl AsRef<Path>) -> World {
        self.data = self.root.path().join(data);
        self
    }

    /// Another world with a copy of this data directory, in which no daemon may be running.
    pub(crate) fn copy(&self) -> World {
        let world = World { variables: self.variables.clone(), ..World::new() };
        copy_dir(&self.data, &world.data);
        world
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.data.join("midwatch.sock")
    }

    /// The program with the environment of this world and nothing of the test's own.
    pub(crate) fn command(&self) -> Command {
        self.prepare(Command::new(PROGRAM))
    }

    /// Another program that starts ours.
    pub(crate) fn wrapped(&self, wrapper: &str) -> Command {
        self.prepare(Command::new(wrapper))
    }

    fn prepare(&self, mut command: Command) -> Command {
        command.env_clear().env("MIDWATCH_DATA", &self.data).env("HOME", self.root.path());
        // Many daemons run at once; a test that needs HTTP sets its own address.
        command.env("MIDWATCH_HTTP_LISTEN", "");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Lines are long enough for the paths of any machine.
        command.env("COLUMNS", "200").env("TZ", "UTC");
        command.envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::from(self.command().args(arguments).output().unwrap())
    }

    /// Runs a command that must succeed. Returns its stdout.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    /// The document that a command prints with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.json_with(&[], arguments)
    }

    /// The document that a command prints with `--json` and these variables.
    pub(crate) fn json_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Value {
        let mut command = self.command();
        command.arg("--json").args(arguments).envs(variables.iter().copied());
        let outcome = Outcome::from(command.output().unwrap());
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}: {outcome:?}"))
    }

    /// The document that a command prints for the owner of a token.
    pub(crate) fn json_as(&self, token: &str, arguments: &[&str]) -> Value {
        self.json_with(&[("MIDWATCH_TOKEN", token)], arguments)
    }

    /// The error code of a command that the owner of a token runs, or `ok`.
    pub(crate) fn code_as(&self, token: &str, arguments: &[&str]) -> String {
        let document = self.json_as(token, arguments);
        document["error"]["code"].as_str().unwrap_or("ok").to_owned()
    }

    /// Runs a command that must be refused with this error code and exit code. Returns message and hint.
    pub(crate) fn refused(&self, arguments: &[&str], code: &str, exit: i32) -> String {
        let outcome = self.run(&[&["--json"], arguments].concat());
        let (found, message) = outcome.error();
        assert_eq!(
            (found.as_str(), outcome.code),
            (code, Some(exit)),
            "{arguments:?}: {outcome:?}"
        );
        message
    }

    pub(crate) fn up(&self) -> Daemon {
        Daemon::start(self.command().arg("up"))
    }

    /// Registers a builtin agent, which answers at once with its prompt.
    pub(crate) fn add_agent(&self, name: &str) {
        self.ok(&agent_add(name));
    }

    /// The names of all agents, as `agent list` prints them.
    pub(crate) fn agents(&self) -> Vec<String> {
        let document = self.json(&["agent", "list", "--limit", "1000"]);
        let agents = document["agents"].as_array().unwrap_or_else(|| panic!("{document}"));
        agents.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Runs `schedule add` with these flags. Returns the id.
    pub(crate) fn add_schedule(&self, flags: &[&str]) -> String {
        let added = self.json(&[&["schedule", "add"], flags].concat());
        added["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
    }

    /// Adds a schedule that a test can treat as started by hand only: it is due at night, once a day.
    pub(crate) fn add_daily(&self, name: &str, agent: &str, prompt: &str) -> String {
        self.add_schedule(&daily(name, agent, prompt))
    }

    pub(crate) fn start_run(&self, schedule: &str) -> String {
        let started = self.json(&["run", "start", schedule]);
        started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// The run, as `run show` prints it.
    pub(crate) fn show_run(&self, run: &str) -> Value {
        self.json(&["run", "show", run])["run"].clone()
    }

    /// Waits by `run watch` until the run is as awaited, and returns it. Fails if it ends differently.
    pub(crate) fn wait_for_run(&self, run: &str, is_awaited: impl Fn(&Value) -> bool) -> Value {
        let mut command = self.command();
        command.args(["--json", "run", "watch", run]).stdout(Stdio::piped());
        let mut watch = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut last = Value::Null;
        for line in lines {
            last = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if is_awaited(&last["run"]) {
                break;
            }
        }
        watch.kill().unwrap();
        let outcome = Outcome::from(watch.wait_with_output().unwrap());
        assert!(is_awaited(&last["run"]), "run `{run}` came to {last}; {outcome:?}");
        // Only `run show` opens sealed output and names the source; an ended run stays as it is.
        if last["ended"] == true { self.show_run(run) } else { last["run"].clone() }
    }

    pub(crate) fn wait_for_state(&self, run: &str, state: &str) -> Value {
        self.wait_for_run(run, |run| run["state"] == state)
    }

    /// Waits until the run needs approval, and returns the id of the approval.
    pub(crate) fn wait_for_approval(&self, run: &str) -> String {
        let run = self.wait_for_run(run, |run| run["approval_id"].is_string());
        run["approval_id"].as_str().unwrap().to_owned()
    }

    /// The hash of the plan that waits for this approval.
    pub(crate) fn plan_hash(&self, approval: &str) -> String {
        let shown = self.json(&["approval", "show", approval]);
        shown["approval"]["plan_hash"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
    }

    /// Approves the plan as it is now. Returns what the command prints.
    pub(crate) fn approve(&self, approval: &str) -> String {
        self.ok(&["approval", "approve", approval, "--plan", &self.plan_hash(approval)])
    }

    /// The newest events of the ledger, the oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        let document = self.json(&["ledger", "tail", "--limit", "1000"]);
        document["events"].as_array().unwrap_or_else(|| panic!("{document}")).clone()
    }

    /// The events of one kind, the oldest first.
    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["kind"] == kind);
        events
    }

    /// The kinds of all events, the oldest first.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits by `ledger tail --follow` for the first event of a kind, and returns it.
    pub(crate) fn wait_for_event(&self, kind: &str) -> Value {
        let mut command = self.command();
        command.args(["--json", "ledger", "tail", "--follow", "--cursor", "0"]);
        let mut tail = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(tail.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut events = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let event = events.find(|event| event["kind"] == kind);
        tail.kill().unwrap();
        tail.wait().unwrap();
        event.unwrap_or_else(|| panic!("`ledger tail` ended before `{kind}`"))
    }

    pub(crate) fn count_events(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|found| *found == kind).count()
    }

    /// Creates a token. Returns its id and its secret, which is printed only once.
    pub(crate) fn create_token(&self, name: &str, role: &str) -> (String, String) {
        self.create_token_with(&["--name", name, "--role", role])
    }

    /// Creates a token for the MCP clients of a person. Returns its id and its secret.
    pub(crate) fn create_mcp_token(&self, name: &str) -> (String, String) {
        self.create_token_with(&["--name", name, "--for", "mcp"])
    }

    pub(crate) fn create_token_with(&self, flags: &[&str]) -> (String, String) {
        let token = self.json(&[&["token", "create"], flags].concat())["token"].clone();
        let text = |key: &str| token[key].as_str().unwrap_or_else(|| panic!("{token}")).to_owned();
        (text("id"), text("secret"))
    }

    /// Verifies the ledger, which must be sound. Returns the report.
    pub(crate) fn verified(&self) -> Value {
        let outcome = self.run(&["--json", "ledger", "verify"]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(report["verdict"], "ok", "{report}");
        report
    }

    /// Rebuilds the derived tables from the ledger. Returns the number of rows that differed.
    pub(crate) fn rebuild_differences(&self) -> Value {
        self.json(&["ledger", "rebuild"])["rebuilt"]["differences"].clone()
    }

    /// Waits for the daemon's background check of the ledger and returns what it reports.
    pub(crate) fn checked(&self) -> String {
        self.wait_for_status(|status| {
            let found = status["log"]["check"].as_str().unwrap_or_else(|| panic!("{status}"));
            (!["not run", "running"].contains(&found)).then(|| found.to_owned())
        })
    }

    /// Polls the daemon's status, over one connection, until it has the value.
    pub(crate) fn wait_for_status<T>(&self, mut value: impl FnMut(&Value) -> Option<T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (path, hello) = (self.socket(), Hello::new("test"));
        let socket = runtime.block_on(transport::connect(&path, &hello)).unwrap();
        let socket = socket.expect("a daemon listens");
        wait_for(|| {
            let response = runtime.block_on(socket.call(Call::new(StatusShow {})));
            let Ok(Response::StatusShow(status)) = response else { panic!("{response:?}") };
            value(&serde_json::to_value(status).unwrap())
        })
    }

    /// The SQLite database, opened beside the program.
    pub(crate) fn database(&self) -> Connection {
        Connection::open(self.data.join("midwatch.db")).unwrap()
    }

    /// Runs SQL on the database after dropping the triggers that protect the ledger.
    pub(crate) fn alter_database(&self, sql: &str) {
        let database = self.database();
        let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        let mut statement = database.prepare(triggers).unwrap();
        let names = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
        for name in names.collect::<Result<Vec<_>, _>>().unwrap() {
            database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        database.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Sequence number, kind and hash of every entry, as they are stored.
    pub(crate) fn stored_entries(&self) -> Vec<(u64, String, Vec<u8>)> {
        let database = self.database();
        let sql = "SELECT seq, kind, hash FROM entry ORDER BY seq";
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// Compiles one of the hostile C programs of this folder. Returns the path of the binary.
    pub(crate) fn compile_c(&self, name: &str, source: &str) -> String {
        let (file, program) = (self.root().join(format!("{name}.c")), self.root().join(name));
        fs::write(&file, source).unwrap();
        let compiled = self.wrapped("cc").arg("-o").arg(&program).arg(&file).status().unwrap();
        assert!(compiled.success(), "`cc` failed to compile {name}.c");
        program.to_str().unwrap().to_owned()
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Outcome {
    /// The code of the error document on stdout, and its message and hint.
    pub(crate) fn error(&self) -> (String, String) {
        let document: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let error = &document["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        assert!(error.is_object(), "{self:?}");
        (text(&error["code"]), format!("{}\n{}", text(&error["message"]), text(&error["hint"])))
    }
}

/// The arguments that register a builtin agent.
pub(crate) fn agent_add(name: &str) -> [&str; 5] {
    ["agent", "add", name, "--backend", "builtin"]
}

/// The flags of a schedule that is due once a day, at night.
pub(crate) fn daily<'a>(name: &'a str, agent: &'a str, prompt: &'a str) -> [&'a str; 10] {
    ["--name", name, "--daily", "03:00", "--tz", "UTC", "--agent", agent, "--prompt", prompt]
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
