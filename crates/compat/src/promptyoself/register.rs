//! What `register` is asked for, checked in the order and with the words that its clients know.
//! Pure: the caller brings the clock.

use api::{Code, Error, When};
use calendar::{Calendar, Cron, Dst, Span, Trigger, Zone, format_instant, parse_instant};

/// Fields of the expressions that were ever taken; other ones are read in another way elsewhere.
const CRON_FIELDS: usize = 5;
const TIME_FORMS: &str = "Use ISO 8601, such as 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+02:00, \
                          or YYYY-MM-DD HH:MM:SS UTC";

/// What was said, as it was given.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub agent_id: Option<String>,
    pub prompt: Option<String>,
    pub time: Option<String>,
    pub cron: Option<String>,
    pub every: Option<String>,
    pub start_at: Option<String>,
    pub max_repetitions: Option<String>,
}

/// What is asked for, before it is known whether it makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub agent_id: String,
    pub prompt: String,
    when: Meant,
    max_repetitions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Meant {
    Time(String),
    Cron(String),
    Every { every: String, start_at: Option<String> },
}

/// A schedule that can be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub when: When,
    /// The text of the caller that says when.
    pub value: String,
    pub max_fires: Option<u64>,
}

pub fn refused(text: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidInput, text)
}

impl Asked {
    pub fn said(self) -> Result<Said, Error> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (Some(agent_id), Some(prompt)) = (given(self.agent_id), given(self.prompt)) else {
            return Err(refused("Missing required arguments: agent-id and prompt"));
        };
        let start_at = given(self.start_at);
        let when = match (given(self.time), given(self.cron), given(self.every)) {
            (None, None, None) => {
                return Err(refused("Must specify one of --time, --cron, or --every"));
            }
            (Some(time), None, None) => Meant::Time(time),
            (None, Some(cron), None) => Meant::Cron(cron),
            (None, None, Some(every)) => Meant::Every { every, start_at: start_at.clone() },
            _ => return Err(refused("Cannot specify multiple scheduling options")),
        };
        if start_at.is_some() && !matches!(when, Meant::Every { .. }) {
            return Err(refused("--start-at can only be used with --every"));
        }
        Ok(Said { agent_id, prompt, when, max_repetitions: self.max_repetitions })
    }
}

impl Said {
    pub fn wanted(&self, now_us: i64) -> Result<Wanted, Error> {
        let (when, value) = match &self.when {
            Meant::Time(text) => {
                let at_us = time(text)?;
                if at_us <= now_us {
                    return Err(refused("Scheduled time must be in the future"));
                }
                (When { at: Some(format_instant(at_us)), ..When::default() }, text)
            }
            Meant::Cron(text) => {
                cron_after(text, now_us).ok_or_else(|| invalid_cron(text))?;
                let (cron, tz) = (Some(text.trim().to_owned()), Some("UTC".to_owned()));
                (When { cron, tz, ..When::default() }, text)
            }
            Meant::Every { every: text, start_at } => {
                let every = interval(text).ok_or_else(|| invalid_interval(text))?;
                let anchor_us = match start_at.as_deref().map(time).transpose()? {
                    Some(at_us) if at_us <= now_us => {
                        return Err(refused("Start time must be in the future"));
                    }
                    Some(at_us) => at_us,
                    None => now_us.saturating_add(every.as_millis().saturating_mul(1_000)),
                };
                let (every, anchor) = (Some(every.to_string()), Some(format_instant(anchor_us)));
                (When { every, anchor, ..When::default() }, text)
            }
        };
        Ok(Wanted { when, value: value.clone(), max_fires: self.max_fires()? })
    }

    fn max_fires(&self) -> Result<Option<u64>, Error> {
        let wrong = || refused("max-repetitions must be a positive integer");
        let Some(text) = &self.max_repetitions else { return Ok(None) };
        let count: u64 = text.trim().parse().map_err(|_| wrong())?;
        if count == 0 { Err(wrong()) } else { Ok(Some(count)) }
    }
}

/// An instant in microseconds since 1970. Without an offset it is a time in UTC, by which it also fires.
pub fn time(text: &str) -> Result<i64, Error> {
    let wrong = || refused(format!("Invalid time: {text}. {TIME_FORMS}"));
    let utc = utc().ok_or_else(wrong)?;
    let trimmed = text.trim();
    let Some(plain) = trimmed.strip_suffix("UTC").map(str::trim_end) else {
        return parse_instant(trimmed, Some(&utc)).map_err(|_| wrong());
    };
    // One that has an offset as well says two things.
    match parse_instant(plain, None) {
        Ok(_) => Err(wrong()),
        Err(_) => parse_instant(plain, Some(&utc)).map_err(|_| wrong()),
    }
}

