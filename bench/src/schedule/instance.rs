//! An engine on a data directory, and what the benchmarks read from it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::AgentBackend;
use anyhow::ensure;
use api::{StatusShow, send};
use kernel::Actor;
use runtime::{Clock, Engine, LocalHandle, SystemClock};
use store::{PAGE_ENTRIES_MAX, Store};
use store_sqlite::Sqlite;

use super::cost::{Cost, Moment};
use crate::store::engine_on;

/// The longest wait for a condition.
const WAIT_MAX: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An open data directory.
pub(crate) struct Instance {
    pub(crate) store: Arc<Sqlite>,
    pub(crate) engine: Engine,
    pub(crate) handle: Arc<LocalHandle>,
}

/// The state of the store at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    moment: Moment,
    /// Entries of the ledger.
    pub(crate) size: u64,
    transactions: u64,
}

impl Instance {
    pub(crate) async fn open(
        data: &Path,
        backend: Arc<dyn AgentBackend>,
    ) -> anyhow::Result<Instance> {
        let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
        let engine = engine_on(Arc::clone(&store) as Arc<dyn Store>, data, backend).await?;
        let handle = Arc::new(engine.handle(Actor::local_user(1000)));
        Ok(Instance { store, engine, handle })
    }

    /// Signs the ledger and closes the database.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let Instance { store, engine, handle } = self;
        engine.close().await?;
        drop((engine, handle));
        match Arc::into_inner(store) {
            Some(store) => Ok(store.close()?),
            None => anyhow::bail!("the store is still in use"),
        }
    }

    pub(crate) async fn mark(&self) -> anyhow::Result<Mark> {
        let (size, transactions) = (self.size().await?, self.store.transactions());
        Ok(Mark { moment: Moment::now(), size, transactions })
    }

    /// Waits until the check of the ledger and the tables after a start has ended.
    pub(crate) async fn wait_for_startup_check(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let found = send(&*self.handle, StatusShow {}).await?.ledger.check;
            if found != "running" && found != "not run" {
                return Ok(());
            }
            ensure!(started.elapsed() < WAIT_MAX, "the check of the ledger takes too long");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn wait_for_entries(&self, size: u64) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let found = self.size().await?;
            if size <= found {
                return Ok(());
            }
            ensure!(started.elapsed() < WAIT_MAX, "{found} of {size} entries");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Counts the entries of a kind with numbers above `after`, up to `until`.
    pub(crate) async fn count(&self, kind: &str, after: u64, until: u64) -> anyhow::Result<u64> {
        let (mut count, mut after) = (0, after);
        while after < until {
            let page = self.store.entries(after, PAGE_ENTRIES_MAX).await?;
            let Some(last) = page.last_seq() else { break };
            let found = page.iter().filter(|it| it.seq <= until && it.kind == kind);
            count += found.count() as u64;
            after = last;
        }
        Ok(count)
    }

    async fn size(&self) -> anyhow::Result<u64> {
        Ok(self.store.head().await?.size())
    }
}

impl Mark {
    pub(crate) fn until(self, end: Mark) -> Cost {
        let transactions = end.transactions - self.transactions;
        Cost { transactions, ..self.moment.until(end.moment) }
    }
}

pub(crate) fn now_us() -> i64 {
    SystemClock.now().as_micros()
}

/// Sleeps until a time of day.
pub(crate) async fn sleep_until(at_us: i64) {
    let ahead = u64::try_from(at_us - now_us()).unwrap_or_default();
    tokio::time::sleep(Duration::from_micros(ahead)).await;
}
