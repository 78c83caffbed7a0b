//! Parses timed triggers from their wire form. The rules are those of `calendar`; its refusals become errors of the wire here,
//! the same ones on every surface.

use api::{Code, Error, EventTrigger, When};
use calendar::cron::{InvalidCron, ParsedCron, Problem};
use calendar::{Calendar, Cron, Dst, EVERY_MIN, Fold, Gap, SPAN_MAX, START_US, Span};
use calendar::{Hint, InvalidInstant, InvalidSpan, InvalidTimes, UnknownZone};
use calendar::{Trigger, Weekdays, Zone};
use kernel::Timestamp;

/// The fields of a timed trigger.
const TIMED: [&str; 4] = ["cron", "every", "daily", "at"];
/// The fields of any trigger.
const ALL: [&str; 7] = ["cron", "every", "daily", "at", "after", "event", "again"];

/// A parsed [`When`].
#[derive(Debug)]
pub struct ParsedWhen {
    pub calendar: Calendar,
    /// The zone that the caller named.
    pub zone: Option<Zone>,
    pub warnings: Vec<String>,
}

pub fn parse(when: &When) -> Result<ParsedWhen, Error> {
    // The trigger comes first, because it is most often wrong.
    let parsed = when.cron.as_deref().map(parse_cron).transpose()?;
    let zone = when.tz.as_deref().map(parse_zone).transpose()?;
    let warnings = parsed.iter().flat_map(|parsed| &parsed.warnings).map(ToString::to_string);
    let warnings = warnings.collect();
    let dst = parse_dst(when)?;
    let trigger = match (parsed, &when.every, &when.daily, &when.at) {
        (Some(ParsedCron { cron, .. }), None, None, None) => {
            Trigger::Cron { expression: cron, dst }
        }
        (None, Some(every), None, None) => {
            parse_interval(every, when.anchor.as_deref(), zone.as_ref())?
        }
        (None, None, Some(times), None) => parse_daily(times, when.on.as_deref(), dst)?,
        (None, None, None, Some(at)) => Trigger::Once { at_us: parse_instant(at, zone.as_ref())? },
        _ => return Err(not_one_trigger(&timed_triggers(when), &TIMED)),
    };
    check_dependent_fields(when)?;
    let display_zone = match (&zone, &trigger) {
        (Some(zone), _) => zone.clone(),
        (None, Trigger::Once { .. } | Trigger::Interval { .. }) => parse_zone("UTC")?,
        (None, Trigger::Cron { .. }) => return Err(missing_zone("a cron expression")),
        (None, Trigger::Daily { .. }) => return Err(missing_zone("a time of the day")),
    };
    let calendar = Calendar::new(trigger, display_zone).map_err(|error| refused(&error))?;
    Ok(ParsedWhen { calendar, zone, warnings })
}

/// Parses an instant, in microseconds since 1970. Without an offset it is a time in the zone.
pub fn parse_instant(text: &str, zone: Option<&Zone>) -> Result<i64, Error> {
    calendar::parse_instant(text, zone).map_err(|error| match error {
        InvalidInstant::NoZone(_) => refused(&error)
            .hint("name its zone, as in `--tz Europe/Berlin`, or add `Z` or an offset"),
        _ => refused(&error),
    })
}

/// Parses an instant, or a span before now.
pub(crate) fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let micros = match text.contains(['-', ':']) {
        true => parse_instant(text, None)?,
        false => {
            let span: Span = text.parse().map_err(|error| match error {
                InvalidSpan::Malformed(_) => {
                    let what = format!("`{text}` is neither a span nor an instant");
                    Error::new(Code::InvalidInput, what)
                        .hint("write it as `30m`, `2h` or `7d`, or as `2026-11-18 09:00`")
                }
                other => refused(&other),
            })?;
            let span_us = span.as_millis().saturating_mul(1_000);
            now.as_micros().saturating_sub(span_us)
        }
    };
    Ok(Timestamp::from_micros(micros))
}

pub fn parse_span(text: &str) -> Result<Span, Error> {
    text.parse().map_err(|error: InvalidSpan| refused(&error))
}

fn parse_cron(text: &str) -> Result<ParsedCron, Error> {
    Cron::parse(text).map_err(|refusal| match (&refusal.problem, &refusal.fix) {
        (Problem::Every, Some(every)) => {
            refused(&refusal).hint(format!("use `--{every}` instead of `--cron`"))
        }
        (Problem::Every, None) => refused(&refusal).hint("use `--every`, as in `--every 10m`"),
        _ => refused(&refusal),
    })
}

