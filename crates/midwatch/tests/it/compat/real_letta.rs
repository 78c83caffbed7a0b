//! The real App Server of Letta Code, with its local backend and its deterministic model.
//! `cargo xtask letta` installs the server and runs this test.
#![expect(clippy::disallowed_methods, reason = "the test starts the real server")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::world::World;

const PROMPT: &str = "what is new since the dogwatch?";

/// The server, its agent, and the directory of its conversations.
struct AppServer {
    child: Child,
    home: TempDir,
    url: String,
    agent: String,
}

impl AppServer {
    fn start() -> AppServer {
        let home = tempfile::tempdir().unwrap();
        let create = ["agents", "create", "--name", "ada", "--personality", "blank"];
        let created = letta(home.path()).args(create).output().unwrap();
        let created: Value = serde_json::from_slice(&created.stdout).unwrap();
        let agent = created["id"].as_str().unwrap().to_owned();
        let mut server = letta(home.path());
        server.args(["server", "--listen", "--openai-api"]).process_group(0);
        let mut child = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.starts_with("OpenAI:")).unwrap();
        let url = line.split_whitespace().last().unwrap().trim_end_matches("/v1").to_owned();
        AppServer { child, home, url, agent }
    }

    /// How often each conversation contains the prompt, for those that do.
    fn prompts(&self) -> Vec<usize> {
        let conversations = self.home.path().join(".letta/lc-local-backend/conversations");
        let files = fs::read_dir(conversations).unwrap();
        let files = files.map(|it| it.unwrap().path().join("messages.jsonl"));
        let texts =
            files.filter(|file| file.exists()).map(|file| fs::read_to_string(file).unwrap());
        let mut counts: Vec<usize> = texts.map(|text| text.matches(PROMPT).count()).collect();
        counts.retain(|count| 0 < *count);
        counts.sort_unstable();
        counts
    }
}

impl Drop for AppServer {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        kill_process_group(group, Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

fn letta(home: &Path) -> Command {
    let program = std::env::var_os("MIDWATCH_LETTA").map(PathBuf::from);
    let mut command = Command::new(program.expect("`cargo xtask letta` sets it"));
    command.env("HOME", home).stdin(Stdio::null());
    // Nothing leaves the machine.
    for (name, value) in [
        ("LETTA_CODE_TELEM", "0"),
        ("DO_NOT_TRACK", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("LETTA_LOCAL_BACKEND_EXECUTOR", "deterministic"),
    ] {
        command.env(name, value);
    }
    command.args(["--backend", "local"]);
    command
}

fn add(world: &World, server: &AppServer, name: &str, more: &[&str]) -> String {
    let kind = ["agent", "add", name, "--backend", "letta", "--api", "openai"];
    let server = ["--url", &server.url, "--remote-id"];
    world.ok(&[&kind[..], &server, more].concat())
}

fn schedule(world: &World, agent: &str) -> String {
    world.add_daily(agent, agent, PROMPT)
}

#[test]
#[ignore = "needs a Letta server: `cargo xtask letta` installs one and runs this"]
fn real_app_server_is_prompted_once_per_run() {
    let server = AppServer::start();
    let world = World::new();
    let output = add(&world, &server, "ada", &[&server.agent]);
    assert!(output.contains("it is the App Server of Letta Code"), "{output}");
    add(&world, &server, "streamed", &[&server.agent, "--send", "stream"]);
    add(&world, &server, "unknown", &["agent-unknown"]);
    let tested = world.json(&["agent", "test", "ada"]);
    assert_eq!(tested["test"]["passed"], true, "{tested}");

    let schedules = ["ada", "streamed"].map(|agent| schedule(&world, agent));
    let daemon = world.up();
    for schedule in &schedules {
        let run = world.wait_for_state(&world.start_run(schedule), "done");
        assert_eq!(run["output"]["text"], "pong", "{run}");
    }
    let run = world.wait_for_state(&world.start_run(&schedule(&world, "unknown")), "failed");
    assert_eq!(run["reason"], "not_found");
    daemon.kill();

    // A finished run is not repeated, and a schedule continues its conversation.
    let daemon = world.up();
    world.wait_for_state(&world.start_run(&schedules[0]), "done");
    daemon.stop();
    assert_eq!(server.prompts(), [1, 2]);
    world.verified();
}
