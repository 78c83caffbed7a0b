//! One process of several on a database: this binary, started again by a test of `nodes.rs`.
//!
//! It works until it is killed, and prints a line for each step that was acknowledged.

use std::env;
use std::sync::Arc;

use ledger::Chain;
use store::{Error, Outcome, PAGE_ENTRIES_MAX, Store};
use store_postgres::Postgres;
use tokio::time::{Duration, sleep};

use crate::places::{Dice, target};
use crate::work::{Step, version_of};

pub(crate) const URL: &str = "MIDWATCH_TEST_NODE_URL";
pub(crate) const NAME: &str = "MIDWATCH_TEST_NODE_NAME";
pub(crate) const SEED: &str = "MIDWATCH_TEST_NODE_SEED";
/// What this test is called for the one that starts it.
pub(crate) const TEST: &str = "node::works_until_it_is_killed";

const WORKERS: u64 = 8;
const SHARED_ROWS: u64 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Nothing to test when nobody started it as a node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_until_it_is_killed() {
    let Some(url) = variable(URL) else { return };
    let name = variable(NAME).unwrap();
    let seed: u64 = variable(SEED).unwrap().parse().unwrap();
    println!();
    // Whoever started it holds the other end; so it does not outlive a test that failed.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let store = loop {
        match Postgres::open(&target(&url)).await {
            Ok(store) => break Arc::new(store),
            // It starts while the database is away.
            Err(Error::Unreachable(_)) => sleep(PAUSE).await,
            Err(error) => return println!("fault cannot open: {error:?}"),
        }
    };
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (store, name) = (Arc::clone(&store), format!("{name}.{worker}"));
        tasks.spawn(async move { work(&store, &name, Dice(seed ^ (worker << 32))).await });
    }
    tasks.spawn(async move { follow(&store).await });
    while let Some(ended) = tasks.join_next().await {
        println!("fault {}", ended.unwrap());
    }
}

#[expect(clippy::disallowed_methods, reason = "how a test tells the process it starts what to do")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Step after step; returns what is wrong.
async fn work(store: &Postgres, name: &str, mut dice: Dice) -> String {
    for number in 0.. {
        let name = format!("{name}.{number}");
        let row = match dice.below(2) {
            0 => format!("own-{}", name.rsplit_once('.').map_or("", |(worker, _)| worker)),
            _ => format!("shared-{}", dice.below(SHARED_ROWS)),
        };
        // Seldom, because a group that counts is not written at once.
        let add = match dice.below(8) {
            0 => i64::try_from(dice.below(9)).unwrap() - 4,
            _ => 0,
        };
        match take(store, Step { name, row, version: 0, add }).await {
            Ok(Some(name)) => println!("ack {name}"),
            Ok(None) => {}
            Err(wrong) => return wrong,
        }
    }
    unreachable!("the numbers do not end")
}

/// Asks again with the same key until there is an answer; `None` if the step cannot be.
async fn take(store: &Postgres, mut step: Step) -> Result<Option<String>, String> {
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
            Ok(Outcome::Answered(body)) if body == step.name.as_bytes() => {
                return Ok(Some(step.name));
            }
            Ok(Outcome::Conflict { .. }) => {}
            Ok(Outcome::OverLimit { .. }) => return Ok(None),
            Err(Error::Unreachable(_) | Error::InDoubt(_)) => sleep(PAUSE).await,
            other => return Err(format!("{step:?}: {other:?}")),
        }
    }
}

/// Reads the log as it grows; returns what is wrong with it.
pub(crate) async fn follow(store: &Postgres) -> String {
    let mut chain = Chain::empty();
    loop {
        match store.entries(chain.size(), PAGE_ENTRIES_MAX).await {
            Ok(page) if page.is_empty() => store.grown_past(chain.size()).await,
            Ok(page) => {
                for fields in page.iter() {
                    if let Err(fault) = chain.check(&fields) {
                        return format!("read after {}: {fault:?}", chain.size());
                    }
                }
            }
            Err(Error::Unreachable(_)) => sleep(PAUSE).await,
            Err(error) => return format!("cannot read: {error:?}"),
        }
    }
}
