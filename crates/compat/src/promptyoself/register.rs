//! The arguments of `register`: checked in promptyoself's order, with its error messages, and turned into a schedule.
//! Pure: the caller brings the clock.

use api::{Code, Error, When};
use calendar::{Calendar, Cron, Dst, Span, Trigger, Zone, format_instant, parse_instant};

use crate::cron::seconds_first;

/// The numbers of fields that a cron expression may have. The sixth has the seconds, which come first here.
const CRON_FIELDS: [usize; 2] = [5, 6];
const TIME_FORMS: &str = "Use ISO 8601, such as 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+02:00, \
                          or YYYY-MM-DD HH:MM:SS UTC";

/// The arguments as the caller gave them.
#[derive(Clone, Debug, Default)]
pub struct RegisterArgs {
    pub agent_id: Option<String>,
    pub prompt: Option<String>,
    pub time: Option<String>,
    pub cron: Option<String>,
    pub every: Option<String>,
    pub start_at: Option<String>,
    pub max_repetitions: Option<String>,
}

/// Arguments of which all required ones are present. Their values are not parsed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedArgs {
    pub agent_id: String,
    pub prompt: String,
    trigger: TriggerArg,
    max_repetitions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TriggerArg {
    Time(String),
    Cron(String),
    Every { every: String, start_at: Option<String> },
}

/// What a new schedule is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    pub when: When,
    /// The caller's text of the trigger.
    pub value: String,
    pub max_fires: Option<u64>,
}

pub fn invalid_input(text: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidInput, text)
}

impl RegisterArgs {
    /// Checks that all required arguments are present, and exactly one trigger.
    pub fn check(self) -> Result<CheckedArgs, Error> {
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (Some(agent_id), Some(prompt)) = (non_empty(self.agent_id), non_empty(self.prompt))
        else {
            return Err(invalid_input("Missing required arguments: agent-id and prompt"));
        };
        let start_at = non_empty(self.start_at);
        let trigger = match (non_empty(self.time), non_empty(self.cron), non_empty(self.every)) {
            (None, None, None) => {
                return Err(invalid_input("Must specify one of --time, --cron, or --every"));
            }
            (Some(time), None, None) => TriggerArg::Time(time),
            (None, Some(cron), None) => TriggerArg::Cron(cron),
            (None, None, Some(every)) => TriggerArg::Every { every, start_at: start_at.clone() },
            _ => return Err(invalid_input("Cannot specify multiple scheduling options")),
        };
        if start_at.is_some() && !matches!(trigger, TriggerArg::Every { .. }) {
            return Err(invalid_input("--start-at can only be used with --every"));
        }
        Ok(CheckedArgs { agent_id, prompt, trigger, max_repetitions: self.max_repetitions })
    }
}

impl CheckedArgs {
    /// Parses the values. Instants must be after `now_us`.
    pub fn to_schedule(&self, now_us: i64) -> Result<NewSchedule, Error> {
        let (when, value) = match &self.trigger {
            TriggerArg::Time(text) => {
                let at_us = parse_time(text)?;
                if at_us <= now_us {
                    return Err(invalid_input("Scheduled time must be in the future"));
                }
                (When { at: Some(format_instant(at_us)), ..When::default() }, text)
            }
            TriggerArg::Cron(text) => {
                next_cron_time(text, now_us).ok_or_else(|| invalid_cron(text))?;
                let (cron, tz) = (Some(seconds_first(text)), Some("UTC".to_owned()));
                (When { cron, tz, ..When::default() }, text)
            }
            TriggerArg::Every { every: text, start_at } => {
                let every = parse_interval(text).ok_or_else(|| invalid_interval(text))?;
                let anchor_us = match start_at.as_deref().map(parse_time).transpose()? {
                    Some(at_us) if at_us <= now_us => {
                        return Err(invalid_input("Start time must be in the future"));
                    }
                    Some(at_us) => at_us,
                    None => now_us.saturating_add(every.as_millis().saturating_mul(1_000)),
                };
                let (every, anchor) = (Some(every.to_string()), Some(format_instant(anchor_us)));
                (When { every, anchor, ..When::default() }, text)
            }
        };
        Ok(NewSchedule { when, value: value.clone(), max_fires: self.max_fires()? })
    }

