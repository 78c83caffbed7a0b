//! `midwatch agent edit`

use std::process::ExitCode;

use api::{AgentEdit, AgentSettings, Error};
use clap::Args;

use super::settings::Settings;
use super::{show_warnings, summary};
use crate::access::send;
use crate::context::Context;

const WARNINGS: &str = "\
As `midwatch agent add` does, it warns about what would keep the agent from working now.";

/// Change an agent; omitted settings keep their value
#[derive(Debug, Args)]
#[command(after_help = WARNINGS)]
pub(in crate::cli) struct Edit {
    /// The name of the agent
    name: String,
    /// The new backend
    #[arg(long, value_name = "KIND")]
    backend: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Remove the credential
    #[arg(long, conflicts_with = "credential")]
    no_credential: bool,
    /// Repeating its work may do harm
    #[arg(long, conflicts_with = "repeatable")]
    not_repeatable: bool,
    /// Allow requests to public addresses only, and to this machine if Letta's url names it
    #[arg(long, conflicts_with = "allow_private")]
    public_only: bool,
}

pub(super) async fn run(context: &Context, edit: Edit) -> Result<ExitCode, Error> {
    let answer = send(context, edit.into_request()).await?;
    context.output.say(&answer, |answer| {
        let (name, summary) = (&answer.agent.name, summary(&answer.agent));
        let line = match answer.changed {
            true => format!("agent `{name}` changed ({summary})"),
            false => format!("agent `{name}`: nothing to change ({summary})"),
        };
        let server = answer.server.iter().map(|finding| format!("server: {finding}"));
        [line].into_iter().chain(server).collect::<Vec<_>>().join("\n")
    });
    show_warnings(context, &answer.agent, &answer.warnings);
    Ok(ExitCode::SUCCESS)
}

impl Edit {
    fn into_request(self) -> AgentEdit {
        let mut settings = AgentSettings::from(self.settings);
        if self.public_only {
            settings.allow_private = Some(false);
        }
        if self.not_repeatable {
            settings.repeatable = Some(false);
        }
        if self.no_credential {
            settings.credential = Some(String::new());
        }
        AgentEdit { name: self.name, backend: self.backend, settings, look: true }
    }
}
