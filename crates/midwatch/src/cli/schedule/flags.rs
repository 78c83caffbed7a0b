//! The flags that say what a schedule does, and on which terms. What they mean, the watch knows.

use std::io;
use std::str::FromStr;

use api::Error;
use clap::Args;

use crate::cli::agent::tier;
use crate::cli::given;

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Action {
    /// The agent to prompt
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// What to tell it; `-` reads stdin, `@FILE` reads a file, and `@@` begins a text with an `@`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,

    /// The tool to call
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// What to call it with
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,

    /// Keep the prompt or the payload out of lists, logs and exports; also what its runs say
    #[arg(long)]
    pub(super) sensitive: bool,

    /// How far it reaches, if that is further than the agent: 0 read-only, 1 local write, 2 external
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    pub(super) tier: Option<u8>,
}

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Terms {
    /// Most runs in one UTC day [default: twice what the trigger asks for]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    per_day: Option<u32>,

    /// Most tokens that its runs use in one UTC day [default: no limit but those of the agent and of all]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    tokens_per_day: Option<u32>,

    /// Most that its runs cost in one UTC day, such as 5.00 [default: no limit but those of the agent and
    /// of all]
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    money_per_day: Option<String>,

    /// While a run goes on: skip, buffer_one, buffer_all[:N], allow[:N], cancel_other or
    /// terminate_other [default: skip]
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

    /// How the delays between its tries grow, of each of which a random part is waited: INITIAL:FACTOR:CAP,
    /// or `patient`, which is 30s:4:1h and 6 attempts [default: 1s:2:5m]
    #[arg(long, value_name = "DELAYS", allow_hyphen_values = true)]
    backoff: Option<String>,

    /// Pause after so many failed runs in a row; 0 for never [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pause_after: Option<u32>,

    /// What becomes of slots in a pause: skip or as_missed [default: skip]
    #[arg(long, value_name = "POLICY")]
    resume: Option<String>,

    /// From 0 to 9, the higher the sooner [default: 5]
    #[arg(long, value_name = "N", value_parser = whole::<u8>, allow_negative_numbers = true)]
    priority: Option<u8>,

    /// What its runs share with those of other schedules: one at a time may hold NAME, or N of them;
    /// can be repeated
    #[arg(long = "key", value_name = "NAME[:N]")]
    keys: Option<Vec<String>>,

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
pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "give a whole number, not below 0 and not too large")
}

impl Action {
    /// Reads the prompt, if it is elsewhere.
    pub(super) fn read(self) -> Result<api::Action, Error> {
        let Action { agent, prompt, tool, payload, sensitive: _, tier: _ } = self;
        let read = |typed| given::read("prompt", typed, io::stdin().lock());
        let prompt = prompt.map(read).transpose()?;
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
