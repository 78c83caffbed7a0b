//! A data directory with a watch on it, and what is read from it while it is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use api::{StatusAsk, ask};
use kernel::Actor;
use runtime::{Clock, Local, SystemClock, Engine};
use store::{PAGE_ENTRIES_MAX, Store};
use store_sqlite::Sqlite;

use super::cost::{Between, Moment};
use crate::store::watch_on;

/// The longest that a phase waits for something to come true.
const WAIT_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// An open data directory.
pub(crate) struct Place {
    pub(crate) store: Arc<Sqlite>,
    pub(crate) watch: Engine,
    pub(crate) handle: Arc<Local>,
}

/// How far things were at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    moment: Moment,
    /// Entries of the log.
    pub(crate) size: u64,
    transactions: u64,
}

impl Place {
    pub(crate) async fn open(data: &Path) -> anyhow::Result<Place> {
        let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
        let watch = watch_on(Arc::clone(&store) as Arc<dyn Store>, data).await?;
        let handle = Arc::new(watch.handle(Actor::local_user(1000)));
        Ok(Place { store, watch, handle })
    }

    /// Leaves a signed log and a tidy file.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let Place { store, watch, handle } = self;
        watch.leave().await?;
        drop((watch, handle));
        match Arc::into_inner(store) {
            Some(store) => Ok(store.close()?),
            None => anyhow::bail!("somebody still holds the store"),
        }
    }

    pub(crate) async fn mark(&self) -> anyhow::Result<Mark> {
        let (size, transactions) = (self.size().await?, self.store.transactions());
        Ok(Mark { moment: Moment::now(), size, transactions })
    }

    /// While the log and the tables are checked after a start, nothing else should be measured.
    pub(crate) async fn checked(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let found = ask(&*self.handle, StatusAsk {}).await?.log.check;
            if found != "running" && found != "not run" {
                return Ok(());
            }
            ensure!(started.elapsed() < WAIT_MAX, "the check of the log takes too long");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn grows_to(&self, size: u64) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let found = self.size().await?;
            if size <= found {
                return Ok(());
            }
            ensure!(started.elapsed() < WAIT_MAX, "{found} of {size} entries");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// How many entries of a kind are after one place of the log and not after another.
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
    pub(crate) fn until(self, end: Mark) -> Between {
        let transactions = end.transactions - self.transactions;
        Between { transactions, ..self.moment.until(end.moment) }
    }
}

pub(crate) fn now_us() -> i64 {
    SystemClock.now().as_micros()
}

/// Waits until an instant by the time of day.
pub(crate) async fn reaches(at_us: i64) {
    let ahead = u64::try_from(at_us - now_us()).unwrap_or_default();
    tokio::time::sleep(Duration::from_micros(ahead)).await;
}