    fn max_fires(&self) -> Result<Option<u64>, Error> {
        let wrong = || invalid_input("max-repetitions must be a positive integer");
        let Some(text) = &self.max_repetitions else { return Ok(None) };
        let count: u64 = text.trim().parse().map_err(|_| wrong())?;
        if count == 0 { Err(wrong()) } else { Ok(Some(count)) }
    }
}

/// Parses an instant to microseconds since 1970. Without an offset it is in UTC.
pub fn parse_time(text: &str) -> Result<i64, Error> {
    let wrong = || invalid_input(format!("Invalid time: {text}. {TIME_FORMS}"));
    let utc = utc().ok_or_else(wrong)?;
    let trimmed = text.trim();
    let Some(plain) = trimmed.strip_suffix("UTC").map(str::trim_end) else {
        return parse_instant(trimmed, Some(&utc)).map_err(|_| wrong());
    };
    // `UTC` after an explicit offset is ambiguous.
    match parse_instant(plain, None) {
        Ok(_) => Err(wrong()),
        Err(_) => parse_instant(plain, Some(&utc)).map_err(|_| wrong()),
    }
}

/// Parses whole seconds, minutes or hours.
pub fn parse_interval(text: &str) -> Option<Span> {
    let text = text.trim();
    let (digits, unit_s) = match text.chars().last()? {
        's' => (text.strip_suffix('s')?, 1),
        'm' => (text.strip_suffix('m')?, 60),
        'h' => (text.strip_suffix('h')?, 3_600),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = digits.parse().ok()?;
    Span::from_millis(seconds.checked_mul(unit_s)?.checked_mul(1_000)?)
}

/// Parses an expression of five fields or of six with the seconds last, or a name such as `@daily`.
pub fn parse_cron(text: &str) -> Option<Cron> {
    let native = seconds_first(text);
    let fields = native.split(' ').count();
    let is_supported = native.starts_with('@') || CRON_FIELDS.contains(&fields);
    is_supported.then(|| Cron::parse(&native).ok()).flatten().map(|parsed| parsed.cron)
}

/// The first time after `now_us` at which an expression fires.
fn next_cron_time(text: &str, now_us: i64) -> Option<i64> {
    let trigger = Trigger::Cron { expression: parse_cron(text)?, dst: Dst::default() };
    Calendar::new(trigger, utc()?).ok()?.next_after(now_us)
}

fn utc() -> Option<Zone> {
    "UTC".parse().ok()
}

fn invalid_cron(text: &str) -> Error {
    invalid_input(format!("Invalid cron expression: {text}"))
        .hint(
            "write five fields in UTC: minute, hour, day of month, month, day of week; an optional sixth field is \
             the seconds",
        )
}

fn invalid_interval(text: &str) -> Error {
    invalid_input(format!("Invalid interval format: {text}. Use formats like '30s', '5m', '1h'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-16T12:00:00Z";

    /// Flags as `name=value`, and the expected schedule or error message.
    fn check(flags: &[&str], expected: Result<&str, &str>) {
        let mut args = RegisterArgs::default();
        for flag in flags {
            let (name, value) = flag.split_once('=').unwrap();
            let field = match name {
                "agent" => &mut args.agent_id,
                "prompt" => &mut args.prompt,
                "time" => &mut args.time,
                "cron" => &mut args.cron,
                "every" => &mut args.every,
                "start" => &mut args.start_at,
                "max" => &mut args.max_repetitions,
                other => panic!("{other}"),
            };
            *field = Some(value.to_owned());
        }
        let now_us = parse_instant(NOW, None).unwrap();
        let found = args.check().and_then(|args| args.to_schedule(now_us));
        let found = found.map(|NewSchedule { when, value, max_fires }| {
            let parts = [when.at, when.cron, when.every, when.anchor, when.tz, Some(value)];
            let max = max_fires.map(|max| max.to_string());
            parts.into_iter().chain([max]).flatten().collect::<Vec<_>>().join(" | ")
        });
        let found = found.map_err(|error| error.message);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{flags:?}");
    }

    #[test]
    fn errors_have_the_text_and_order_of_promptyoself() {
        let missing = Err("Missing required arguments: agent-id and prompt");
        check(&[], missing);
        check(&["agent=a", "time=x", "cron=x"], missing);
        check(&["agent=a", "prompt=", "every=5m"], missing);
        check(&["prompt=p", "every=5m"], missing);
        let none = Err("Must specify one of --time, --cron, or --every");
        check(&["agent=a", "prompt=p", "max=0"], none);
        check(&["agent=a", "prompt=p", "time="], none);
        let many = Err("Cannot specify multiple scheduling options");
        check(&["agent=a", "prompt=p", "time=x", "cron=x"], many);
        check(&["agent=a", "prompt=p", "every=x", "cron=x", "max=0"], many);
        let start = Err("--start-at can only be used with --every");
        check(&["agent=a", "prompt=p", "cron=* * * * *", "start=2030-01-01T00:00:00Z"], start);
    }

    fn check_trigger(flags: &[&str], expected: Result<&str, &str>) {
        check(&[&["agent=a", "prompt=p"], flags].concat(), expected);
    }

    #[test]
    fn a_time_keeps_its_offset_and_defaults_to_utc() {
        let future = Err("Scheduled time must be in the future");
        check_trigger(
            &["time=2030-01-01T00:00:00-05:00"],
            Ok("2030-01-01T05:00:00Z | 2030-01-01T00:00:00-05:00"),
        );
        check_trigger(
            &["time=2030-01-01T00:00:00"],
            Ok("2030-01-01T00:00:00Z | 2030-01-01T00:00:00"),
        );
        check_trigger(
            &["time=2030-01-01 09:30:00 UTC"],
            Ok("2030-01-01T09:30:00Z | 2030-01-01 09:30:00 UTC"),
        );
        let ambiguous = "2030-01-01T00:00:00+02:00 UTC";
        let message = format!("Invalid time: {ambiguous}. {TIME_FORMS}");
        check_trigger(&[&format!("time={ambiguous}")], Err(&message));
        check_trigger(&["time=2026-11-16T12:00:00Z"], future);
        check_trigger(
            &["time=2026-11-16T12:00:01"],
            Ok("2026-11-16T12:00:01Z | 2026-11-16T12:00:01"),
        );
        check_trigger(&["time=2026-11-16T13:30:00+02:00", "max=0"], future);
        let message = format!("Invalid time: tomorrow. {TIME_FORMS}");
        check_trigger(&["time=tomorrow"], Err(&message));
    }

    #[test]
    fn a_cron_expression_has_five_or_six_fields_and_must_fire() {
        check_trigger(&["cron=0 9 * * 1-5", "max=3"], Ok("0 9 * * 1-5 | UTC | 0 9 * * 1-5 | 3"));
        check_trigger(&["cron=@daily"], Ok("@daily | UTC | @daily"));
        check_trigger(&["cron=0 9 * * 1 30"], Ok("30 0 9 * * 1 | UTC | 0 9 * * 1 30"));
        for bad in ["bad", "0 0 31 2 *", "0 9 * * 1 61", "0 9 * * 1 0 2030", "61 * * * *"] {
            let message = format!("Invalid cron expression: {bad}");
            check_trigger(&[&format!("cron={bad}"), "max=0"], Err(&message));
        }
    }

    #[test]
    fn an_interval_starts_one_interval_from_now_or_at_start_at() {
        check_trigger(&["every=45"], Ok("45s | 2026-11-16T12:00:45Z | 45"));
        check_trigger(&["every=5m"], Ok("5m | 2026-11-16T12:05:00Z | 5m"));
        check_trigger(
            &["every=1h", "start=2026-11-17T00:00:00+01:00", "max=2"],
            Ok("1h | 2026-11-16T23:00:00Z | 1h | 2"),
        );
        check_trigger(
            &["every=1h", "start=2026-11-16T12:00:00Z"],
            Err("Start time must be in the future"),
        );
        for bad in ["0", "0s", "-5m", "5d", "1.5h", "m", "5 m", "99999999999999999999"] {
            let message =
                format!("Invalid interval format: {bad}. Use formats like '30s', '5m', '1h'");
            check_trigger(&[&format!("every={bad}")], Err(&message));
        }
    }

    #[test]
    fn max_repetitions_is_at_least_one() {
        let positive = Err("max-repetitions must be a positive integer");
        for bad in ["0", "-1", "1.5", "many", ""] {
            check_trigger(&["every=5m", &format!("max={bad}")], positive);
        }
        check_trigger(&["every=5m", "max=1"], Ok("5m | 2026-11-16T12:05:00Z | 5m | 1"));
    }
}
