//! `midwatch agent add`

use std::process::ExitCode;

use api::{AgentAdd, Error};
use clap::Args;

use super::settings::Settings;
use super::{show_warnings, summary};
use crate::access::send;
use crate::context::Context;

const WARNINGS: &str = "\
It is registered even if it cannot work yet. Warnings say why: a missing program or directory, a secret \
that the daemon cannot read, a server that refuses the connection. The process that will prompt it looks: \
the daemon, if one is running. `midwatch agent test NAME` sends it a prompt.";

/// Register an agent; repeating the same command changes nothing
#[derive(Debug, Args)]
#[command(after_help = WARNINGS)]
pub(in crate::cli) struct Add {
    /// The name of the agent: up to 64 of a-z, 0-9, `-`, `_` and `.`
    name: String,
    /// The backend: builtin, command, letta or webhook
    #[arg(long, value_name = "KIND")]
    backend: String,
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(context: &Context, add: Add) -> Result<ExitCode, Error> {
    let answer = send(context, add.into_request()).await?;
    context.output.say(&answer, |answer| {
        let verb = if answer.created { "registered" } else { "was already registered" };
        let line = format!("agent `{}` {verb} ({})", answer.agent.name, summary(&answer.agent));
        let server = answer.server.iter().map(|finding| format!("server: {finding}"));
        [line].into_iter().chain(server).collect::<Vec<_>>().join("\n")
    });
    show_warnings(context, &answer.agent, &answer.warnings);
    Ok(ExitCode::SUCCESS)
}

impl Add {
    fn into_request(self) -> AgentAdd {
        let Add { name, backend, settings } = self;
        AgentAdd { name, backend, settings: settings.into(), look: true }
    }
}
