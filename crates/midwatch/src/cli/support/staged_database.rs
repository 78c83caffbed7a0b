//! A database that is written under another name and moved into place once it is complete, so that a
//! failure leaves the data directory as it was.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use store::Store;
use store_sqlite::Sqlite;

use crate::directory::Directory;

/// Files that SQLite keeps beside a database. Those of an old database would corrupt a new one.
const SIDE_FILE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Invariant: the directory has no database yet, and the caller holds the directory's lock.
#[derive(Debug)]
pub(in crate::cli) struct StagedDatabase {
    directory: PathBuf,
    database: PathBuf,
    staged: PathBuf,
    /// The path of the signing key if none exists yet: a key that a failed restore makes is removed.
    new_key: Option<PathBuf>,
    is_in_place: bool,
}

impl StagedDatabase {
    pub(in crate::cli) fn create(directory: &Directory) -> Result<StagedDatabase, Error> {
        let (path, database) = (directory.path(), directory.database());
        if database.exists() {
            let what = format!("`{}` already holds a ledger", path.display());
            return Err(
                Error::new(Code::Exists, what).hint("name an empty directory with `--data DIR`")
            );
        }
        refuse_side_files(&database)?;
        let (staged, key) = (path.join("restoring.db"), path.join("signing.key"));
        remove_database(&staged);
        let new_key = (!key.exists()).then_some(key);
        let directory = path.to_owned();
        Ok(StagedDatabase { directory, database, staged, new_key, is_in_place: false })
    }

    /// Opens the store to fill. Drop it before `self`.
    pub(in crate::cli) fn open(&self) -> Result<Sqlite, Error> {
        Sqlite::open(&self.staged).map_err(runtime::store_error)
    }

    /// Moves the database into place, after checking that the file holds everything written to it.
    pub(in crate::cli) async fn commit(mut self, store: Sqlite) -> Result<(), Error> {
        let written = store.head().await.map_err(runtime::store_error)?;
        store.close().map_err(runtime::store_error)?;
        let wal = fs::metadata(side_file(&self.staged, "-wal"));
        let store = Sqlite::open_read_only(&self.staged).map_err(runtime::store_error)?;
        let found = store.head().await.map_err(runtime::store_error)?;
        drop(store);
        if wal.is_ok_and(|wal| 0 < wal.len()) || found != written {
            let what = format!(
                "the new ledger `{}` does not hold what was written to it",
                self.staged.display()
            );
            return Err(Error::new(Code::Failed, what).hint("check the disk and try again"));
        }
        self.move_into_place().map_err(|error| {
            let path = self.staged.display();
            let what = format!("the new ledger `{path}` cannot be moved into place: {error}");
            Error::new(Code::Failed, what)
        })?;
        self.is_in_place = true;
        Ok(())
    }

    fn move_into_place(&self) -> io::Result<()> {
        fs::rename(&self.staged, &self.database)?;
        File::open(&self.directory)?.sync_all()
    }
}

impl Drop for StagedDatabase {
    fn drop(&mut self) {
        remove_database(&self.staged);
        if !self.is_in_place {
            remove_database(&self.database);
            let _ = self.new_key.as_ref().map(fs::remove_file);
        }
    }
}

/// Refuses to start beside the side files of a database that was moved away: they may hold its newest
/// entries.
fn refuse_side_files(database: &Path) -> Result<(), Error> {
    let paths = SIDE_FILE_SUFFIXES.map(|suffix| side_file(database, suffix));
    let found = paths.into_iter().filter(|path| path.exists());
    let found: Vec<String> = found.map(|path| format!("`{}`", path.display())).collect();
    if found.is_empty() {
        return Ok(());
    }
    let what = format!("{} belong to a database that is no longer here", found.join(" and "));
    Err(Error::new(Code::Exists, what).hint(
        "they may hold its newest entries: move them next to that database, named after it, and \
         try again",
    ))
}

fn remove_database(database: &Path) {
    let side_files = SIDE_FILE_SUFFIXES.map(|suffix| side_file(database, suffix));
    for path in side_files.iter().map(PathBuf::as_path).chain([database]) {
        let _ = fs::remove_file(path);
    }
}

fn side_file(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
