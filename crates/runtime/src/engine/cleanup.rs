//! Removes files that are older or larger than `[retention]` allows, and measures what the data directory uses.

use std::collections::BTreeSet;
use std::path::Path;

use api::{CleanedUp, Code, DiskUse, Error, Removed};
use kernel::installation::{self, Event as InstallationEvent};
use kernel::{Actor, Noun};
use ledger::export::Month;
use store::{BEFORE_ALL_DUE, Due};
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::clock::micros;
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::retention::{FileClass, FolderUse, StoredFile, StoredFiles};

/// Live runs read at a time.
const LIVE_PAGE: usize = 1_000;
const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;
/// The growth is that of the last days.
const GROWTH_DAYS: i64 = 7;

impl Engine {
    /// Removes the files that are due, and records how many unless there were none. A dry run only reports.
    pub(crate) async fn clean_up(&self, actor: &Actor, dry_run: bool) -> Result<CleanedUp, Error> {
        let due = self.due_files().await?;
        let removed = match dry_run {
            true => due,
            false => spawn_blocking(move || remove(due)).await.map_err(internal)?,
        };
        let counted = count(&removed);
        if !dry_run && !removed.is_empty() {
            let event = InstallationEvent::CleanedUp(counted.clone());
            self.transactions.record_as(actor, event).await?;
        }
        let installation::CleanedUp { outputs, logs, exports, leftovers, bytes } = counted;
        Ok(CleanedUp { dry_run, removed: Removed { outputs, logs, exports, leftovers, bytes } })
    }

    async fn due_files(&self) -> Result<Vec<StoredFile>, Error> {
        let (retention, now) = (self.config.active().retention, self.time.now().as_micros());
        let data = self.installation.settings.data.clone();
        let live = self.live_runs().await?;
        let find = move || {
            let files = StoredFiles::find(&data, Month::containing(now), |run| live.contains(run));
            files.map(|files| files.due(&retention, now))
        };
        let found = spawn_blocking(find).await.map_err(internal)?;
        found.map_err(|error| {
            Error::new(Code::Failed, format!("the data directory cannot be listed: {error}"))
        })
    }

    /// Runs that have not ended, and those whose outcome a human must settle: their output is still needed.
    async fn live_runs(&self) -> Result<BTreeSet<String>, Error> {
        let mut live = BTreeSet::new();
        let mut last: Option<(i64, String)> = None;
        loop {
            let after = last.as_ref().map_or(BEFORE_ALL_DUE, |(due_us, id)| (*due_us, id.as_str()));
            let due = Due { noun: Noun::Run.name(), after, until_us: i64::MAX, limit: LIVE_PAGE };
            let page = self.store.list_due(due).await.map_err(errors::store)?;
            let Some(end) = page.last() else { return Ok(live) };
            last = Some((end.due_us.unwrap_or(i64::MAX), end.id.clone()));
            live.extend(page.into_iter().map(|item| item.id));
        }
    }

    /// What uses the disk, and how it grows. Another thread reads the folders.
    pub(crate) async fn disk_use(&self) -> Result<DiskUse, Error> {
        let (data, since) = (self.installation.settings.data.clone(), self.growth_since());
        let measured = spawn_blocking(move || measure(&data, since)).await.map_err(internal)?;
        self.disk_use_of(measured, since).await
    }

    /// The same, and this thread reads the folders: for a command, which has nothing else to do.
    pub(crate) async fn disk_use_at_once(&self) -> Result<DiskUse, Error> {
        let since = self.growth_since();
        self.disk_use_of(measure(&self.installation.settings.data, since), since).await
    }

    fn growth_since(&self) -> i64 {
        self.time.now().as_micros().saturating_sub(GROWTH_DAYS * DAY_US)
    }

    async fn disk_use_of(
        &self,
        (folders, database): (FolderUse, u64),
        since: i64,
    ) -> Result<DiskUse, Error> {
        let is_file = self.store.location_id().is_some();
        let entries = self.entries_in(since).await?;
        let written =
            folders.recent.saturating_add(if is_file { entries.bytes_of(database) } else { 0 });
        Ok(DiskUse {
            database: is_file.then_some(database),
            outputs: folders.outputs,
            logs: folders.logs,
            exports: folders.exports,
            bytes_per_day: written.checked_div(entries.days).unwrap_or_default(),
            entries_per_day: entries.recent.checked_div(entries.days).unwrap_or_default(),
        })
    }

    /// Counts the entries after an instant. Entries are in the order of their times, so few are read.
    async fn entries_in(&self, since_us: i64) -> Result<RecentEntries, Error> {
        let total = self.store.head().await.map_err(errors::store)?.size();
        let (mut low, mut high) = (0, total);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.recorded_at(middle).await? {
                Some(at) if since_us <= at => high = middle,
                Some(_) => low = middle + 1,
                None => break,
            }
        }
        let first = self.recorded_at(0).await?.unwrap_or(since_us).max(since_us);
        let span = self.time.now().as_micros().saturating_sub(first);
        let days =
            u64::try_from(span.saturating_add(DAY_US - 1) / DAY_US).unwrap_or_default().max(1);
        Ok(RecentEntries { total, recent: total.saturating_sub(low), days })
    }

    /// When the entry after `seq` was recorded.
    async fn recorded_at(&self, seq: u64) -> Result<Option<i64>, Error> {
        let page = self.store.entries(seq, 1).await.map_err(errors::store)?;
        Ok(page.iter().next().map(|fields| fields.ts_us))
    }
}

/// The entries of the last days.
struct RecentEntries {
    total: u64,
    recent: u64,
    /// The days that they were recorded in, at least one.
    days: u64,
}

impl RecentEntries {
    /// Their share of a number of bytes.
    fn bytes_of(&self, bytes: u64) -> u64 {
        let share = u128::from(bytes) * u128::from(self.recent);
        u64::try_from(share / u128::from(self.total.max(1))).unwrap_or(u64::MAX)
    }
}

/// The use of the folders of a data directory, and the size of the database in it.
fn measure(data: &Path, since_us: i64) -> (FolderUse, u64) {
    let files = ["midwatch.db", "midwatch.db-wal"].iter();
    let sizes = files.filter_map(|name| Some(std::fs::metadata(data.join(name)).ok()?.len()));
    (FolderUse::measure(data, since_us), sizes.sum())
}

/// Removes files, and returns those that are gone.
fn remove(due: Vec<StoredFile>) -> Vec<StoredFile> {
    let is_removed = |file: &StoredFile| match file.remove() {
        Ok(()) => true,
        Err(error) => {
            warn!(path = %file.path.display(), %error, "failed to remove an old file");
            false
        }
    };
    due.into_iter().filter(is_removed).collect()
}

fn count(files: &[StoredFile]) -> installation::CleanedUp {
    let of = |class| files.iter().filter(|file| file.class == class).count() as u64;
    installation::CleanedUp {
        outputs: of(FileClass::Output),
        logs: of(FileClass::Log),
        exports: of(FileClass::Export),
        leftovers: of(FileClass::Leftover),
        bytes: files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes)),
    }
}

impl Engine {
    /// Drops stored responses that are older than the configuration allows.
    pub(crate) async fn drop_old_responses(&self) -> Result<(), Error> {
        let age = self.config.active().retention.responses_age;
        if age.is_zero() {
            return Ok(());
        }
        let before = self.time.now().as_micros().saturating_sub(micros(age));
        self.store.delete_responses(before).await.map_err(errors::store)
    }
}
