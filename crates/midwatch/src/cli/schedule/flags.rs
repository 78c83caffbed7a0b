//! The flags of a schedule's action and terms. The engine checks their values.

use std::io;

use api::Error;
use clap::Args;

use crate::cli::support::text_arg;
use crate::cli::support::value_parsers::{tier, whole_number};

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Action {
    /// The agent to prompt
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The prompt; `-` reads stdin, `@FILE` reads a file, and `@@` starts a text with an `@`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,

    /// The tool to call
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// The arguments of the tool
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,

    /// Keep the prompt or payload, and the output of its runs, out of lists, logs and exports
    #[arg(long)]
    pub(super) sensitive: bool,

    /// The reach of its runs, if higher than that of the agent: 0 read-only, 1 local write, 2 external
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    pub(super) tier: Option<u8>,
}

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Terms {
    /// The most runs in a UTC day [default: twice what the trigger fires]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// The most tokens that its runs use in a UTC day [default: only the limits of the agent and of the
    /// installation]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    tokens_per_day: Option<u32>,

    /// The most that its runs cost in a UTC day, such as 5.00 [default: only the limits of the agent and
    /// of the installation]
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    money_per_day: Option<String>,

    /// What a slot does while a run is live: skip, buffer_one, buffer_all[:N], allow[:N], cancel_other or
    /// terminate_other [default: skip]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<String>,

    /// Which missed slots to run: latest, earliest, all[:N] or skip [default: latest]
    #[arg(long, value_name = "POLICY")]
    missed: Option<String>,

    /// How late a missed slot may still run [default: three intervals, from 1m to 1d]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    window: Option<String>,

    /// Delay each slot by up to this, always the same for the same slot [default: no delay]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    jitter: Option<String>,

    /// The most attempts of a run before it fails [default: 5, and at tier 2 one]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    attempts: Option<u32>,

    /// The delays between attempts: INITIAL:FACTOR:CAP, or `patient` (30s:4:1h and 6 attempts); each delay
    /// is shortened at random, at most by half [default: 5s:2:5m]
    #[arg(long, value_name = "DELAYS", allow_hyphen_values = true)]
    backoff: Option<String>,

    /// Pause after this many failed runs in a row; 0 for never [default: 5]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    pause_after: Option<u32>,

    /// What to do about slots of a pause when it ends: skip or as_missed [default: skip]
    #[arg(long, value_name = "POLICY")]
    resume: Option<String>,

    /// The priority from 0 to 9; higher starts first [default: 5]
    #[arg(long, value_name = "N", value_parser = whole_number::<u8>, allow_negative_numbers = true)]
    priority: Option<u8>,

    /// A concurrency key shared with other schedules: one run at a time may hold NAME, or N of them; can
    /// be repeated
    #[arg(long = "key", value_name = "NAME[:N]")]
    keys: Option<Vec<String>>,

    /// End the schedule after this many runs
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    max_fires: Option<u64>,

    /// Ignore slots before this instant, in the schedule's zone if it has no offset
    #[arg(long, value_name = "INSTANT")]
    start_at: Option<String>,

    /// Ignore slots after this instant
    #[arg(long, value_name = "INSTANT")]
    end_at: Option<String>,
}

impl Action {
    /// Whether it names an agent, but not what to prompt it with.
    pub(super) fn lacks_prompt(&self) -> bool {
        self.agent.is_some() && self.prompt.is_none() && self.tool.is_none()
    }

    /// Reads the prompt if it is in a file or on stdin.
    pub(super) fn read(self) -> Result<api::Action, Error> {
        let Action { agent, prompt, tool, payload, sensitive: _, tier: _ } = self;
        let read = |typed| text_arg::read("prompt", typed, io::stdin().lock());
        let prompt = prompt.map(read).transpose()?;
        let payload = payload.map(|typed| typed.parse()).transpose()?;
        Ok(api::Action { agent, prompt, tool, payload })
    }
}

impl From<Terms> for api::Terms {
    fn from(flags: Terms) -> api::Terms {
        api::Terms {
            overlap: flags.overlap,
            missed: flags.missed,
            window: flags.window,
            jitter: flags.jitter,
            attempts: flags.attempts,
            backoff: flags.backoff,
            pause_after: flags.pause_after,
            resume: flags.resume,
            priority: flags.priority,
            keys: flags.keys,
            per_day: flags.per_day,
            tokens_per_day: flags.tokens_per_day,
            money_per_day: flags.money_per_day,
            max_fires: flags.max_fires,
            start_at: flags.start_at,
            end_at: flags.end_at,
        }
    }
}
