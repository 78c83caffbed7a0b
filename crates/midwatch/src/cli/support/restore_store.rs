//! Fills the empty store of a data directory from exported files.

use std::path::PathBuf;

use api::{Error, ProgressSink};
use ledger::VerifyingKey;
use ledger::verify::{Anchors, Report};
use runtime::{ExportDir, RestoredKey, Settings, SystemClock, clear_damage};
use store_postgres::Postgres;

use super::input::unreadable;
use super::staged_database::StagedDatabase;
use crate::directory::Directory;
use crate::storage::Storage;

/// Where a ledger comes from, and what it must be signed with.
#[derive(Debug)]
pub(in crate::cli) struct LedgerSource {
    /// The folder of exported files.
    pub(in crate::cli) exports: PathBuf,
    /// Empty: the keys that the ledger names.
    pub(in crate::cli) keys: Vec<VerifyingKey>,
    pub(in crate::cli) settings: Settings,
}

/// Verifies every entry, and leaves no database in the directory if that fails. The caller holds the directory's lock.
pub(in crate::cli) async fn restore_store(
    directory: &Directory,
    storage: &Storage,
    source: LedgerSource,
    progress: &ProgressSink,
) -> Result<(Report, RestoredKey), Error> {
    let LedgerSource { exports, keys, settings } = source;
    let anchors = Anchors { keys, ..Anchors::default() };
    let (clock, exports) = (SystemClock, ExportDir(exports));
    // Every entry has been verified, so damage recorded about an earlier ledger no longer applies.
    let data = directory.path();
    let clear = || clear_damage(data).map_err(|error| unreadable("verdict in", data, error));
    match storage {
        Storage::File(_) => {
            let staged = StagedDatabase::create(directory)?;
            let store = staged.open()?;
            let done =
                runtime::restore(&store, &clock, &settings, &exports, anchors, progress).await?;
            clear()?;
            staged.commit(store).await?;
            Ok(done)
        }
        Storage::Database(target) => {
            let store = Postgres::open(target).await.map_err(runtime::store_error)?;
            let done =
                runtime::restore(&store, &clock, &settings, &exports, anchors, progress).await?;
            clear()?;
            Ok(done)
        }
    }
}
