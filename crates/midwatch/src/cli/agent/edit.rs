//! `midwatch agent edit`

use std::process::ExitCode;

use api::{AgentEdit, Error};
use clap::Args;

use super::settings::Settings;
use super::summary;
use crate::access::send;
use crate::context::Context;

/// Change an agent; omitted settings keep their value
#[derive(Debug, Args)]
pub(in crate::cli) struct Edit {
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
    context.output.show(&answer, |answer| {
        let (name, summary) = (&answer.agent.name, summary(&answer.agent));
        match answer.changed {
            true => format!("agent `{name}` changed ({summary})"),
            false => format!("agent `{name}`: nothing to change ({summary})"),
        }
    });
    Ok(ExitCode::SUCCESS)
}

impl Edit {
    fn into_request(self) -> AgentEdit {
        let settings = self.settings;
        AgentEdit {
            name: self.name,
            backend: self.backend,
            url: settings.url,
            model: settings.model,
            remote_id: settings.remote_id,
            argv: settings.argv,
            cwd: settings.cwd,
            env: settings.env,
            prompt_as: settings.prompt_as,
            time_limit_seconds: settings.time_limit,
            script: settings.script,
            api: settings.api,
            sending: settings.send,
            allow_private: switch(settings.allow_private, self.public_only),
            tier: settings.tier,
            credential: match self.no_credential {
                true => Some(String::new()),
                false => settings.credential,
            },
            repeatable: switch(settings.repeatable, self.not_repeatable),
            price_input: settings.price_input,
            price_output: settings.price_output,
            price_run: settings.price_run,
        }
    }
}

/// The value that a flag and its opposite set, if one of them is given.
fn switch(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}
