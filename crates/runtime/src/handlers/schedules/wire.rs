//! Schedules in wire form.

use api::{AddingAgent, Bounds, Error, Paused, ScheduleStatus, StoredAction};
use kernel::progress::{self, Progress, Status};
use kernel::schedule::terms::Terms;
use kernel::schedule::{self, Action, Definition, Schedule};
use kernel::tick::Tick;
use kernel::{NounState, RunId, ScheduleId, Timestamp};

use crate::commit::rows::Rows;
use crate::errors::{self, internal};
use crate::timestamps::rfc3339;

/// Upcoming slots in a response.
const UPCOMING: usize = 5;

pub(super) fn upcoming(id: &ScheduleId, rows: &Rows, now: Timestamp) -> Result<Vec<String>, Error> {
    let (Some(schedule), Some(progress)) = (rows.get::<Schedule>(id), rows.get::<Progress>(id))
    else {
        return Ok(Vec::new());
    };
    let calendar =
        schedule.definition.calendar(progress.next_fire.slot).map_err(errors::refused)?;
    let slots = Tick::new(id, schedule, &calendar, now).upcoming(progress, UPCOMING);
    Ok(slots.into_iter().map(rfc3339).collect())
}

/// The effective window and daily limit of a schedule.
pub(super) fn bounds(
    id: &ScheduleId,
    rows: &Rows,
    now: Timestamp,
) -> Result<Option<Bounds>, Error> {
    let (Some(schedule), Some(progress)) = (rows.get::<Schedule>(id), rows.get::<Progress>(id))
    else {
        return Ok(None);
    };
    let calendar =
        schedule.definition.calendar(progress.next_fire.slot).map_err(errors::refused)?;
    let tick = Tick::new(id, schedule, &calendar, now);
    let window = tick.window(progress).map(|span| span.to_string());
    Ok(Some(Bounds { window, per_day: tick.runs_per_day(progress) }))
}

/// How many slots were skipped between two states of a schedule.
pub(super) fn skipped(id: &ScheduleId, before: &Rows, after: &Rows) -> Result<u64, Error> {
    let (Some(schedule), Some(from), Some(to)) =
        (before.get::<Schedule>(id), before.get::<Progress>(id), after.get::<Progress>(id))
    else {
        return Ok(0);
    };
    let calendar = schedule.definition.calendar(from.next_fire.slot).map_err(errors::refused)?;
    Ok(calendar.count_slots(from.decided_until.as_micros(), to.decided_until.as_micros()))
}

pub(super) fn is_paused(id: &ScheduleId, rows: &Rows) -> bool {
    rows.get::<Progress>(id).is_some_and(|progress| matches!(progress.status, Status::Paused(_)))
}

/// The slots that waited until the schedule was resumed.
pub(super) fn released(id: &ScheduleId, before: &Rows, after: &Rows) -> Vec<String> {
    let progress = after.get::<Progress>(id).filter(|_| is_paused(id, before));
    let waiting = progress.map(|progress| progress.waiting.as_slice());
    waiting.unwrap_or_default().iter().map(|slot| rfc3339(*slot)).collect()
}

pub(super) fn wire(id: &ScheduleId, rows: &Rows) -> Result<api::Schedule, Error> {
    let (Some(schedule), Some(progress)) = (rows.get::<Schedule>(id), rows.get::<Progress>(id))
    else {
        return Err(errors::refused(schedule::Refusal::Unknown(id.clone())));
    };
    let Schedule { definition, .. } = schedule;
    let paused = match &progress.status {
        Status::Paused(pause) => Some(Paused {
            by: pause.by.to_string(),
            at: rfc3339(pause.at),
            note: pause.note.clone(),
        }),
        Status::Active | Status::Removed => None,
    };
    Ok(api::Schedule {
        id: id.to_string(),
        name: definition.name.clone(),
        trigger: serde_json::to_value(&definition.trigger).map_err(internal)?,
        tz: definition.zone.to_string(),
        describe: definition.describe().map_err(errors::refused)?,
        action: wire_action(&definition.action),
        sensitive: definition.action.text().is_sealed(),
        tier: definition.tier.map(|tier| tier.number()),
        terms: wire_terms(&definition.terms),
        status: status(definition, progress),
        paused,
        next_run_at: progress.next_fire.slot.filter(|_| progress.due().is_some()).map(rfc3339),
        last_run_id: progress.last_run.as_ref().map(|last| last.id.to_string()),
        last_run_at: progress.last_run.as_ref().map(|last| rfc3339(last.at)),
        live: progress.live.iter().map(RunId::to_string).collect(),
        fires: progress.fires,
        failures: progress.failures,
        followers: progress.dependents.iter().map(ScheduleId::to_string).collect(),
        backfill: progress.backfill.as_deref().map(wire_backfill),
        made_by: schedule.added_by_agent.as_ref().map(|by| AddingAgent {
            run: by.run.as_ref().map(RunId::to_string),
            agent: by.agent.to_string(),
        }),
        revision: schedule.revision,
        created_at: rfc3339(schedule.created_at),
        changed_at: rfc3339(schedule.changed_at),
    })
}

fn status(definition: &Definition, progress: &Progress) -> ScheduleStatus {
    let may_fire = progress.next_fire.slot.is_some() || !progress.waiting.is_empty();
    // A schedule with an event trigger ends only after its last run.
    let is_used_up = definition.terms.max_fires.is_some_and(|max| max <= progress.fires);
    let waits_for_event = definition.trigger.timed().is_none() && !is_used_up;
    match progress.status {
        Status::Paused(_) => ScheduleStatus::Paused,
        Status::Active if may_fire || waits_for_event => ScheduleStatus::Active,
        Status::Active => ScheduleStatus::Ended,
        Status::Removed => ScheduleStatus::Removed,
    }
}

fn wire_backfill(backfill: &progress::Backfill) -> api::Backfill {
    api::Backfill {
        next: backfill.next.map(rfc3339),
        last: rfc3339(backfill.last),
        live: backfill.live.iter().map(RunId::to_string).collect(),
    }
}

fn wire_action(action: &Action) -> StoredAction {
    let text = action.text().plain().map(str::to_owned);
    match action {
        Action::Prompt { agent, .. } => {
            StoredAction { agent: Some(agent.to_string()), prompt: text, ..StoredAction::default() }
        }
        Action::Tool { tool, .. } => {
            StoredAction { tool: Some(tool.clone()), payload: text, ..StoredAction::default() }
        }
    }
}

fn wire_terms(terms: &Terms) -> api::Terms {
    api::Terms {
        overlap: Some(terms.overlap.to_string()),
        missed: Some(terms.missed.to_string()),
        window: terms.window.map(|span| span.to_string()),
        jitter: terms.jitter.map(|span| span.to_string()),
        attempts: terms.retry.attempts,
        backoff: Some(terms.retry.backoff()),
        pause_after: Some(terms.pause_after),
        resume: Some(terms.resume.name().to_owned()),
        priority: Some(terms.priority),
        keys: (!terms.keys.is_empty())
            .then(|| terms.keys.iter().map(ToString::to_string).collect()),
        per_day: terms.per_day,
        tokens_per_day: terms.tokens_per_day,
        money_per_day: terms.money_per_day.map(|money| money.to_string()),
        max_fires: terms.max_fires,
        start_at: terms.start_at.map(rfc3339),
        end_at: terms.end_at.map(rfc3339),
    }
}
