//! `midwatch mcp`

use std::process::ExitCode;
use std::sync::Arc;

use ::mcp::{Selection, Server, Toolset};
use api::{Code, Error};
use clap::Args;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::io::BufReader;

use crate::access::Staying;
use crate::context::{Context, VERSION};

/// Let an agent's host speak with the watch: an MCP server on standard input and output
///
/// Whoever starts it, it is never more than a runner: no tool of it approves, freezes, renews the lease or
/// changes the standing orders. With MIDWATCH_TOKEN it speaks for the agent or person of that token. It
/// leaves when its input ends.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// Which tools to offer, by group [default: all but `ledger`]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    toolsets: Vec<Toolset>,

    /// Offer no tool that changes anything
    #[arg(long)]
    read_only: bool,
}

pub(super) async fn run(context: &Context, asked: Mcp) -> Result<ExitCode, Error> {
    end_with_parent()?;
    let selection = match asked.toolsets.is_empty() {
        true => Selection::default(),
        false => Selection::of(asked.toolsets),
    };
    let handle = Arc::new(Staying::new(context.for_assistant()));
    let server = Server::new(handle, selection.read_only(asked.read_only), VERSION);
    let (input, output) = ::mcp::pipes();
    ::mcp::serve(server, BufReader::new(input), output).await.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// A host that is killed may leave the other end of the pipe to a child of its own.
fn end_with_parent() -> Result<(), Error> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(failed)?;
    match getppid() == parent {
        true => Ok(()),
        false => Err(failed("whoever started this has gone")),
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, error)
}
