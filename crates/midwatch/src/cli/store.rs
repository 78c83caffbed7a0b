//! `midwatch store …`

use std::path::PathBuf;
use std::process::ExitCode;

use api::{Error, ProgressSink};
use clap::{Args, Subcommand};
use ledger::Chain;
use serde::Serialize;
use store::Store;
use store_postgres::{Postgres, Target};
use store_sqlite::Sqlite;

use super::restoring::Restoring;
use crate::access::{held, no_watch};
use crate::context::Context;
use crate::directory::{Directory, Lock};
use crate::storage::target;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Copy a whole installation from one store into another, empty one
    ///
    /// Entries, checkpoints and answers are taken over as they are, and the ends of both logs are
    /// compared. The signing key and the configuration stay in the data directory: afterwards set
    /// `store.url` there, or remove it.
    Copy(Copy),
}

#[derive(Debug, Args)]
pub(super) struct Copy {
    /// A data directory, or a database such as `postgres://user@host/name`
    #[arg(long, value_name = "DIR|URL")]
    from: String,

    /// The same; there must be no log in it
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

/// One end of a copy.
enum Place {
    Directory(Directory),
    Database(Box<Target>),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let Command::Copy(Copy { from, to }) = command;
    let (source, sink) = (place(context, &from)?, place(context, &to)?);
    let progress = context.output.progress("copying");
    let (store, _lock) = source.read().await?;
    let end = sink.fill(&*store, &progress.sink()).await?;
    drop(progress);
    let copied = Copied { from, to, entries: end.size(), head: end.head().to_string() };
    context.output.show(&CopiedAnswer { copied }, |CopiedAnswer { copied }| {
        let Copied { from, to, entries, head } = copied;
        format!("copied {entries} entries from {from} to {to}; both end with {head}")
    });
    Ok(ExitCode::SUCCESS)
}

fn place(context: &Context, text: &str) -> Result<Place, Error> {
    if text.contains("://") {
        let config = context.load_config()?.config;
        return Ok(Place::Database(Box::new(target(text, context, &config)?)));
    }
    let path = PathBuf::from(text);
    Ok(Place::Directory(Directory::at(std::path::absolute(&path).unwrap_or(path))))
}

impl Place {
    /// Nobody writes a directory while it is read here; of a database that is found out at the end.
    async fn read(&self) -> Result<(Box<dyn Store>, Option<Lock>), Error> {
        match self {
            Place::Database(target) => {
                let store = Postgres::open_read_only(target).await;
                Ok((Box::new(store.map_err(runtime::store_error)?), None))
            }
            Place::Directory(directory) => {
                if !directory.has_database()? {
                    return Err(no_watch(directory));
                }
                let lock = lock(directory)?;
                let store = Sqlite::open_read_only(&directory.database());
                Ok((Box::new(store.map_err(runtime::store_error)?), Some(lock)))
            }
        }
    }

    async fn fill(&self, from: &dyn Store, progress: &ProgressSink) -> Result<Chain, Error> {
        match self {
            Place::Database(target) => {
                let store = Postgres::open(target).await.map_err(runtime::store_error)?;
                runtime::copy(from, &store, progress).await
            }
            Place::Directory(directory) => {
                directory.create()?;
                let _lock = lock(directory)?;
                let restoring = Restoring::begin(directory)?;
                let store = restoring.open()?;
                let end = runtime::copy(from, &store, progress).await?;
                restoring.finish(store).await?;
                Ok(end)
            }
        }
    }
}

fn lock(directory: &Directory) -> Result<Lock, Error> {
    directory.try_lock()?.ok_or_else(|| held(directory))
}
