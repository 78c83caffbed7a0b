//! The flags of a trigger. The engine checks their values.

use clap::Args;

/// The flags of a trigger by time.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct TimeTrigger {
    /// A cron expression, such as `30 9 * * MON-FRI`
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,

    /// An interval, such as `10s`, `1h30m` or `2d`; daylight saving time does not affect it
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<String>,

    /// Times of the day, such as `09:00,17:30`
    #[arg(long, value_name = "TIMES")]
    daily: Option<String>,

    /// One instant, such as `2026-07-01T09:00:00Z`, in the zone if it has no offset
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// The time zone, such as `Europe/Berlin`; required, except with --every or an instant with an
    /// offset
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// With --every: an instant at which the interval fires [default: 1970-01-01T00:00:00Z]
    #[arg(long, value_name = "INSTANT")]
    anchor: Option<String>,

    /// With --cron or --daily, what to do about a time that the clock skips: run_after, skip or shift
    /// [default: run_after; expressions with `*` in minute or hour follow the wall clock]
    #[arg(long, value_name = "RULE")]
    dst_gap: Option<String>,

    /// With --cron or --daily, which of a time that the clock shows twice: first, second or both
    /// [default: first; expressions with `*` in minute or hour follow the wall clock]
    #[arg(long, value_name = "RULE")]
    dst_fold: Option<String>,
}

/// The days of `--daily`.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Days {
    /// With --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "DAYS")]
    on: Option<String>,
}

/// The flags of any trigger: by time, after a run, by an event.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Trigger {
    #[command(flatten)]
    time: TimeTrigger,

    /// Fire whenever a run of this schedule ends
    #[arg(long, value_name = "ID")]
    after: Option<String>,

    /// With --after: the outcome of that run, success, failure or any [default: success]; with
    /// --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "ENDING|DAYS")]
    on: Option<String>,

    /// Fire on each event of this name: `midwatch event publish NAME`
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Fire this long after its own last run, such as `10m`
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    again: Option<String>,

    /// With --again: counted from the start or the finish of that run [default: finish]
    #[arg(long, value_name = "start|finish")]
    since: Option<String>,
}

/// The flags of which a schedule has exactly one.
pub(super) const TRIGGERS: [&str; 7] = ["cron", "every", "daily", "at", "after", "event", "again"];
/// Those of [`TRIGGERS`] that depend on time alone.
pub(super) const TIME_TRIGGERS: [&str; 4] = ["cron", "every", "daily", "at"];

impl TimeTrigger {
    pub(super) fn on(self, days: Days) -> api::When {
        let TimeTrigger { cron, every, daily, at, tz, anchor, dst_gap, dst_fold } = self;
        api::When { cron, every, daily, at, tz, anchor, on: days.on, dst_gap, dst_fold }
    }
}

impl From<Trigger> for (api::When, api::EventTrigger) {
    fn from(flags: Trigger) -> (api::When, api::EventTrigger) {
        let Trigger { time, after, on, event, again, since } = flags;
        // `--on` is an outcome with `--after`, and days otherwise.
        let (ending, on) = if after.is_some() { (on, None) } else { (None, on) };
        (time.on(Days { on }), api::EventTrigger { after, ending, event, again, since })
    }
}
