//! The flags that say when. What they mean, the watch knows.

use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").required(true).args(["cron", "every", "daily", "at"]))]
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
    #[arg(long, value_name = "INSTANT", requires = "every")]
    #[arg(conflicts_with_all = ["cron", "daily", "at"])]
    anchor: Option<String>,

    /// With --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "DAYS", requires = "daily")]
    #[arg(conflicts_with_all = ["cron", "every", "at"])]
    on: Option<String>,
}

impl From<When> for api::When {
    fn from(flags: When) -> api::When {
        let When { cron, every, daily, at, tz, anchor, on } = flags;
        api::When { cron, every, daily, at, tz, anchor, on }
    }
}
