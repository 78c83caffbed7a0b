//! A database file as a place for the suite.

use std::path::PathBuf;
use std::sync::Arc;

use store::Store;
use store::conformance::{CASES, Place};
use store_sqlite::Sqlite;
use tempfile::TempDir;

/// A directory with one database file.
struct File(TempDir);

impl File {
    fn new() -> File {
        File(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("midwatch.db")
    }
}

impl Place for File {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(&self.path()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    for (name, case) in CASES {
        println!("{name}");
        case(&File::new()).await;
    }
}
