//! `midwatch ledger …`

mod checkpoint;
pub(super) mod event_text;
mod export;
mod rebuild;
mod restore;
mod tail;
mod verify;

use std::process::ExitCode;

use api::{Code, Error};
use clap::Subcommand;
use ledger::VerifyingKey;
use ledger::verify::KEYS_MAX;

use crate::context::Context;
use crate::view::View;
use crate::wrap::wrap;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Tail(tail::Tail),
    Verify(verify::Verify),
    Export(export::Export),
    /// Sign the ledger as it is now and print the signed checkpoint
    Checkpoint,
    Rebuild(rebuild::Rebuild),
}

impl Command {
    /// Whether it stays until it is interrupted.
    pub(super) fn follows(&self) -> bool {
        matches!(self, Command::Tail(tail) if tail.follows())
    }
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Tail(tail) => tail::run(context, tail).await?,
        Command::Verify(verify) => return verify::run(context, verify).await,
        Command::Export(export) => export::run(context, export).await?,
        Command::Checkpoint => checkpoint::run(context).await?,
        Command::Rebuild(rebuild) => rebuild::run(context, rebuild).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The public keys given with `--vkey`.
pub(super) fn parse_keys(vkeys: &[String]) -> Result<Vec<VerifyingKey>, Error> {
    if KEYS_MAX < vkeys.len() {
        let what = format!("{} keys given, but a ledger has at most {KEYS_MAX}", vkeys.len());
        return Err(Error::new(Code::InvalidInput, what).hint("give only the keys of this ledger"));
    }
    vkeys.iter().map(|vkey| VerifyingKey::parse(vkey)).collect::<Result<_, _>>().map_err(|error| {
        Error::new(Code::InvalidInput, format!("invalid public key: {error}"))
            .hint("`midwatch status --all` shows the public key of a ledger")
    })
}

/// The caveats of a verification, each on a line of its own.
pub(super) fn render_caveats(caveats: &[String], view: &View) -> String {
    let note = |caveat: &String| wrap(&format!("note: {caveat}"), view.width, "      ");
    caveats.iter().map(|caveat| format!("\n{}", note(caveat))).collect()
}
