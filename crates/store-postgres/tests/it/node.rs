//! A node: one of several processes on a database. `crash_campaign.rs` starts this test binary as a node.
//!
//! It commits steps until it is killed, and prints a line for each acknowledged step.

use std::env;
use std::sync::Arc;

use ledger::Chain;
use store::{Error, Outcome, PAGE_ENTRIES_MAX, Store};
use store_postgres::Postgres;
use tokio::time::{Duration, sleep};

use crate::databases::{Rng, target};
use crate::workload::{Step, version_of};

pub(crate) const URL: &str = "MIDWATCH_TEST_NODE_URL";
pub(crate) const NAME: &str = "MIDWATCH_TEST_NODE_NAME";
pub(crate) const SEED: &str = "MIDWATCH_TEST_NODE_SEED";
/// The name of the test below, by which a node is started.
pub(crate) const TEST: &str = "node::commits_until_killed";

const WORKERS: u64 = 8;
const SHARED_ROWS: u64 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Does nothing unless `crash_campaign.rs` started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_until_killed() {
    let Some(url) = variable(URL) else { return };
    let name = variable(NAME).unwrap();
    let seed: u64 = variable(SEED).unwrap().parse().unwrap();
    println!();
    // The parent holds the other end of stdin, so a node does not outlive a failed test.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let store = loop {
        match Postgres::open(&target(&url)).await {
            Ok(store) => break Arc::new(store),
            // The database may be down when a node starts.
            Err(Error::Unreachable(_)) => sleep(PAUSE).await,
            Err(error) => return println!("fault cannot open: {error:?}"),
        }
    };
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (store, name) = (Arc::clone(&store), format!("{name}.{worker}"));
        tasks.spawn(async move { commit_steps(&store, &name, Rng(seed ^ (worker << 32))).await });
    }
    tasks.spawn(async move { follow(&store).await });
    while let Some(ended) = tasks.join_next().await {
        println!("fault {}", ended.unwrap());
    }
}

#[expect(clippy::disallowed_methods, reason = "the parent configures a node by its environment")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Commits step after step; returns the first fault.
async fn commit_steps(store: &Postgres, name: &str, mut rng: Rng) -> String {
    for number in 0.. {
        let name = format!("{name}.{number}");
        let row = match rng.below(2) {
            0 => format!("own-{}", name.rsplit_once('.').map_or("", |(worker, _)| worker)),
            _ => format!("shared-{}", rng.below(SHARED_ROWS)),
        };
        // Rarely, because a group with counters is not written optimistically.
        let add = match rng.below(8) {
            0 => i64::try_from(rng.below(9)).unwrap() - 4,
            _ => 0,
        };
        match commit_step(store, Step { name, row, version: 0, add }).await {
            Ok(Some(name)) => println!("ack {name}"),
            Ok(None) => {}
            Err(fault) => return fault,
        }
    }
    unreachable!("an endless range")
}

/// Commits a step, retrying with the same idempotency key; `None` if it exceeds the limit.
async fn commit_step(store: &Postgres, mut step: Step) -> Result<Option<String>, String> {
    loop {
        step.version = match version_of(store, &step.row).await {
            Ok(version) => version + 1,
            Err(Error::Unreachable(_)) => {
                sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(format!("cannot load: {error:?}")),
        };
        match store.commit(step.commit()).await {
            Ok(Outcome::Committed(receipt)) if receipt.first == receipt.last => {
                return Ok(Some(step.name));
            }
            Ok(Outcome::Replayed(body)) if body == step.name.as_bytes() => {
                return Ok(Some(step.name));
            }
            Ok(Outcome::Conflict { .. }) => {}
            Ok(Outcome::OverLimit { .. }) => return Ok(None),
            Err(Error::Unreachable(_) | Error::InDoubt(_)) => sleep(PAUSE).await,
            other => return Err(format!("{step:?}: {other:?}")),
        }
    }
}

/// Reads and verifies the ledger as it grows; returns the first fault.
pub(crate) async fn follow(store: &Postgres) -> String {
    let mut chain = Chain::empty();
    loop {
        match store.entries(chain.size(), PAGE_ENTRIES_MAX).await {
            Ok(page) if page.is_empty() => store.wait_for_entries_after(chain.size()).await,
            Ok(page) => {
                for entry in page.iter() {
                    if let Err(fault) = chain.verify_next(&entry) {
                        return format!("read after {}: {fault:?}", chain.size());
                    }
                }
            }
            Err(Error::Unreachable(_)) => sleep(PAUSE).await,
            Err(error) => return format!("cannot read: {error:?}"),
        }
    }
}
