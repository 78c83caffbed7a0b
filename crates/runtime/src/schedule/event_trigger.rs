//! Parses triggers that are not timed: after a run, on an event, again after the own run.

use api::{Code, Error, EventTrigger as WireTrigger, When};
use calendar::{Span, Zone};
use kernel::schedule::trigger::{EventTrigger, RequiredOutcome, Since};

use crate::schedule::trigger;

/// The trigger of a schedule that is not timed, and the zone in which its instants are shown. `None` for a timed one.
pub(crate) fn parse(
    when: &When,
    wire: &WireTrigger,
) -> Result<Option<(EventTrigger, Zone)>, Error> {
    if wire.is_none() {
        return Ok(None);
    }
    let only_zone = When { tz: when.tz.clone(), ..When::default() };
    if *when != only_zone {
        return Err(not_one_trigger());
    }
    let trigger = match wire {
        WireTrigger { after: Some(after), ending, event: None, again: None, since: None } => {
            let schedule = after.parse().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch schedule list` shows the schedules")
            })?;
            let on = ending.as_deref().map(parse_outcome).transpose()?.unwrap_or_default();
            EventTrigger::AfterRun { schedule, on }
        }
        WireTrigger { event: Some(name), after: None, ending: None, again: None, since: None } => {
            let name = name.parse().map_err(|invalid| Error::new(Code::InvalidInput, invalid))?;
            EventTrigger::Event { name }
        }
        WireTrigger { again: Some(every), since, after: None, ending: None, event: None } => {
            let since = since.as_deref().map(parse_since).transpose()?.unwrap_or(Since::Finish);
            EventTrigger::AfterOwnRun { every: parse_interval(every)?, since }
        }
        WireTrigger { after: None, ending: Some(_), .. } => {
            return Err(misplaced("ending", "after"));
        }
        WireTrigger { again: None, since: Some(_), .. } => return Err(misplaced("since", "again")),
        WireTrigger { .. } => return Err(not_one_trigger()),
    };
    Ok(Some((trigger, trigger::parse_zone(when.tz.as_deref().unwrap_or("UTC"))?)))
}

fn parse_interval(text: &str) -> Result<Span, Error> {
    let every = trigger::parse_span(text)?;
    match calendar::EVERY_MIN <= every {
        true => Ok(every),
        false => Err(Error::new(Code::InvalidInput, format!("`{text}` is out of range")).hint(
            format!("an interval is from {} to {}", calendar::EVERY_MIN, calendar::SPAN_MAX),
        )),
    }
}

fn parse_outcome(text: &str) -> Result<RequiredOutcome, Error> {
    match text {
        "success" => Ok(RequiredOutcome::Success),
        "failure" => Ok(RequiredOutcome::Failure),
        "any" => Ok(RequiredOutcome::Any),
        other => Err(Error::new(Code::InvalidInput, format!("unknown outcome `{other}`"))
            .hint("use `success`, `failure` or `any`")),
    }
}

fn parse_since(text: &str) -> Result<Since, Error> {
    match text {
        "start" => Ok(Since::Start),
        "finish" => Ok(Since::Finish),
        other => Err(Error::new(Code::InvalidInput, format!("`since` cannot be `{other}`"))
            .hint("use `start` or `finish`")),
    }
}

fn misplaced(what: &str, with: &str) -> Error {
    Error::new(Code::InvalidInput, format!("`{what}` needs `{with}`"))
        .hint(format!("omit `{what}`"))
}

fn not_one_trigger() -> Error {
    Error::new(Code::InvalidInput, "a schedule has exactly one trigger")
        .hint("use either a timed trigger, or one of `after`, `event` and `again`")
}
