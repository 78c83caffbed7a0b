//! `midwatch agent …`

use std::process::ExitCode;

use api::{Agent, AgentAdd, AgentEdit, AgentList, AgentRemove, AgentShow, Error};
use clap::{Args, Subcommand};

use super::list_limit;
use crate::access::ask;
use crate::context::Context;
use crate::output::{pairs, table_with_more};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Register an agent; the same one again changes nothing
    Add(Add),
    /// Change an agent; what is not given stays as it is
    Edit(Edit),
    /// List the agents by name
    List {
        /// Most agents to show
        #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
        limit: Option<u32>,
        /// Go on where an earlier list ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show one agent
    Show { name: String },
    /// Remove an agent
    Remove { name: String },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    name: String,
    /// What it runs on: builtin, command, letta, openai, anthropic, webhook or mcp
    #[arg(long, value_name = "KIND")]
    backend: String,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Args)]
pub(super) struct Edit {
    name: String,
    /// Run on something else
    #[arg(long, value_name = "KIND")]
    backend: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Take the credential away
    #[arg(long, conflicts_with = "credential")]
    no_credential: bool,
}

#[derive(Debug, Args)]
struct Settings {
    /// Where it listens (letta, openai, anthropic, webhook, mcp)
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The model to use (openai, anthropic)
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The agent's id on its own server (letta)
    #[arg(long, value_name = "ID")]
    remote_id: Option<String>,
    /// How far prompting it reaches: 0 read-only, 1 local write, 2 external [default: by backend]
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    tier: Option<u8>,
    /// Where its secret is found: env:NAME or file:/path; the secret itself is never stored
    #[arg(long, value_name = "REF")]
    credential: Option<String>,
    /// The program and its arguments (command, mcp)
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
}

/// Which numbers are tiers, the watch knows.
pub(super) fn tier(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "a tier is 0 (read-only), 1 (local write) or 2 (external)")
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Add(add) => {
            let answer = ask(context, add.request()).await?;
            output.show(&answer, |answer| {
                let verb = if answer.created { "registered" } else { "was registered already" };
                format!("agent `{}` {verb} ({})", answer.agent.name, summary(&answer.agent))
            });
        }
        Command::Edit(edit) => {
            let answer = ask(context, edit.request()).await?;
            output.show(&answer, |answer| {
                let verb = if answer.changed { "changed" } else { "was so already" };
                format!("agent `{}` {verb} ({})", answer.agent.name, summary(&answer.agent))
            });
        }
        Command::List { limit, cursor } => {
            let answer = ask(context, AgentList { limit, cursor }).await?;
            output.show(&answer, |answer| list(&answer.agents, answer.cursor.as_deref()));
        }
        Command::Show { name } => {
            let answer = ask(context, AgentShow { name }).await?;
            output.show(&answer, |answer| page(&answer.agent));
        }
        Command::Remove { name } => {
            let answer = ask(context, AgentRemove { name }).await?;
            output.show(&answer, |answer| format!("agent `{}` removed", answer.agent.name));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Add {
    fn request(self) -> AgentAdd {
        let Settings { url, model, remote_id, tier, credential, argv } = self.settings;
        let (name, backend) = (self.name, self.backend);
        AgentAdd { name, backend, url, model, remote_id, argv, tier, credential }
    }
}

impl Edit {
    fn request(self) -> AgentEdit {
        let Settings { url, model, remote_id, tier, credential, argv } = self.settings;
        let credential = if self.no_credential { Some(String::new()) } else { credential };
        let (name, backend) = (self.name, self.backend);
        AgentEdit { name, backend, url, model, remote_id, argv, tier, credential }
    }
}

fn list(agents: &[Agent], cursor: Option<&str>) -> String {
    if agents.is_empty() {
        return "no agents yet; register one with `midwatch agent add NAME --backend builtin`"
            .into();
    }
    let rows = agents.iter().map(|agent| {
        [agent.name.clone(), agent.backend.clone(), agent.tier.to_string(), target(agent)]
    });
    table_with_more(["NAME", "BACKEND", "TIER", "TARGET"], rows, cursor)
}

fn page(agent: &Agent) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let argv = (!agent.argv.is_empty()).then(|| ("argv", typed(&agent.argv)));
    let rows = [
        Some(("name", agent.name.clone())),
        Some(("backend", agent.backend.clone())),
        some("url", &agent.url),
        some("model", &agent.model),
        some("remote id", &agent.remote_id),
        argv,
        Some(("tier", agent.tier.to_string())),
        some("credential", &agent.credential),
        Some(("registered at", agent.registered_at.clone())),
        Some(("changed at", agent.changed_at.clone())),
    ];
    pairs(rows.into_iter().flatten())
}

fn summary(agent: &Agent) -> String {
    format!("{}, tier {}", agent.backend, agent.tier)
}

/// Where prompts to it go, in a few words.
fn target(agent: &Agent) -> String {
    let model = agent.model.as_deref().or(agent.remote_id.as_deref());
    match (&agent.url, model) {
        (Some(url), Some(model)) => format!("{model} at {url}"),
        (Some(url), None) => url.clone(),
        (None, _) => typed(&agent.argv),
    }
}

/// A program and its arguments as they would be typed into a shell.
fn typed(argv: &[String]) -> String {
    argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@+,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_in_a_shell() {
        for (word, expected) in [
            ("echo", "echo"),
            ("--key=a/b.c", "--key=a/b.c"),
            ("größe", "größe"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("*", "'*'"),
            ("~", "'~'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
