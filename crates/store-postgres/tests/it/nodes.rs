//! Two processes on one database that is cut off and restarted, while they are killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cluster::Cluster;
use tokio::runtime::Runtime;

use crate::places::{Dice, now, open};
use crate::{audit, node};

/// How long it goes on, and where chance begins; see `setting`.
const SECONDS: &str = "MIDWATCH_TEST_NODES_SECONDS";
const SEED: &str = "MIDWATCH_TEST_NODES_SEED";
const SECONDS_USUAL: u64 = 12;
const NODES: usize = 2;
/// Even a slow machine gets this far.
const ACKNOWLEDGED_MIN: usize = 50;

struct Node {
    process: Child,
    lines: thread::JoinHandle<()>,
}

struct Campaign {
    cluster: Cluster,
    url: String,
    dice: Dice,
    started: u64,
    lines: mpsc::Sender<String>,
}

#[test]
fn killed_processes_on_a_failing_database_leave_one_valid_log() {
    let seed = setting(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let span = Duration::from_secs(setting(SECONDS).unwrap_or(SECONDS_USUAL));
    println!("{SEED}={seed}");
    let cluster = Cluster::start().unwrap();
    let url = cluster.database().unwrap();
    let (lines, told) = mpsc::channel();
    let mut campaign = Campaign { cluster, url, dice: Dice(seed), started: 0, lines };

    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(open(&campaign.url));
    let follower = runtime.spawn({
        let store = store.clone();
        async move { node::follow(&store).await }
    });
    let begun = now();
    let mut nodes: Vec<Node> = (0..NODES).map(|_| campaign.start_node()).collect();
    while begun.elapsed() < span {
        campaign.trouble(&mut nodes);
        runtime.block_on(audit::tables(&*store));
        assert!(!follower.is_finished(), "{:?}", runtime.block_on(follower));
    }
    nodes.into_iter().for_each(Node::kill);
    drop(campaign.lines);

    let mut acknowledged = Vec::new();
    for line in told {
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

/// By a store of its own: it has seen nothing before.
async fn check(url: &str, acknowledged: &[String]) {
    let store = open(url).await;
    audit::tables(&*store).await;
    audit::acknowledged(&*store, acknowledged).await;
}

#[expect(clippy::disallowed_methods, reason = "a longer run, or the same one again")]
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|value| value.parse().unwrap())
}

impl Campaign {
    /// One thing that goes wrong, after a while of work.
    fn trouble(&mut self, nodes: &mut Vec<Node>) {
        thread::sleep(Duration::from_millis(self.dice.below(400)));
        match self.dice.below(10) {
            0..4 => {
                let chosen = usize::try_from(self.dice.below(NODES as u64)).unwrap();
                nodes.swap_remove(chosen).kill();
                nodes.push(self.start_node());
            }
            4..8 => {
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                           WHERE application_name = 'midwatch' AND random() < 0.5";
                self.cluster.query(&self.url, sql).unwrap();
            }
            8 => {
                self.cluster.stop_immediately().unwrap();
                self.cluster.start_again().unwrap();
            }
            _ => {
                self.cluster.kill().unwrap();
                self.cluster.start_again().unwrap();
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
            .env(node::SEED, self.dice.below(u64::MAX).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, lines) = (process.stdout.take().unwrap(), self.lines.clone());
        let lines = thread::spawn(move || {
            // The last line of a process that is killed may be half a line.
            for line in BufReader::new(told).lines().map_while(Result::ok) {
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
