//! The flags of `midwatch schedule add`, and the request that they make.

use std::io;
use std::str::FromStr;

use api::{Error, ScheduleAdd};
use clap::{ArgGroup, Args};

use super::prompt;
use super::trigger::When;
use crate::cli::agent::tier;

#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    /// What to call it; one line
    #[arg(long, value_name = "NAME")]
    name: String,

    #[command(flatten, next_help_heading = "When")]
    when: When,
    #[command(flatten, next_help_heading = "What")]
    action: Action,
    #[command(flatten, next_help_heading = "Terms")]
    terms: Terms,
}

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("action").required(true).args(["agent", "tool"]))]
struct Action {
    /// The agent to prompt
    #[arg(long, value_name = "NAME", requires = "prompt")]
    agent: Option<String>,

    /// What to tell it; `-` reads stdin, `@FILE` reads a file, and `@@` begins a text with an `@`
    #[arg(long, value_name = "TEXT", requires = "agent", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["tool", "payload"])]
    prompt: Option<String>,

    /// The tool to call
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// What to call it with
    #[arg(long, value_name = "JSON", requires = "tool")]
    #[arg(conflicts_with_all = ["agent", "prompt"])]
    payload: Option<String>,

    /// How far it reaches, if that is further than the agent: 0 read-only, 1 local write, 2 external
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    tier: Option<u8>,
}

#[derive(Debug, Args)]
#[group(skip)]
struct Terms {
    /// Most runs in one UTC day [default: twice what the trigger asks for]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// While a run goes on: skip, buffer_one, buffer_all[:N] or allow[:N] [default: skip]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<String>,

    /// Of slots that were missed, run: latest, earliest, all[:N] or skip [default: latest]
    #[arg(long, value_name = "POLICY")]
    missed: Option<String>,

    /// How late a missed slot may still run [default: three intervals, from 1m to 1d]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    window: Option<String>,

    /// Delay each slot by up to this, always the same for the same slot [default: no delay]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    jitter: Option<String>,

    /// How often a run is tried before it counts as failed [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    attempts: Option<u32>,

    /// Pause after so many failed runs in a row; 0 for never [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pause_after: Option<u32>,

    /// What becomes of slots in a pause: skip or as_missed [default: skip]
    #[arg(long, value_name = "POLICY")]
    resume: Option<String>,

    /// From 0 to 9, the higher the sooner [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u8>, allow_negative_numbers = true)]
    priority: Option<u8>,

    /// End after so many runs
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    max_fires: Option<u64>,

    /// No slot before this instant; without an offset it is a time in the zone
    #[arg(long, value_name = "INSTANT")]
    start_at: Option<String>,

    /// No slot after this instant
    #[arg(long, value_name = "INSTANT")]
    end_at: Option<String>,
}

/// Which numbers make sense, the watch knows.
fn whole<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "give a whole number, not below 0 and not too large")
}

impl Add {
    /// Reads the prompt, if it is elsewhere.
    pub(super) fn request(self) -> Result<ScheduleAdd, Error> {
        let Action { agent, prompt, tool, payload, tier } = self.action;
        let prompt = prompt.map(|typed| prompt::read(typed, io::stdin().lock())).transpose()?;
        Ok(ScheduleAdd {
            name: self.name,
            when: self.when.into(),
            action: api::Action { agent, prompt, tool, payload },
            tier,
            terms: self.terms.into(),
        })
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
            pause_after: flags.pause_after,
            resume: flags.resume,
            priority: flags.priority,
            per_day: flags.per_day,
            max_fires: flags.max_fires,
            start_at: flags.start_at,
            end_at: flags.end_at,
        }
    }
}
