//! The flags that `agent add` and `agent edit` share.

use api::AgentSettings;
use clap::Args;

use crate::cli::support::value_parsers::{absolute_path, seconds, tier};

#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The address of its server (letta, webhook)
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The model to use. No available backend takes one.
    #[arg(long, value_name = "NAME", hide = true)]
    model: Option<String>,
    /// The agent's id on its own server (letta)
    #[arg(long, value_name = "ID")]
    remote_id: Option<String>,
    /// The reach of a prompt to it: 0 read-only, 1 local write, 2 external [default: by backend]
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    tier: Option<u8>,
    /// Where to find its secret: env:NAME or file:/path; the secret itself is never stored
    #[arg(long, value_name = "REF")]
    credential: Option<String>,
    /// The directory to start the program in (command) [default: the home directory]
    #[arg(long, value_name = "DIR", value_parser = absolute_path)]
    cwd: Option<String>,
    /// An environment variable that the program may see, by name; can be repeated (command)
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// How the program gets the prompt: stdin, or argument, in place of `{prompt}` or as the last
    /// one (command) [default: stdin]
    #[arg(long, value_name = "HOW")]
    prompt_as: Option<String>,
    /// How long one attempt may take, at most 24h (command, letta, webhook) [default: 10m, and 16m for
    /// Letta's App Server]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    time_limit: Option<u32>,
    /// A file with canned answers (builtin) [default: repeat the prompt]
    #[arg(long, value_name = "FILE", value_parser = absolute_path)]
    script: Option<String>,
    /// Which of Letta's servers it is on: rest, the V1 server, or openai, the App Server (letta)
    /// [default: rest]
    #[arg(long, value_name = "API")]
    api: Option<String>,
    /// How to send a prompt: wait for the answer, stream it, or let the server work in the background
    /// and poll it (letta) [default: wait]
    #[arg(long, value_name = "HOW")]
    send: Option<String>,
    /// Allow requests to this machine and to private networks (letta, webhook)
    #[arg(long)]
    allow_private: bool,
    /// Its work can be repeated without harm
    #[arg(long)]
    repeatable: bool,
    /// The price of a million input tokens, such as 3.00; 0 removes it
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_input: Option<String>,
    /// The price of a million output tokens
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_output: Option<String>,
    /// The price of each attempt, whatever it uses
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_run: Option<String>,
    /// The program and its arguments (command)
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
}

impl From<Settings> for AgentSettings {
    /// A flag that is not given leaves the setting as it is.
    fn from(flags: Settings) -> AgentSettings {
        AgentSettings {
            url: flags.url,
            model: flags.model,
            remote_id: flags.remote_id,
            argv: flags.argv,
            cwd: flags.cwd,
            env: flags.env,
            prompt_as: flags.prompt_as,
            time_limit_seconds: flags.time_limit,
            script: flags.script,
            api: flags.api,
            sending: flags.send,
            allow_private: flags.allow_private.then_some(true),
            tier: flags.tier,
            credential: flags.credential,
            repeatable: flags.repeatable.then_some(true),
            price_input: flags.price_input,
            price_output: flags.price_output,
            price_run: flags.price_run,
        }
    }
}
