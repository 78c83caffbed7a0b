//! The database of a directory that is recreated: written beside its place, and put there when it
//! is whole. Until then a failure leaves nothing behind but what was there before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use store::Store;
use store_sqlite::Sqlite;

use crate::directory::Directory;

/// What SQLite keeps beside a database. Left of another one, it would be taken for a part of the new.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Invariant: nothing is at the place of the database, and the caller holds the directory's lock.
#[derive(Debug)]
pub(super) struct Restoring {
    directory: PathBuf,
    database: PathBuf,
    aside: PathBuf,
    /// The signing key, if there is none yet: one that an attempt makes goes with it.
    new_key: Option<PathBuf>,
    is_done: bool,
}

impl Restoring {
    pub(super) fn begin(directory: &Directory) -> Result<Restoring, Error> {
        let (path, database) = (directory.path(), directory.database());
        if database.exists() {
            let what = format!("`{}` holds a log already", path.display());
            return Err(
                Error::new(Code::Exists, what).hint("name an empty directory with `--data DIR`")
            );
        }
        refuse_sides(&database)?;
        let (aside, key) = (path.join("restoring.db"), path.join("signing.key"));
        discard(&aside);
        let new_key = (!key.exists()).then_some(key);
        Ok(Restoring { directory: path.to_owned(), database, aside, new_key, is_done: false })
    }

    /// The store to fill, dropped before this is.
    pub(super) fn open(&self) -> Result<Sqlite, Error> {
        Sqlite::open(&self.aside).map_err(runtime::store_error)
    }

    /// Puts the database in its place, if all that was written to it is in the file itself.
    pub(super) async fn finish(mut self, store: Sqlite) -> Result<(), Error> {
        let written = store.head().await.map_err(runtime::store_error)?;
        store.close().map_err(runtime::store_error)?;
        let log = fs::metadata(side(&self.aside, "-wal"));
        let store = Sqlite::open_read_only(&self.aside).map_err(runtime::store_error)?;
        let found = store.head().await.map_err(runtime::store_error)?;
        drop(store);
        if log.is_ok_and(|log| 0 < log.len()) || found != written {
            let what = format!("the new log `{}` is not what was written", self.aside.display());
            return Err(Error::new(Code::Failed, what).hint("check the disk and try again"));
        }
        self.put().map_err(|error| {
            let what = format!("the new log `{}` cannot be put in place", self.aside.display());
            Error::new(Code::Failed, format!("{what}: {error}"))
        })?;
        self.is_done = true;
        Ok(())
    }

    fn put(&self) -> io::Result<()> {
        fs::rename(&self.aside, &self.database)?;
        File::open(&self.directory)?.sync_all()
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        discard(&self.aside);
        if !self.is_done {
            discard(&self.database);
            let _ = self.new_key.as_ref().map(fs::remove_file);
        }
    }
}

/// They belong to a database that was moved away, and may hold its newest entries.
fn refuse_sides(database: &Path) -> Result<(), Error> {
    let left = SIDES.map(|suffix| side(database, suffix)).into_iter().filter(|it| it.exists());
    let left: Vec<String> = left.map(|path| format!("`{}`", path.display())).collect();
    if left.is_empty() {
        return Ok(());
    }
    let what = format!("{} belong to a log that is not there any more", left.join(" and "));
    Err(Error::new(Code::Exists, what).hint(
        "they may hold its newest entries: move them to where it is now, with its new name before \
         the `-`, and try again",
    ))
}

fn discard(database: &Path) {
    let sides = SIDES.map(|suffix| side(database, suffix));
    for path in sides.iter().map(PathBuf::as_path).chain([database]) {
        let _ = fs::remove_file(path);
    }
}

fn side(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
