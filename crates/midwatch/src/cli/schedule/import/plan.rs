//! Checks the entries of a source: which of them can be schedules here, and when they fire. Pure.

use api::{Code, Error, ScheduleAdd};
use calendar::{NoNextSlot, Zone};
use compat::import::{Entry, LeftOut, NewSchedule, Position};
use kernel::Timestamp;
use runtime::check_schedule;
use runtime::trigger::{ParsedWhen, parse};

use crate::cli::promptyoself::registered_agents::name_for;

/// The most schedules of one request, and so of an import.
pub(super) const SCHEDULES_MAX: usize = 1_000;
/// As many next times as the answer to `schedule add` has.
const NEXT_MAX: usize = 5;

/// An entry, and the schedule that it becomes unless it is left out.
#[derive(Debug)]
pub(super) struct PlannedEntry {
    pub position: Position,
    pub text: String,
    pub outcome: Result<Planned, LeftOut>,
}

#[derive(Debug)]
pub(super) struct Planned {
    pub schedule: NewSchedule,
    pub describe: String,
    pub zone: Zone,
    pub next_us: Vec<i64>,
}

pub(super) fn plan(entries: Vec<Entry>, now: Timestamp) -> Result<Vec<PlannedEntry>, Error> {
    let entries: Vec<PlannedEntry> = entries
        .into_iter()
        .map(|Entry { position, text, outcome }| {
            let outcome = outcome.and_then(|schedule| check(schedule, now));
            PlannedEntry { position, text, outcome }
        })
        .collect();
    match entries.iter().filter(|entry| entry.outcome.is_ok()).count() <= SCHEDULES_MAX {
        true => Ok(entries),
        false => {
            let what =
                format!("more than {SCHEDULES_MAX} schedules, the most that are imported at once");
            Err(Error::new(Code::InvalidInput, what).hint("split them into several files"))
        }
    }
}

/// Checks that a schedule is valid and fires at all.
fn check(mut schedule: NewSchedule, now: Timestamp) -> Result<Planned, LeftOut> {
    let ParsedWhen { calendar, warnings, .. } =
        parse(&schedule.request.when).map_err(with_alternative)?;
    if let Some(reason) = calendar.no_next_slot(now.as_micros()) {
        return Err(never_fires(reason));
    }
    check_schedule(&with_valid_agent(&schedule.request), now).map_err(with_alternative)?;
    schedule.warnings.splice(..0, warnings);
    Ok(Planned {
        schedule,
        describe: calendar.describe(),
        zone: calendar.zone().clone(),
        next_us: calendar.slots_after(now.as_micros()).take(NEXT_MAX).collect(),
    })
}

/// The id of an agent in its source need not be a valid name here, and is replaced later.
fn with_valid_agent(request: &ScheduleAdd) -> ScheduleAdd {
    let mut request = request.clone();
    request.action.agent = request.action.agent.as_deref().map(name_for);
    request
}

/// The reason for a schedule that never fires, with a suggestion if there is one.
fn never_fires(reason: NoNextSlot) -> LeftOut {
    match reason {
        NoNextSlot::Never { suggestion: Some(cron) } => {
            let never = NoNextSlot::Never { suggestion: None };
            LeftOut::new(never.to_string(), format!("write `{cron}` if you mean that"))
        }
        NoNextSlot::Never { suggestion: None } => {
            let hint = "see when an expression fires with `midwatch schedule next --cron`";
            LeftOut::new(reason.to_string(), hint)
        }
        NoNextSlot::Past { .. } | NoNextSlot::Ended { .. } => {
            LeftOut::new(reason.to_string(), "nothing to do, unless it did not run there")
        }
    }
}

/// The error of the calendar, with the alternative for syntax that Midwatch does not have.
fn with_alternative(Error { message, hint, .. }: Error) -> LeftOut {
    let hint = hint.unwrap_or_default();
    let hint = match &message {
        random if random.contains('~') => {
            format!("{hint}; for a random delay use `midwatch schedule edit ID --jitter SPAN`")
        }
        every if every.contains("`@every`") => "use `midwatch schedule add --every 10m`".to_owned(),
        _ => hint,
    };
    LeftOut::new(message, hint)
}
