//! Two nodes on one database, while connections are cut and nodes and server are killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use test_postgres::{Options, PostgresServer};
use tokio::runtime::Runtime;

use crate::databases::{Rng, now, open};
use crate::{audit, node};

/// Environment variables for the duration and the random seed, see `setting`.
const SECONDS: &str = "MIDWATCH_TEST_NODES_SECONDS";
const SEED: &str = "MIDWATCH_TEST_NODES_SEED";
const SECONDS_DEFAULT: u64 = 12;
const NODES: usize = 2;
/// Even a slow machine commits this many steps.
const ACKNOWLEDGED_MIN: usize = 50;

struct Node {
    process: Child,
    lines: thread::JoinHandle<()>,
}

struct Campaign {
    postgres: PostgresServer,
    url: String,
    rng: Rng,
    started: u64,
    lines: mpsc::Sender<String>,
}

#[test]
fn killed_nodes_on_a_failing_database_leave_one_valid_ledger() {
    let seed = setting(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let duration = Duration::from_secs(setting(SECONDS).unwrap_or(SECONDS_DEFAULT));
    println!("{SEED}={seed}");
    let postgres = PostgresServer::start_with(Options::default().durable()).unwrap();
    let url = postgres.create_database().unwrap();
    let (lines, printed) = mpsc::channel();
    let mut campaign = Campaign { postgres, url, rng: Rng(seed), started: 0, lines };

    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(open(&campaign.url));
    let follower = runtime.spawn({
        let store = store.clone();
        async move { node::follow(&store).await }
    });
    let started = now();
    let mut nodes: Vec<Node> = (0..NODES).map(|_| campaign.start_node()).collect();
    while started.elapsed() < duration {
        campaign.inject_fault(&mut nodes);
        runtime.block_on(audit::check_tables(&*store));
        assert!(!follower.is_finished(), "{:?}", runtime.block_on(follower));
    }
    nodes.into_iter().for_each(Node::kill);
    drop(campaign.lines);

    let mut acknowledged = Vec::new();
    for line in printed {
        if let Some(name) = line.strip_prefix("ack ") {
            acknowledged.push(name.to_owned());
        }
        assert!(!line.contains("fault") && !line.contains("panicked"), "{line}");
    }
    println!("{} acknowledged by {} processes", acknowledged.len(), campaign.started);
    assert!(ACKNOWLEDGED_MIN <= acknowledged.len());
    runtime.block_on(check(&campaign.url, &acknowledged));
    assert!(!follower.is_finished(), "{:?}", runtime.block_on(follower));
}

/// Checks with a new store, which has no state from before.
async fn check(url: &str, acknowledged: &[String]) {
    let store = open(url).await;
    audit::check_tables(&*store).await;
    audit::check_acknowledged(&*store, acknowledged).await;
}

#[expect(clippy::disallowed_methods, reason = "configures a longer run, or repeats one")]
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|value| value.parse().unwrap())
}

impl Campaign {
    /// Waits a moment, then kills a node, cuts connections, or stops or kills the server.
    fn inject_fault(&mut self, nodes: &mut Vec<Node>) {
        thread::sleep(Duration::from_millis(self.rng.below(400)));
        match self.rng.below(10) {
            0..4 => {
                let chosen = usize::try_from(self.rng.below(NODES as u64)).unwrap();
                nodes.swap_remove(chosen).kill();
                nodes.push(self.start_node());
            }
            4..8 => {
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                           WHERE application_name = 'midwatch' AND random() < 0.5";
                self.postgres.query(&self.url, sql).unwrap();
            }
            8 => {
                self.postgres.stop_immediately().unwrap();
                self.postgres.start_again().unwrap();
            }
            _ => {
                self.postgres.kill().unwrap();
                self.postgres.start_again().unwrap();
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the test starts itself as another process")]
    fn start_node(&mut self) -> Node {
        self.started += 1;
        let mut process = Command::new(env::current_exe().unwrap())
            .args([node::TEST, "--exact", "--nocapture", "--test-threads=1"])
            .env(node::URL, &self.url)
            .env(node::NAME, format!("n{}", self.started))
            .env(node::SEED, self.rng.below(u64::MAX).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, lines) = (process.stdout.take().unwrap(), self.lines.clone());
        let lines = thread::spawn(move || {
            // A killed process may leave an incomplete last line.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                lines.send(line).unwrap();
            }
        });
        Node { process, lines }
    }
}

impl Node {
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.join().unwrap();
    }
}
