//! `midwatch up`

use std::process::ExitCode;

use api::Error;
use clap::Args;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::daemon;

/// Run the daemon until it is stopped
#[derive(Debug, Args)]
pub(super) struct Up {
    /// Start although the clock is behind the ledger, or more than 30 days ahead of it; recorded in the
    /// ledger
    #[arg(long)]
    accept_clock: bool,
}

pub(super) async fn run(context: &Context, up: Up) -> Result<ExitCode, Error> {
    let (ready, _) = oneshot::channel();
    let Up { accept_clock } = up;
    daemon::up(context, daemon::Start { accept_clock }, ready).await.map(|()| ExitCode::SUCCESS)
}
