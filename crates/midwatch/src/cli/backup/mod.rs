//! `midwatch backup …`: one file with everything that another machine needs to continue.

mod create;
mod restore;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Code, Error};
use clap::{Args, Subcommand};
use tokio::task::spawn_blocking;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Create(create::Create),
    Verify(verify::Verify),
    Restore(restore::Restore),
}

/// A backup that is read, and what its ledger must be signed with.
#[derive(Debug, Args)]
struct BackupArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A public key that must have signed the ledger; repeat it if there were several [default:
    /// those that the ledger names]
    #[arg(long, value_name = "KEY")]
    vkey: Vec<String>,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Create(create) => create::run(context, create).await?,
        Command::Verify(verify) => verify::run(context, verify).await?,
        Command::Restore(restore) => restore::run(context, restore).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs work on files on a thread that may block.
async fn on_files<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|error| Error::new(Code::Failed, error))?
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
