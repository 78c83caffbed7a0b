//! A damaged ledger is read, never written. The verdict is a file in the data directory, so that it outlives the process
//! that found the damage.
//!
//! Invariant: while the file exists, nothing is written to the ledger. Its content only tells why.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::Error;
use store::Store;
use tracing::error;

use crate::errors;

const FILE_NAME: &str = "damaged";
const REASON_BYTES_MAX: u64 = 4_096;

/// Whether the ledger may be written.
#[derive(Debug)]
pub(crate) struct WriteGuard {
    store: Arc<dyn Store>,
    data: PathBuf,
    /// The damage that this process or an earlier one found.
    verdict: Mutex<Option<String>>,
    /// Why the last write failed; `None` after one that succeeded.
    failing: Mutex<Option<String>>,
}

impl WriteGuard {
    pub(crate) fn new(store: Arc<dyn Store>, data: &Path) -> WriteGuard {
        let verdict = Mutex::new(read_verdict(data));
        WriteGuard { store, data: data.to_owned(), verdict, failing: Mutex::new(None) }
    }

    /// Why nothing may be written, if so.
    pub(crate) fn stopped_writing(&self) -> Option<store::Error> {
        let verdict = || self.verdict().clone().map(store::Error::Damaged);
        self.store.write_stop_reason().or_else(verdict)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.stopped_writing().map_or(Ok(()), |reason| Err(errors::store(reason)))
    }

    /// Notes the result of a write.
    pub(crate) fn note_write(&self, result: Result<(), &store::Error>) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        *failing = result.err().map(ToString::to_string);
    }

    /// Why the last write failed, if it did.
    pub(crate) fn failing(&self) -> Option<String> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// If the store found damage, writes the verdict for later processes.
    pub(crate) fn persist_damage(&self) {
        let Some(store::Error::Damaged(reason)) = self.store.write_stop_reason() else { return };
        let mut verdict = self.verdict();
        if verdict.is_some() {
            return;
        }
        if let Err(error) = write_verdict(&self.data, &reason) {
            error!(%error, "failed to record in the data directory that the ledger is damaged");
        }
        *verdict = Some(reason);
    }

    /// The caller has verified the whole ledger.
    pub(crate) fn clear_damage(&self) {
        let mut verdict = self.verdict();
        if verdict.is_none() {
            return;
        }
        match clear_damage(&self.data) {
            Ok(()) => *verdict = None,
            Err(error) => error!(%error, "failed to remove the record of a damaged ledger"),
        }
    }

    fn verdict(&self) -> MutexGuard<'_, Option<String>> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the ledger counts as damaged, if it does. A verdict that cannot be read still counts.
pub(crate) fn read_verdict(data: &Path) -> Option<String> {
    let path = data.join(FILE_NAME);
    let mut reason = Vec::new();
    let opened = files::open(&path);
    match opened.and_then(|file| file.take(REASON_BYTES_MAX).read_to_end(&mut reason)) {
        Ok(_) => Some(String::from_utf8_lossy(&reason).trim_end().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("`{}` cannot be read: {error}", path.display())),
    }
}

/// Returns once the verdict is on disk.
fn write_verdict(data: &Path, reason: &str) -> io::Result<()> {
    files::replace(&data.join(FILE_NAME), &format!("{reason}\n"))
}

/// Removes the verdict. Call it only after every entry was verified.
pub fn clear_damage(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(FILE_NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(data)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_stays_until_it_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        assert_eq!(read_verdict(data), None);
        write_verdict(data, "entry 2 was changed").unwrap();
        assert_eq!(read_verdict(data).as_deref(), Some("entry 2 was changed"));
        write_verdict(data, &"long".repeat(5_000)).unwrap();
        assert_eq!(read_verdict(data).map(|reason| reason.len() as u64), Some(REASON_BYTES_MAX));
        clear_damage(data).unwrap();
        assert_eq!(read_verdict(data), None);
        clear_damage(data).unwrap();
        fs::create_dir(data.join(FILE_NAME)).unwrap();
        assert!(read_verdict(data).unwrap().contains("cannot be read"));
    }
}
