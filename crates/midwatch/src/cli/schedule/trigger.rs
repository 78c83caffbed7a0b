//! The flags that say when a schedule fires. What they mean, the watch knows.

use clap::Args;

/// By the time.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct When {
    /// A cron expression, such as `30 9 * * MON-FRI`
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,

    /// An interval, such as `10s`, `1h30m` or `2d`; daylight saving does not change it
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<String>,

    /// Times of the day, such as `09:00,17:30`
    #[arg(long, value_name = "TIMES")]
    daily: Option<String>,

    /// One instant, such as `2026-07-01T09:00:00Z`; without an offset it is a time in the zone
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// The time zone, such as `Europe/Berlin`; there is no default, but --every and an instant with
    /// an offset need none
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// With --every: the first time of the interval [default: 1970-01-01T00:00:00Z]
    #[arg(long, value_name = "INSTANT")]
    anchor: Option<String>,

    /// With --cron or --daily, of a time that the clock skips: run_after, skip or shift [default:
    /// run_after, but what has a star in its time follows the clock]
    #[arg(long, value_name = "RULE")]
    dst_gap: Option<String>,

    /// With --cron or --daily, of a time that the clock shows twice: first, second or both [default:
    /// first, but what has a star in its time follows the clock]
    #[arg(long, value_name = "RULE")]
    dst_fold: Option<String>,
}

/// With --daily, on which days.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Days {
    /// With --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "DAYS")]
    on: Option<String>,
}

/// By the time, or after something.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Fires {
    #[command(flatten)]
    when: When,

    /// Whenever a run of this schedule ends
    #[arg(long, value_name = "ID")]
    after: Option<String>,

    /// With --after: how that run has to end, success, failure or any [default: success]; with
    /// --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "ENDING|DAYS")]
    on: Option<String>,

    /// Whenever somebody tells of an event of this name: `midwatch event tell NAME`
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// So long after its own last run, such as `10m`
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    again: Option<String>,

    /// With --again: since the start or the finish of that run [default: finish]
    #[arg(long, value_name = "start|finish")]
    since: Option<String>,
}

/// The flags of which a schedule has exactly one.
pub(super) const TRIGGERS: [&str; 7] = ["cron", "every", "daily", "at", "after", "event", "again"];
/// Those of them that go by the time.
pub(super) const TIMED: [&str; 4] = ["cron", "every", "daily", "at"];

impl When {
    pub(super) fn on(self, days: Days) -> api::When {
        let When { cron, every, daily, at, tz, anchor, dst_gap, dst_fold } = self;
        api::When { cron, every, daily, at, tz, anchor, on: days.on, dst_gap, dst_fold }
    }
}

impl From<Fires> for (api::When, api::Happening) {
    fn from(flags: Fires) -> (api::When, api::Happening) {
        let Fires { when, after, on, event, again, since } = flags;
        // One word for two things, of which only one can be meant.
        let (ending, on) = if after.is_some() { (on, None) } else { (None, on) };
        (when.on(Days { on }), api::Happening { after, ending, event, again, since })
    }
}
