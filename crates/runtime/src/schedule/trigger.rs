//! Parses timed triggers from their wire form. The rules are those of `calendar`; its refusals become errors of the wire here,
//! the same ones on every surface.

use api::{Code, Error, When};
use calendar::cron::{InvalidCron, ParsedCron, Problem};
use calendar::{Calendar, Cron, Dst, EVERY_MIN, Fold, Gap, SPAN_MAX, START_US, Span};
use calendar::{Hint, InvalidInstant, InvalidSpan, InvalidTimes, UnknownZone};
use calendar::{Trigger, Weekdays, Zone};
use kernel::Timestamp;

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
        _ => return Err(not_one_trigger()),
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
            let span_us = parse_span(text)?.as_millis().saturating_mul(1_000);
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

fn not_one_trigger() -> Error {
    Error::new(Code::InvalidInput, "a schedule has exactly one trigger")
        .hint("use one of `cron`, `every`, `daily` and `at`")
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
        let not_one = Err("a schedule has exactly one trigger");
        check(json!({}), not_one);
        check(json!({"tz": "UTC"}), not_one);
        check(json!({"cron": "0 9 * * *", "every": "10s", "tz": "UTC"}), not_one);
        check(json!({"every": "10s", "daily": "09:00", "tz": "UTC"}), not_one);
        check(json!({"daily": "09:00", "at": "2026-07-01T09:00:00Z", "tz": "UTC"}), not_one);
        let anchor = "2026-01-01T00:00:00Z";
        check(
            json!({"daily": "09:00", "anchor": anchor, "tz": "UTC"}),
            Err("`anchor` needs `every`"),
        );
        check(json!({"every": "10s", "on": "mon"}), Err("`on` needs `daily`"));
    }

    #[test]
    fn spans_have_limits() {
        assert_eq!(parse_span("1ms").unwrap().as_millis(), 1);
        assert_eq!(parse_span("0s").unwrap_err().hint.unwrap(), "a duration is from 1ms to 3660d");
        assert_eq!(parse_span("3661d").unwrap_err().message, "`3661d` is out of range");
        assert_eq!(parse_span("ten").unwrap_err().message, "`ten` is not a duration");
    }
}