fn parse_interval(
    every: &str,
    anchor: Option<&str>,
    zone: Option<&Zone>,
) -> Result<Trigger, Error> {
    let every = every.parse().map_err(|error| match error {
        InvalidSpan::OutOfRange(_) => {
            refused(&error).hint(format!("an interval is from {EVERY_MIN} to {SPAN_MAX}"))
        }
        InvalidSpan::Malformed(_) => refused(&error),
    })?;
    let anchor = anchor.map(|text| parse_instant(text, zone)).transpose()?;
    Ok(Trigger::Interval { every, anchor_us: anchor.unwrap_or(START_US) })
}

fn parse_daily(times: &str, on: Option<&str>, dst: Dst) -> Result<Trigger, Error> {
    let times = times.parse().map_err(|error: InvalidTimes| refused(&error))?;
    let weekdays = on.map(parse_weekdays).transpose()?.unwrap_or_default();
    Ok(Trigger::Daily { times, weekdays, dst })
}

fn parse_dst(when: &When) -> Result<Dst, Error> {
    let gaps = [("run_after", Gap::RunAfter), ("skip", Gap::Skip), ("shift", Gap::Shift)];
    let folds = [("first", Fold::First), ("second", Fold::Second), ("both", Fold::Both)];
    let gap =
        when.dst_gap.as_deref().map(|text| find_rule(text, "a time that the clock skips", &gaps));
    let shown_twice = "a time that the clock shows twice";
    let fold = when.dst_fold.as_deref().map(|text| find_rule(text, shown_twice, &folds));
    Ok(Dst { gap: gap.transpose()?, fold: fold.transpose()? })
}

fn find_rule<T: Copy>(text: &str, what: &str, rules: &[(&str, T)]) -> Result<T, Error> {
    let found = rules.iter().find(|(name, _)| *name == text);
    found.map(|(_, rule)| *rule).ok_or_else(|| {
        let names: Vec<&str> = rules.iter().map(|(name, _)| *name).collect();
        Error::new(Code::InvalidInput, format!("unknown rule `{text}` for {what}"))
            .hint(format!("the rules are {}", names.join(", ")))
    })
}

fn parse_weekdays(text: &str) -> Result<Weekdays, Error> {
    text.parse().map_err(|refusal: InvalidCron| match &refusal.fix {
        Some(_) => refused(&refusal),
        // The hint of the error is about cron expressions.
        None => refused(&refusal).hint("write days as `mon,fri` or `mon-fri`"),
    })
}

pub(crate) fn parse_zone(text: &str) -> Result<Zone, Error> {
    text.parse().map_err(|error: UnknownZone| refused(&error))
}

/// Refuses a schedule with several triggers, or with none.
pub(crate) fn check_one_trigger(when: &When, event: &EventTrigger) -> Result<(), Error> {
    if when.on.is_some() && when.daily.is_none() {
        let what = "`on` needs `daily` or `after`";
        return Err(Error::new(Code::InvalidInput, what).hint("omit `on`"));
    }
    let EventTrigger { after, event: name, again, ending, since } = event;
    let of_events = [("after", after), ("event", name), ("again", again)];
    let of_events = of_events.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name);
    let given: Vec<&str> = timed_triggers(when).into_iter().chain(of_events).collect();
    // A field of a trigger that is missing has an error of its own.
    let is_misplaced = given.is_empty() && (ending.is_some() || since.is_some());
    match given.len() == 1 || is_misplaced {
        true => Ok(()),
        false => Err(not_one_trigger(&given, &ALL)),
    }
}

fn timed_triggers(when: &When) -> Vec<&'static str> {
    let values = [&when.cron, &when.every, &when.daily, &when.at];
    TIMED
        .into_iter()
        .zip(values)
        .filter(|(_, value)| value.is_some())
        .map(|(name, _)| name)
        .collect()
}

fn not_one_trigger(given: &[&str], possible: &[&str]) -> Error {
    let quoted = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    };
    let (what, hint) = match given {
        [] => ("the trigger is missing".to_owned(), format!("use one of {}", quoted(possible))),
        given => {
            let what = format!("a schedule has exactly one trigger, not {}", quoted(given));
            (what, "keep one of them".to_owned())
        }
    };
    Error::new(Code::InvalidInput, what).hint(hint)
}

/// Refuses fields that need another trigger.
fn check_dependent_fields(when: &When) -> Result<(), Error> {
    let misplaced = |what: &str, with: &str| {
        let message = format!("`{what}` needs `{with}`");
        Err(Error::new(Code::InvalidInput, message).hint(format!("omit `{what}`")))
    };
    match when {
        When { anchor: Some(_), every: None, .. } => misplaced("anchor", "every"),
        When { on: Some(_), daily: None, .. } => misplaced("on", "daily"),
        When { dst_gap: Some(_), cron: None, daily: None, .. } => {
            misplaced("dst_gap", "cron` or `daily")
        }
        When { dst_fold: Some(_), cron: None, daily: None, .. } => {
            misplaced("dst_fold", "cron` or `daily")
        }
        _ => Ok(()),
    }
}

