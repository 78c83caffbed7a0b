//! Triggers that do not go by the time: the wire form, and what it means.

use api::{Code, Error, Happening as Asked, When};
use calendar::{Span, Zone};
use kernel::schedule::trigger::{Ending, Happening, Since};

use crate::when;

/// What a wire form means, if it says that a schedule waits for something. The zone is for showing
/// instants.
pub(crate) fn meant(when: &When, asked: &Asked) -> Result<Option<(Happening, Zone)>, Error> {
    if asked.is_none() {
        return Ok(None);
    }
    let only_zone = When { tz: when.tz.clone(), ..When::default() };
    if *when != only_zone {
        return Err(not_one());
    }
    let happening = match asked {
        Asked { after: Some(after), ending, event: None, again: None, since: None } => {
            let schedule = after.parse().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch schedule list` shows the schedules")
            })?;
            let on = ending.as_deref().map(self::ending).transpose()?.unwrap_or_default();
            Happening::After { schedule, on }
        }
        Asked { event: Some(name), after: None, ending: None, again: None, since: None } => {
            let name = name.parse().map_err(|invalid| Error::new(Code::InvalidInput, invalid))?;
            Happening::Event { name }
        }
        Asked { again: Some(every), since, after: None, ending: None, event: None } => {
            let since = since.as_deref().map(self::since).transpose()?.unwrap_or(Since::Finish);
            Happening::Again { every: interval(every)?, since }
        }
        Asked { after: None, ending: Some(_), .. } => return Err(misplaced("ending", "after")),
        Asked { again: None, since: Some(_), .. } => return Err(misplaced("since", "again")),
        Asked { .. } => return Err(not_one()),
    };
    Ok(Some((happening, when::zone_named(when.tz.as_deref().unwrap_or("UTC"))?)))
}

fn interval(text: &str) -> Result<Span, Error> {
    let every = when::span(text)?;
    match calendar::EVERY_MIN <= every {
        true => Ok(every),
        false => Err(Error::new(Code::InvalidInput, format!("`{text}` is out of range")).hint(
            format!("an interval is from {} to {}", calendar::EVERY_MIN, calendar::SPAN_MAX),
        )),
    }
}

fn ending(text: &str) -> Result<Ending, Error> {
    match text {
        "success" => Ok(Ending::Success),
        "failure" => Ok(Ending::Failure),
        "any" => Ok(Ending::Any),
        other => Err(Error::new(Code::InvalidInput, format!("a run does not end as `{other}`"))
            .hint("it is `success`, `failure` or `any`")),
    }
}

fn since(text: &str) -> Result<Since, Error> {
    match text {
        "start" => Ok(Since::Start),
        "finish" => Ok(Since::Finish),
        other => Err(Error::new(Code::InvalidInput, format!("nothing is counted since `{other}`"))
            .hint("it is `start` or `finish`")),
    }
}

fn misplaced(what: &str, with: &str) -> Error {
    Error::new(Code::InvalidInput, format!("`{what}` goes only with `{with}`"))
        .hint(format!("leave out `{what}`"))
}

fn not_one() -> Error {
    Error::new(Code::InvalidInput, "a schedule fires by the time, or after something, not both")
        .hint("give either times, or one of `after`, `event` and `again`")
}
