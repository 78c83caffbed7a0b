//! The log as files, one pair for each month.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use api::{Code, Error, Export, Exported, LedgerExport, ProgressSink};
use kernel::Body;
use kernel::watch::{self, Event as WatchEvent};
use ledger::export::{End, Manifest, Month, MonthWriter, WriteError, Written};
use ledger::{Chain, Hash};
use sha2::{Digest, Sha256};
use store::{PAGE_ENTRIES_MAX, Page};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::errors::{self, internal};
use crate::pair::Pair;
use crate::stored;
use crate::watch::Engine;

const DIRECTORY: &str = "exports";

/// Which months to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All, the current one as far as it goes.
    All,
    /// Those that have ended.
    Complete,
}

/// Months that have ended and that this process has exported, or found to be exported. Neither they
/// nor the log before their end change any more, so they are not read again each hour.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    months: Vec<Month>,
    /// The log at the end of the last of them.
    chain: Chain,
    /// The hash of its manifest.
    manifest: Option<Hash>,
}

impl Ended {
    pub(crate) fn none() -> Ended {
        Ended { months: Vec::new(), chain: Chain::empty(), manifest: None }
    }

    fn are_in(&self, dir: &Path) -> bool {
        self.months.iter().all(|month| Pair::of(dir, *month).exists())
    }
}

impl Engine {
    pub(crate) async fn export(
        &self,
        asked: LedgerExport,
        progress: &ProgressSink,
    ) -> Result<Exported, Error> {
        let dir = asked.dir.map_or_else(|| self.exports(), PathBuf::from);
        let _one_at_a_time = self.exporting().lock().await;
        let (exported, _) = self.export_to(dir, Which::All, Ended::none(), progress).await?;
        Ok(exported)
    }

    /// Exports the months that have ended to the usual place.
    pub(crate) async fn export_ended(&self) -> Result<Exported, Error> {
        let dir = self.exports();
        let mut known = self.exporting().lock().await;
        let ended = if known.are_in(&dir) { known.clone() } else { Ended::none() };
        let (exported, ended) =
            self.export_to(dir, Which::Complete, ended, &ProgressSink::default()).await?;
        *known = ended;
        Ok(exported)
    }

    fn exports(&self) -> PathBuf {
        self.settings().data.join(DIRECTORY)
    }

    /// The caller holds the lock on exporting.
    async fn export_to(
        &self,
        dir: PathBuf,
        which: Which,
        ended: Ended,
        progress: &ProgressSink,
    ) -> Result<(Exported, Ended), Error> {
        let head = self.store().head().await.map_err(errors::store)?;
        let job = Job {
            watch: self.clone(),
            runtime: Handle::current(),
            end: head.size(),
            this_month: Month::of(self.now().as_micros()),
            which,
            dir: dir.clone(),
            progress: progress.clone(),
        };
        let (months, ended) = spawn_blocking(move || job.run(ended)).await.map_err(internal)??;
        let mut exports = Vec::with_capacity(months.len());
        for (export, manifest_hash) in months {
            if export.written {
                self.note(WatchEvent::Exported(watch::Exported {
                    month: export.month.clone(),
                    first: export.first,
                    last: export.last,
                    manifest_hash: manifest_hash.to_string(),
                }))
                .await?;
            }
            exports.push(export);
        }
        Ok((Exported { dir: dir.display().to_string(), exports }, ended))
    }
}

/// One export, on a thread that may block.
struct Job {
    watch: Engine,
    runtime: Handle,
    /// Entries after this one are left for the next export.
    end: u64,
    this_month: Month,
    which: Which,
    dir: PathBuf,
    progress: ProgressSink,
}

impl Job {
    /// Every month in turn after those that need no look, with the hash of its manifest's file.
    fn run(mut self, mut ended: Ended) -> Result<(Vec<(Export, Hash)>, Ended), Error> {
        fs::create_dir_all(&self.dir).map_err(|error| self.failed(&self.dir, error))?;
        if self.which == Which::All {
            self.end = self.end_worth_writing()?;
        }
        let next = self.month_after(ended.chain.size())?;
        if next.is_some_and(|next| ended.months.contains(&next)) {
            // The month had not ended after all: an entry was on its way, or the clock went back.
            ended = Ended::none();
        }
        let mut done = Vec::new();
        while let Some(month) = self.month_after(ended.chain.size())? {
            if self.which == Which::Complete && self.this_month <= month {
                break;
            }
            let first = ended.chain.size() + 1;
            let (after, manifest_hash, written) = self.month(month, ended.chain, ended.manifest)?;
            let (file, last) = (month.lines_name(), after.size());
            done.push((
                Export { month: month.to_string(), file, first, last, written },
                manifest_hash,
            ));
            ended.months.push(month);
            (ended.chain, ended.manifest) = (after, Some(manifest_hash));
        }
        Ok((done, ended))
    }