/// Whole seconds, minutes or hours.
pub fn interval(text: &str) -> Option<Span> {
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

/// An expression of five fields, or of a name such as `@daily`.
pub fn cron(text: &str) -> Option<Cron> {
    let text = text.trim();
    let is_known = text.starts_with('@') || text.split_whitespace().count() == CRON_FIELDS;
    is_known.then(|| Cron::parse(text).ok()).flatten().map(|parsed| parsed.cron)
}

/// The first time of an expression, if it has one.
fn cron_after(text: &str, now_us: i64) -> Option<i64> {
    let trigger = Trigger::Cron { expression: cron(text)?, dst: Dst::default() };
    Calendar::new(trigger, utc()?).ok()?.next_after(now_us)
}

fn utc() -> Option<Zone> {
    "UTC".parse().ok()
}

fn invalid_cron(text: &str) -> Error {
    refused(format!("Invalid cron expression: {text}"))
        .hint("give five fields in UTC: minute, hour, day of month, month, day of week")
}

fn invalid_interval(text: &str) -> Error {
    refused(format!("Invalid interval format: {text}. Use formats like '30s', '5m', '1h'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-16T12:00:00Z";

    /// Flags as `name=value`, and the schedule that they make or what is said about them.
    fn check(flags: &[&str], expected: Result<&str, &str>) {
        let mut asked = Asked::default();
        for flag in flags {
            let (name, value) = flag.split_once('=').unwrap();
            let place = match name {
                "agent" => &mut asked.agent_id,
                "prompt" => &mut asked.prompt,
                "time" => &mut asked.time,
                "cron" => &mut asked.cron,
                "every" => &mut asked.every,
                "start" => &mut asked.start_at,
                "max" => &mut asked.max_repetitions,
                other => panic!("{other}"),
            };
            *place = Some(value.to_owned());
        }
        let now_us = parse_instant(NOW, None).unwrap();
        let found = asked.said().and_then(|said| said.wanted(now_us));
        let found = found.map(|Wanted { when, value, max_fires }| {
            let parts = [when.at, when.cron, when.every, when.anchor, when.tz, Some(value)];
            let max = max_fires.map(|max| max.to_string());
            parts.into_iter().chain([max]).flatten().collect::<Vec<_>>().join(" | ")
        });
        let found = found.map_err(|error| error.message);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{flags:?}");
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_that_clients_know_and_in_their_order() {
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

    fn when(flags: &[&str], expected: Result<&str, &str>) {
        check(&[&["agent=a", "prompt=p"], flags].concat(), expected);
    }

    #[test]
    fn a_time_keeps_its_offset_and_is_utc_without_one() {
        let future = Err("Scheduled time must be in the future");
        when(
            &["time=2030-01-01T00:00:00-05:00"],
            Ok("2030-01-01T05:00:00Z | 2030-01-01T00:00:00-05:00"),
        );
        when(&["time=2030-01-01T00:00:00"], Ok("2030-01-01T00:00:00Z | 2030-01-01T00:00:00"));
        when(
            &["time=2030-01-01 09:30:00 UTC"],
            Ok("2030-01-01T09:30:00Z | 2030-01-01 09:30:00 UTC"),
        );
        let twice = "2030-01-01T00:00:00+02:00 UTC";
        let words = format!("Invalid time: {twice}. {TIME_FORMS}");
        when(&[&format!("time={twice}")], Err(&words));
        when(&["time=2026-11-16T12:00:00Z"], future);
        when(&["time=2026-11-16T12:00:01"], Ok("2026-11-16T12:00:01Z | 2026-11-16T12:00:01"));
        when(&["time=2026-11-16T13:30:00+02:00", "max=0"], future);
        let words = format!("Invalid time: tomorrow. {TIME_FORMS}");
        when(&["time=tomorrow"], Err(&words));
    }

    #[test]
    fn an_expression_has_five_fields_and_fires() {
        when(&["cron=0 9 * * 1-5", "max=3"], Ok("0 9 * * 1-5 | UTC | 0 9 * * 1-5 | 3"));
        when(&["cron=@daily"], Ok("@daily | UTC | @daily"));
        for bad in ["bad", "0 0 31 2 *", "0 0 9 * * *", "61 * * * *"] {
            let words = format!("Invalid cron expression: {bad}");
            when(&[&format!("cron={bad}"), "max=0"], Err(&words));
        }
    }

    #[test]
    fn an_interval_begins_one_interval_from_now_or_at_its_start() {
        when(&["every=45"], Ok("45s | 2026-11-16T12:00:45Z | 45"));
        when(&["every=5m"], Ok("5m | 2026-11-16T12:05:00Z | 5m"));
        when(
            &["every=1h", "start=2026-11-17T00:00:00+01:00", "max=2"],
            Ok("1h | 2026-11-16T23:00:00Z | 1h | 2"),
        );
        when(&["every=1h", "start=2026-11-16T12:00:00Z"], Err("Start time must be in the future"));
        for bad in ["0", "0s", "-5m", "5d", "1.5h", "m", "5 m", "99999999999999999999"] {
            let words =
                format!("Invalid interval format: {bad}. Use formats like '30s', '5m', '1h'");
            when(&[&format!("every={bad}")], Err(&words));
        }
    }

    #[test]
    fn repetitions_are_counted_from_one() {
        let positive = Err("max-repetitions must be a positive integer");
        for bad in ["0", "-1", "1.5", "many", ""] {
            when(&["every=5m", &format!("max={bad}")], positive);
        }
        when(&["every=5m", "max=1"], Ok("5m | 2026-11-16T12:05:00Z | 5m | 1"));
    }
}
