//! `midwatch up`

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use api::Error;
use clap::Args;
use futures::future::pending;
use tokio::select;
use tokio::sync::oneshot;
use tracing::debug;

use super::open::{create_link, is_at_terminal};
use super::support::narrate::narrate;
use crate::context::Context;
use crate::daemon;
use crate::output::Format;

/// Run the daemon until it is stopped
///
/// In a terminal it prints one line per start, end and question of a run. Ctrl-c, SIGTERM and `midwatch stop` stop it: running
/// runs have the time of `runs.drain` to finish, and a second ctrl-c cuts them off.
#[derive(Debug, Args)]
pub(super) struct Up {
    /// Start although the clock is behind the ledger, or more than 30 days ahead of it; recorded in the
    /// ledger
    #[arg(long)]
    accept_clock: bool,
}

pub(super) async fn run(context: &Context, up: Up) -> Result<ExitCode, Error> {
    let (ready, is_ready) = oneshot::channel();
    let Up { accept_clock } = up;
    let narrates = context.output.format == Format::Human && io::stdout().is_terminal();
    let narrated = async {
        if narrates && is_ready.await.is_ok() {
            print_link(context).await;
            if let Err(error) = narrate(context).await {
                // The daemon ends, or reads of the ledger fail; neither is a reason to stop.
                debug!(%error, "stopped to print what happens");
            }
        }
        pending::<Infallible>().await
    };
    select! {
        ended = daemon::up(context, daemon::Start { accept_clock, narrates }, ready) => ended?,
        never = narrated => match never {},
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a link to the dashboard for the person at the terminal, unless HTTP is off.
async fn print_link(context: &Context) {
    match create_link(context, is_at_terminal()).await {
        Ok(link) => context.output.show(&link, |link| {
            format!(
                "dashboard: {}\n           signs one browser in, once and within ten minutes",
                link.url
            )
        }),
        Err(error) => debug!(%error, "there is no dashboard"),
    }
}