    /// Where the last export ended, if only events that tell of exports came since: each export adds
    /// one, and would never find its month unchanged.
    fn end_worth_writing(&self) -> Result<u64, Error> {
        let mut end = self.end;
        while let Some(before) = end.checked_sub(1)
            && let Some(entry) = self.page(before, 1)?.iter().next()
        {
            let last = self.existing(&Pair::of(&self.dir, Month::of(entry.ts_us)));
            if last.is_some_and(|(manifest, _)| manifest.after.size == end) {
                return Ok(end);
            }
            if !stored::body(&entry).is_ok_and(|body| tells_of_an_export(&body)) {
                break;
            }
            end = before;
        }
        Ok(self.end)
    }

    /// A month whose files are there and still right is not written again.
    fn month(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
    ) -> Result<(Chain, Hash, bool), Error> {
        let pair = Pair::of(&self.dir, month);
        pair.settle().map_err(|error| self.failed(&self.dir, error))?;
        let mut after = before.clone();
        self.for_each(month, before.size(), |fields| Ok(after.check(fields)?))?;
        if let Some((manifest, hash)) = self.existing(&pair)
            && manifest.before == End::from(&before)
            && manifest.after == End::from(&after)
            && manifest.previous == previous
            && pair.has_lines(&manifest)
        {
            return Ok((after, hash, false));
        }
        let hash = self.write(month, before, previous, &pair)?;
        Ok((after, hash, true))
    }

    fn existing(&self, pair: &Pair) -> Option<(Manifest, Hash)> {
        let note = pair.note()?;
        let manifest = Manifest::open(&note, &[self.watch.key().verifying_key().clone()]).ok()?;
        Some((manifest, sha256(note.as_bytes())))
    }

    fn write(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
        pair: &Pair,
    ) -> Result<Hash, Error> {
        let written = self.write_lines(month, before, previous, pair);
        let manifest = written.inspect_err(|_| pair.discard_new())?;
        let note = manifest.sign(&[self.watch.key()]).map_err(internal)?;
        pair.put(&note).map_err(|error| self.failed(&self.dir, error))?;
        Ok(sha256(note.as_bytes()))
    }

    /// Writes the lines beside those that are there, and reads them back.
    fn write_lines(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
        pair: &Pair,
    ) -> Result<Manifest, Error> {
        let failed = |error| self.failed(pair.new_lines(), error);
        let output = BufWriter::new(File::create(pair.new_lines()).map_err(failed)?);
        let instance = self.watch.instance().to_owned();
        let start = before.size();
        let mut writer = MonthWriter::new(output, instance, month, before, previous);
        self.for_each(month, start, |fields| writer.write(fields))?;
        let Written { output, manifest, .. } =
            writer.finish().map_err(|error| self.unwritten(error))?;
        let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        match pair.has_new_lines(&manifest).map_err(failed)? {
            true => Ok(manifest),
            false => {
                let path = pair.new_lines().display();
                Err(internal(format!("`{path}` reads back other than written")))
            }
        }
    }

    fn month_after(&self, seq: u64) -> Result<Option<Month>, Error> {
        let page = if seq < self.end { self.page(seq, 1)? } else { Page::default() };
        Ok(page.iter().next().map(|fields| Month::of(fields.ts_us)))
    }

    fn for_each(
        &self,
        month: Month,
        after: u64,
        mut visit: impl FnMut(&ledger::Fields<'_>) -> Result<(), WriteError>,
    ) -> Result<(), Error> {
        let mut at = after;
        while at < self.end {
            let limit = usize::try_from(self.end - at).unwrap_or(PAGE_ENTRIES_MAX);
            let page = self.page(at, limit)?;
            let in_month = page.iter().take_while(|fields| Month::of(fields.ts_us) == month);
            let mut visited = 0;
            for fields in in_month {
                visit(&fields).map_err(|error| self.unwritten(error))?;
                at = fields.seq;
                visited += 1;
            }
            self.progress.show(at, self.end);
            if visited < page.len() || page.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn page(&self, after: u64, limit: usize) -> Result<Page, Error> {
        self.runtime.block_on(self.watch.store().entries(after, limit)).map_err(errors::store)
    }

    fn unwritten(&self, error: WriteError) -> Error {
        match error {
            WriteError::Io(error) => self.failed(&self.dir, error),
            WriteError::Damaged(fault) => errors::store(store::Error::Damaged(fault.to_string())),
            other => internal(other),
        }
    }

    fn failed(&self, path: &Path, error: io::Error) -> Error {
        let code = match error.kind() {
            io::ErrorKind::StorageFull => Code::DiskFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::Failed,
        };
        Error::new(code, format!("cannot write the export `{}`: {error}", path.display()))
            .hint("months that were exported before are untouched")
    }
}

fn tells_of_an_export(body: &Body) -> bool {
    matches!(body, Body::Watch(_, WatchEvent::Exported(_)))
}

fn sha256(bytes: &[u8]) -> Hash {
    Hash::from_bytes(Sha256::digest(bytes).into())
}
