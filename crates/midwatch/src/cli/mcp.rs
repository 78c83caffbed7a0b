//! `midwatch mcp`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::mcp::{Agent, Selection, Server, Toolset};
use api::{Code, Error};
use clap::Args;
use rustix::process::getppid;
use tokio::io::BufReader;
use tokio::select;
use tokio::time::sleep;
use tracing::warn;

use super::promptyoself::settings::{default_agent, held_to};
use crate::access::Staying;
use crate::context::{Context, VERSION};

/// How often to look whether whoever started this is still there.
const PARENT_POLL: Duration = Duration::from_secs(1);

/// Let an agent's host speak with the watch: an MCP server on standard input and output
///
/// Whoever starts it, it is never more than a runner: no tool of it approves, freezes, renews the lease or
/// changes the standing orders. With MIDWATCH_TOKEN it speaks for the agent or person of that token. It
/// leaves when its input ends, or whoever started it has gone.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// Which tools to offer, by group [default: all of our own but `ledger`]
    ///
    /// `astra`, `promptyoself` and `foundry` have the tools of those programs, for their clients. Give each of
    /// them a server of its own.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    toolsets: Vec<Toolset>,

    /// Offer no tool that changes anything
    #[arg(long)]
    read_only: bool,
}

pub(super) async fn run(context: &Context, asked: Mcp) -> Result<ExitCode, Error> {
    let selection = Selection::chosen(asked.toolsets);
    for caution in selection.cautions() {
        warn!("{caution}");
    }
    let selection = match selection.toolsets().contains(&Toolset::Promptyoself) {
        true => selection.for_agent(agent(context)?),
        false => selection,
    };
    let selection = selection.read_only(asked.read_only);
    let handle = Arc::new(Staying::new(context.for_assistant()));
    let server = Server::new(handle, selection, VERSION);
    let (input, output) = ::mcp::pipes();
    select! {
        served = ::mcp::serve(server, BufReader::new(input), output) => served.map_err(failed)?,
        () = orphaned() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The agent that the environment names.
fn agent(context: &Context) -> Result<Agent, Error> {
    let only = held_to(&context.environment)?.map(str::to_owned);
    let default = default_agent(&context.environment).map(str::to_owned);
    Ok(Agent { default: only.clone().or(default), only })
}

/// A host that is killed may leave the other end of the pipe to a child of its own. A signal at the parent's
/// death would come when the thread that started this ends, which is not the end of the host.
async fn orphaned() {
    let parent = getppid();
    while getppid() == parent {
        sleep(PARENT_POLL).await;
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, error)
}