fn missing_zone(what: &str) -> Error {
    let what = format!("{what} needs a time zone, and there is no default");
    Error::new(Code::InvalidInput, what).hint("name it, as in `--tz Europe/Berlin` or `--tz UTC`")
}

fn refused(error: &impl Hint) -> Error {
    Error::new(Code::InvalidInput, error.reason()).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Expects the description of the trigger and its zone, or the error message.
    fn check(form: Value, expected: Result<&str, &str>) {
        let when: When = serde_json::from_value(form.clone()).unwrap();
        let found = parse(&when).map(|ParsedWhen { calendar, .. }| {
            format!("{} ({})", calendar.describe(), calendar.zone().name())
        });
        let found = found.map_err(|error| {
            assert_eq!(error.code, Code::InvalidInput, "{form}");
            error.message
        });
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{form}");
    }

    #[test]
    fn parses_each_trigger() {
        let berlin = "Europe/Berlin";
        check(json!({"cron": "0 9 * * *", "tz": berlin}), Ok("at 09:00 every day (Europe/Berlin)"));
        check(json!({"every": "10s"}), Ok("every 10 seconds (UTC)"));
        check(
            json!({"every": "1h", "anchor": "2026-01-01T00:10:00Z"}),
            Ok("every hour from 2026-01-01T00:10:00Z (UTC)"),
        );
        check(
            json!({"daily": "09:00", "on": "mon", "tz": berlin}),
            Ok("at 09:00 on Monday (Europe/Berlin)"),
        );
        check(
            json!({"at": "2026-07-01 09:00", "tz": berlin}),
            Ok("once at 2026-07-01T09:00:00+02:00 (Europe/Berlin)"),
        );
    }

    #[test]
    fn refuses_several_triggers_and_fields_of_other_triggers() {
        let none = Err("the trigger is missing");
        check(json!({}), none);
        check(json!({"tz": "UTC"}), none);
        let several = |given: &str| format!("a schedule has exactly one trigger, not {given}");
        check(
            json!({"cron": "0 9 * * *", "every": "10s", "tz": "UTC"}),
            Err(&several("`cron` and `every`")),
        );
        check(
            json!({"every": "10s", "daily": "09:00", "at": "2026-07-01T09:00:00Z", "tz": "UTC"}),
            Err(&several("`every`, `daily` and `at`")),
        );
        let anchor = "2026-01-01T00:00:00Z";
        check(
            json!({"daily": "09:00", "anchor": anchor, "tz": "UTC"}),
            Err("`anchor` needs `every`"),
        );
        check(json!({"every": "10s", "on": "mon"}), Err("`on` needs `daily`"));
    }

    #[test]
    fn a_schedule_has_one_of_all_triggers() {
        let after = EventTrigger { after: Some("sch_1".into()), ..EventTrigger::default() };
        let every = When { every: Some("1h".into()), ..When::default() };
        let ending = EventTrigger { ending: Some("any".into()), ..EventTrigger::default() };
        let (no_time, no_event) = (When::default(), EventTrigger::default());
        assert_eq!(check_one_trigger(&every, &no_event), Ok(()));
        assert_eq!(check_one_trigger(&no_time, &after), Ok(()));
        assert_eq!(check_one_trigger(&no_time, &ending), Ok(()), "another error is about it");
        let missing = check_one_trigger(&no_time, &no_event).unwrap_err();
        assert_eq!(
            (missing.message.as_str(), missing.hint.as_deref()),
            (
                "the trigger is missing",
                Some("use one of `cron`, `every`, `daily`, `at`, `after`, `event` and `again`")
            )
        );
        let both = check_one_trigger(&every, &after).unwrap_err();
        assert_eq!(both.message, "a schedule has exactly one trigger, not `every` and `after`");
        let days = When { on: Some("mon".into()), ..every };
        let misplaced = check_one_trigger(&days, &no_event).unwrap_err();
        assert_eq!(misplaced.message, "`on` needs `daily` or `after`");
    }

    #[test]
    fn spans_have_limits() {
        assert_eq!(parse_span("1ms").unwrap().as_millis(), 1);
        assert_eq!(parse_span("0s").unwrap_err().hint.unwrap(), "a duration is from 1ms to 3660d");
        assert_eq!(parse_span("3661d").unwrap_err().message, "`3661d` is out of range");
        assert_eq!(parse_span("ten").unwrap_err().message, "`ten` is not a duration");
    }
}
