//! `midwatch mcp`

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::mcp::{CallingAgent, LettaConnection, Selection, Server, Toolset};
use api::{Code, Error};
use clap::Args;
use futures::FutureExt;
use rustix::process::getppid;
use tokio::io::BufReader;
use tokio::select;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::promptyoself::count_letta_agents;
use super::promptyoself::register::validate_registered;
use super::promptyoself::settings::{Letta, default_agent, only_agent};
use crate::context::{Context, VERSION};
use crate::reconnecting_client::ReconnectingClient;

/// What a person sees who starts the server in a terminal.
const WAITING: &str = "waiting for an MCP client on stdin; ctrl-c ends it. A client starts this command itself: \
                       `claude mcp add midwatch -- midwatch mcp`";
/// How long a call waits for the Letta server.
const LETTA_TIMEOUT: Duration = Duration::from_secs(20);
/// How often to check whether the parent process still runs.
const PARENT_POLL: Duration = Duration::from_secs(1);

/// Run the MCP server (stdio) for Claude Code, Codex and others
///
/// The server has at most the rights of a runner: none of its tools approves, freezes, renews the lease or
/// changes the policy. With MIDWATCH_TOKEN it acts for the agent or person of that token. It ends when its
/// stdin closes or its parent process ends.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// The toolsets to offer [default: all of Midwatch's own except `ledger`]
    ///
    /// `astra`, `promptyoself` and `foundry` have the tools of those programs, for their clients. Start a
    /// separate server for each.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    toolsets: Vec<Toolset>,

    /// Offer only tools that change nothing
    #[arg(long)]
    read_only: bool,
}

pub(super) async fn run(context: &Context, mcp: Mcp) -> Result<ExitCode, Error> {
    let selection = Selection::new_or_default(mcp.toolsets);
    for warning in selection.warnings() {
        warn!("{warning}");
    }
    let selection = match selection.toolsets().contains(&Toolset::Promptyoself) {
        true => selection.for_agent(calling_agent(context)?),
        false => selection,
    };
    let selection = selection.read_only(mcp.read_only);
    if io::stdin().is_terminal() {
        context.output.remark(WAITING);
    }
    let handle = Arc::new(ReconnectingClient::new(context.for_assistant()));
    let server = Server::new(handle, selection, VERSION);
    let (input, output) = ::mcp::stdio_pipes();
    select! {
        served = ::mcp::serve_stdio(server, BufReader::new(input), output) => {
            served.map_err(|error| Error::new(Code::Failed, error))?;
        }
        () = parent_ended() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The agent and the Letta server that the environment names.
fn calling_agent(context: &Context) -> Result<CallingAgent, Error> {
    let only = only_agent(&context.environment)?.map(str::to_owned);
    let default = default_agent(&context.environment).map(str::to_owned);
    let Letta { url, credential } = Letta::from_environment(&context.environment);
    let (counting, validating) = (context.for_assistant(), context.for_assistant());
    let letta = LettaConnection {
        url,
        has_key: credential.is_some(),
        count_agents: Arc::new(move || {
            let context = counting.clone();
            async move { in_time(count_letta_agents(&context)).await }.boxed()
        }),
        validate_agent: Arc::new(move |agent| {
            let context = validating.clone();
            async move { in_time(validate_registered(&context, &agent)).await }.boxed()
        }),
    };
    Ok(CallingAgent::new(only.clone().or(default), only, letta))
}

/// Ends a request to the Letta server before a client stops to wait for its call.
async fn in_time<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(LETTA_TIMEOUT, request).await.unwrap_or_else(|_| {
        let what = format!("the Letta server did not answer in {} s", LETTA_TIMEOUT.as_secs());
        Err(Error::new(Code::Unreachable, what).hint("try again, or tell your user"))
    })
}

/// Waits until the parent process ends. Its end does not always close our stdin: a child of it may hold the
/// other end of the pipe. PR_SET_PDEATHSIG would fire when the parent's thread ends, which is not the end of
/// the parent.
async fn parent_ended() {
    let parent = getppid();
    while getppid() == parent {
        sleep(PARENT_POLL).await;
    }
}
