//! `midwatch store copy`

use std::path::PathBuf;
use std::process::ExitCode;

use api::{Error, ProgressSink};
use clap::Args;
use ledger::Chain;
use serde::Serialize;
use store::Store;
use store_postgres::{Postgres, Target};
use store_sqlite::Sqlite;

use crate::access::{directory_in_use, no_installation};
use crate::cli::support::render::entries;
use crate::cli::support::staged_database::StagedDatabase;
use crate::context::Context;
use crate::directory::{Directory, Lock};
use crate::storage::target;

/// Copy an installation into another, empty store
///
/// Copies entries, checkpoints and idempotent answers unchanged, and compares the ends of both ledgers. The
/// signing key and the configuration stay in the data directory: set or remove `store.url` there
/// afterwards.
#[derive(Debug, Args)]
pub(in crate::cli) struct Copy {
    /// A data directory, or a database such as `postgres://user@host/name`
    #[arg(long, value_name = "DIR|URL")]
    from: String,

    /// An empty data directory or database
    #[arg(long, value_name = "DIR|URL")]
    to: String,
}

#[derive(Debug, Serialize)]
struct CopiedAnswer {
    copied: Copied,
}

#[derive(Debug, Serialize)]
struct Copied {
    from: String,
    to: String,
    entries: u64,
    head: String,
}

/// The source or the destination of a copy.
enum Location {
    Directory(Directory),
    Database(Box<Target>),
}

pub(super) async fn run(context: &Context, copy: Copy) -> Result<ExitCode, Error> {
    let Copy { from, to } = copy;
    let (source, destination) = (locate(context, &from)?, locate(context, &to)?);
    let progress = context.output.progress("copying");
    let (store, _lock) = source.open().await?;
    let end = destination.fill_from(&*store, &progress.sink()).await?;
    drop(progress);
    let copied = Copied { from, to, entries: end.size(), head: end.head().to_string() };
    context.output.say(&CopiedAnswer { copied }, |CopiedAnswer { copied }| {
        let Copied { from, to, entries: count, head } = copied;
        format!("copied {} from {from} to {to}; both end with {head}", entries(*count))
    });
    Ok(ExitCode::SUCCESS)
}

fn locate(context: &Context, text: &str) -> Result<Location, Error> {
    if text.contains("://") {
        let config = context.load_config()?.config;
        return Ok(Location::Database(Box::new(target(text, context, &config)?)));
    }
    let path = PathBuf::from(text);
    Ok(Location::Directory(Directory::at(std::path::absolute(&path).unwrap_or(path))))
}

impl Location {
    /// Opens the source. A directory is locked against writers; whether a database was written to
    /// meanwhile is checked after the copy.
    async fn open(&self) -> Result<(Box<dyn Store>, Option<Lock>), Error> {
        match self {
            Location::Database(target) => {
                let store = Postgres::open_read_only(target).await;
                Ok((Box::new(store.map_err(runtime::store_error)?), None))
            }
            Location::Directory(directory) => {
                if !directory.has_database()? {
                    return Err(no_installation(directory));
                }
                let lock = lock(directory)?;
                let store = Sqlite::open_read_only(&directory.database());
                Ok((Box::new(store.map_err(runtime::store_error)?), Some(lock)))
            }
        }
    }

    async fn fill_from(&self, source: &dyn Store, progress: &ProgressSink) -> Result<Chain, Error> {
        match self {
            Location::Database(target) => {
                let store = Postgres::open(target).await.map_err(runtime::store_error)?;
                runtime::copy(source, &store, progress).await
            }
            Location::Directory(directory) => {
                directory.create()?;
                let _lock = lock(directory)?;
                let staged = StagedDatabase::create(directory)?;
                let store = staged.open()?;
                let end = runtime::copy(source, &store, progress).await?;
                staged.commit(store).await?;
                Ok(end)
            }
        }
    }
}

fn lock(directory: &Directory) -> Result<Lock, Error> {
    directory.try_lock()?.ok_or_else(|| directory_in_use(directory))
}
