//! The embedded store passes the conformance suite.

use std::path::PathBuf;
use std::sync::Arc;

use store::Store;
use store::conformance::{CASES, StoreFixture};
use store_sqlite::Sqlite;
use tempfile::TempDir;

/// A directory with one database file.
struct DatabaseFile(TempDir);

impl DatabaseFile {
    fn new() -> DatabaseFile {
        DatabaseFile(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("midwatch.db")
    }
}

impl StoreFixture for DatabaseFile {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(&self.path()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_conformance_suite() {
    for (name, case) in CASES {
        println!("{name}");
        case(&DatabaseFile::new()).await;
    }
}
