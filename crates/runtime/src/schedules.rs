//! Requests about schedules, carried out.

use api::{
    Answer, Code, Error, LIST_BYTES_MAX, Paused, ScheduleAdd, ScheduleAdded, ScheduleFire,
    ScheduleFired, ScheduleList, SchedulePause, SchedulePaused, ScheduleRemove, ScheduleRemoved,
    ScheduleResume, ScheduleResumed, ScheduleShow, ScheduleShown, Schedules,
};
use kernel::id::SCHEDULE_DIGITS;
use kernel::progress::{Progress, Status};
use kernel::schedule::terms::{Retry, Terms};
use kernel::schedule::{self, Action, Command, Definition, Ground, Schedule};
use kernel::tick::Tick;
use kernel::{Actor, Body, Noun, RunId, ScheduleId, Timestamp, slot};
use ledger::canonical;
use sha2::{Digest, Sha256};

use crate::agents::page_size;
use crate::errors::{self, internal};
use crate::rows::{RowKey, Rows};
use crate::runs;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Watch;
use crate::when;

/// Slots that are shown ahead.
const UPCOMING: usize = 5;

impl Watch {
    pub(crate) async fn schedule_add(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleAdd,
    ) -> Result<Answer, Error> {
        let (definition, warnings) = definition(asked)?;
        let id = self.id_for(&definition).await?;
        let agent = definition.action.agent().map(|name| (Noun::Agent, name.to_string()));
        let change = Change { rows: rows_of(&id), reads: agent.into_iter().collect(), actor, key };
        let command = Command::Add { definition: Box::new(definition.clone()) };
        let decide = |rows: &Rows, now| {
            let agent = definition.action.agent().and_then(|name| rows.agent(name));
            let ground = Ground { agent, ..ground(rows, &id, now) };
            let decided = schedule::decide(ground, actor, command.clone());
            decided.map_err(|refusal| {
                silence(&definition, &refusal).unwrap_or_else(|| errors::schedule(refusal))
            })
        };
        self.transact(change, decide, |before, after| {
            Ok(Answer::ScheduleAdd(ScheduleAdded {
                schedule: wire(&id, after)?,
                created: before.schedule(&id).is_none(),
                next: upcoming(&id, after, self.now())?,
                warnings: warnings.clone(),
            }))
        })
        .await
    }

    pub(crate) async fn schedule_list(&self, asked: ScheduleList) -> Result<Schedules, Error> {
        let limit = page_size(asked.limit)?;
        let after = asked.cursor.unwrap_or_default();
        // One more than asked for tells whether there is a next page.
        let items = self.store().list(Noun::Schedule.name(), &after, limit + 1).await;
        let items = items.map_err(errors::store)?;
        let found = items.len();
        let (mut schedules, mut bytes) = (Vec::with_capacity(found), 0);
        for item in items.into_iter().take(limit) {
            bytes += item.body.as_ref().map_or(0, |body| body.len());
            let id: ScheduleId = item.id.parse().map_err(internal)?;
            let rows = self.load(&rows_of(&id), false).await?;
            if rows.schedule(&id).is_some() {
                schedules.push(wire(&id, &rows)?);
            }
            if LIST_BYTES_MAX <= bytes {
                break;
            }
        }
        let has_more = schedules.len() < found;
        let cursor = schedules.last().filter(|_| has_more).map(|schedule| schedule.id.clone());
        Ok(Schedules { schedules, cursor })
    }

    pub(crate) async fn schedule_show(&self, asked: ScheduleShow) -> Result<ScheduleShown, Error> {
        let id = self.schedule_id(&asked.id).await?;
        let rows = self.load(&rows_of(&id), false).await?;
        let next = upcoming(&id, &rows, self.now())?;
        Ok(ScheduleShown { schedule: wire(&id, &rows)?, next })
    }

    pub(crate) async fn schedule_pause(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: SchedulePause,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let command = Command::Pause { note: asked.note };
        self.change_schedule(actor, key, &id, command, |before, after| {
            let changed = before.progress(&id) != after.progress(&id);
            Ok(Answer::SchedulePause(SchedulePaused { schedule: wire(&id, after)?, changed }))
        })
        .await
    }

    pub(crate) async fn schedule_resume(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleResume,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        self.change_schedule(actor, key, &id, Command::Resume, |before, after| {
            Ok(Answer::ScheduleResume(ScheduleResumed {
                schedule: wire(&id, after)?,
                changed: before.progress(&id) != after.progress(&id),
                skipped: skipped(&id, before, after)?,
                next: upcoming(&id, after, self.now())?,
            }))
        })
        .await
    }

    pub(crate) async fn schedule_remove(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleRemove,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        self.change_schedule(actor, key, &id, Command::Remove, |before, _| {
            Ok(Answer::ScheduleRemove(ScheduleRemoved { schedule: wire(&id, before)? }))
        })
        .await
    }

    pub(crate) async fn schedule_fire(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleFire,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let run = self.new_run(self.now());
        // A call that is repeated long after its answer was forgotten is still the same run.
        let once = key.as_ref().map_or_else(|| run.to_string(), |key| key.name().to_owned());
        let slot = slot::manual_key(&id, &once);
        let reads = vec![(Noun::Slot, slot.clone())];
        let change = Change { rows: rows_of(&id), reads, actor, key };
        let command = Command::Fire { run: run.clone(), key: once };
        let decide = |rows: &Rows, now| -> Result<Vec<Body>, Error> {
            let ground = Ground { fired: rows.slot(&slot), ..ground(rows, &id, now) };
            schedule::decide(ground, actor, command.clone()).map_err(errors::schedule)
        };
        self.transact(change, decide, |_, after| {
            Ok(Answer::ScheduleFire(ScheduleFired { run: runs::wire_in(after, &run)? }))
        })
        .await
    }

    async fn change_schedule(
        &self,
        actor: &Actor,
        key: Option<Key>,
        id: &ScheduleId,
        command: Command,
        answer: impl Fn(&Rows, &Rows) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let change = Change { rows: rows_of(id), reads: vec![], actor, key };
        let decide = |rows: &Rows, now| -> Result<Vec<Body>, Error> {
            schedule::decide(ground(rows, id, now), actor, command.clone())
                .map_err(errors::schedule)
        };
        self.transact(change, decide, answer).await
    }

    /// The id of the schedule that has this definition, or of a new one.
    async fn id_for(&self, definition: &Definition) -> Result<ScheduleId, Error> {
        let hash = Sha256::digest(canonical(definition).map_err(internal)?).into();
        let mut digits = SCHEDULE_DIGITS;
        loop {
            let id = ScheduleId::of(&hash, digits);
            let rows = self.load(&[(Noun::Schedule, id.to_string())], false).await?;
            match rows.schedule(&id) {
                // Another content has these digits.
                Some(schedule) if schedule.definition != *definition && digits < 64 => digits += 4,
                _ => return Ok(id),
            }
        }
    }

    /// The id of a schedule that is there.
    pub(crate) async fn schedule_id(&self, text: &str) -> Result<ScheduleId, Error> {
        let id = parsed_id(text)?;
        let rows = self.load(&[(Noun::Schedule, id.to_string())], false).await?;
        match rows.schedule(&id) {
            Some(_) => Ok(id),
            None => Err(errors::schedule(schedule::Refusal::Unknown(id))),
        }
    }
}

fn parsed_id(text: &str) -> Result<ScheduleId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch schedule list` shows the schedules")
    })
}

fn rows_of(id: &ScheduleId) -> Vec<RowKey> {
    vec![(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string())]
}

fn ground<'a>(rows: &'a Rows, id: &'a ScheduleId, now: Timestamp) -> Ground<'a> {
    Ground {
        id,
        schedule: rows.schedule(id),
        progress: rows.progress(id),
        agent: None,
        fired: None,
        now,
    }
}

fn definition(asked: ScheduleAdd) -> Result<(Definition, Vec<String>), Error> {
    let meant = when::meant(&asked.when)?;
    let zone = meant.calendar.zone().clone();
    let instant = |text: Option<String>| {
        let at = text.map(|text| when::instant(&text, Some(&zone))).transpose()?;
        Ok::<_, Error>(at.map(Timestamp::from_micros))
    };
    let default = Terms::default();
    let api::Terms { overlap, missed, window, jitter, attempts, resume, .. } = asked.terms;
    let terms = Terms {
        overlap: parsed(overlap)?.unwrap_or_default(),
        missed: parsed(missed)?.unwrap_or_default(),
        window: window.map(|text| when::span(&text)).transpose()?,
        jitter: jitter.map(|text| when::span(&text)).transpose()?,
        retry: Retry { attempts: attempts.unwrap_or(default.retry.attempts), ..default.retry },
        pause_after: asked.terms.pause_after.unwrap_or(default.pause_after),
        resume: parsed(resume)?.unwrap_or_default(),
        priority: asked.terms.priority.unwrap_or(default.priority),
        per_day: asked.terms.per_day,
        max_fires: asked.terms.max_fires,
        start_at: instant(asked.terms.start_at)?,
        end_at: instant(asked.terms.end_at)?,
    };
    let definition = Definition {
        name: asked.name,
        trigger: meant.calendar.trigger().clone(),
        zone,
        action: action(asked.action)?,
        tier: asked.tier.map(TryFrom::try_from).transpose().map_err(errors::invalid)?,
        terms,
    };
    Ok((definition, meant.warnings))
}

fn action(asked: api::Action) -> Result<Action, Error> {
    match asked {
        api::Action { agent: Some(agent), prompt: Some(prompt), tool: None, payload: None } => {
            let agent = agent.parse().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch agent list` shows the agents")
            })?;
            Ok(Action::Prompt { agent, prompt })
        }
        api::Action { agent: None, prompt: None, tool: Some(tool), payload } => {
            let payload = payload.unwrap_or_else(|| "{}".to_owned());
            let json: serde_json::Value = serde_json::from_str(&payload).map_err(|error| {
                Error::new(Code::InvalidInput, format!("the payload is not JSON: {error}"))
                    .hint("give an object, such as `{\"path\": \"notes.md\"}`")
            })?;
            Ok(Action::Tool { tool, payload: json.to_string() })
        }
        _ => Err(Error::new(
            Code::InvalidInput,
            "a schedule either prompts an agent or calls a tool",
        )
        .hint("give an agent and a prompt, or a tool and its payload")),
    }
}

fn parsed<T>(text: Option<String>) -> Result<Option<T>, Error>
where
    T: std::str::FromStr<Err = schedule::terms::InvalidTerm>,
{
    text.map(|text| {
        text.parse().map_err(|invalid: schedule::terms::InvalidTerm| {
            Error::new(Code::InvalidInput, &invalid).hint(invalid.hint)
        })
    })
    .transpose()
}

/// Why a schedule never fires, as far as its trigger is the reason.
fn silence(definition: &Definition, refusal: &schedule::Refusal) -> Option<Error> {
    let schedule::Refusal::NeverFires(after_us) = refusal else { return None };
    let silence = definition.calendar().ok()?.silence_after(*after_us)?;
    let error = Error::new(Code::InvalidInput, silence);
    Some(error.hint("`midwatch schedule next` with other flags shows when it would fire"))
}

fn upcoming(id: &ScheduleId, rows: &Rows, now: Timestamp) -> Result<Vec<String>, Error> {
    let (Some(schedule), Some(progress)) = (rows.schedule(id), rows.progress(id)) else {
        return Ok(Vec::new());
    };
    if progress.status != Status::Active {
        return Ok(Vec::new());
    }
    let calendar = schedule.definition.calendar().map_err(errors::schedule)?;
    let slots = Tick::new(id, schedule, &calendar, now).upcoming(progress, UPCOMING);
    Ok(slots.into_iter().map(rfc3339).collect())
}

/// Slots that were left out between two looks at a schedule.
fn skipped(id: &ScheduleId, before: &Rows, after: &Rows) -> Result<u64, Error> {
    let (Some(schedule), Some(from), Some(to)) =
        (before.schedule(id), before.progress(id), after.progress(id))
    else {
        return Ok(0);
    };
    let calendar = schedule.definition.calendar().map_err(errors::schedule)?;
    Ok(calendar.count(from.decided_until.as_micros(), to.decided_until.as_micros()))
}

fn wire(id: &ScheduleId, rows: &Rows) -> Result<api::Schedule, Error> {
    let (Some(schedule), Some(progress)) = (rows.schedule(id), rows.progress(id)) else {
        return Err(errors::schedule(schedule::Refusal::Unknown(id.clone())));
    };
    let Schedule { definition, .. } = schedule;
    let calendar = definition.calendar().map_err(errors::schedule)?;
    let paused = match &progress.status {
        Status::Paused(pause) => {
            Some(Paused { by: pause.by.clone(), at: rfc3339(pause.at), note: pause.note.clone() })
        }
        Status::Active | Status::Removed => None,
    };
    Ok(api::Schedule {
        id: id.to_string(),
        name: definition.name.clone(),
        trigger: serde_json::to_value(&definition.trigger).map_err(internal)?,
        tz: definition.zone.to_string(),
        describe: calendar.describe(),
        action: wire_action(&definition.action),
        tier: definition.tier.map(|tier| tier.number()),
        terms: wire_terms(&definition.terms),
        status: status(progress).to_owned(),
        paused,
        next_run_at: progress.ahead.next.filter(|_| progress.due().is_some()).map(rfc3339),
        last_run_id: progress.last_run.as_ref().map(|last| last.id.to_string()),
        last_run_at: progress.last_run.as_ref().map(|last| rfc3339(last.at)),
        live: progress.live.iter().map(RunId::to_string).collect(),
        fires: progress.fires,
        failures: progress.failures,
        revision: schedule.revision,
        created_at: rfc3339(schedule.created_at),
        changed_at: rfc3339(schedule.changed_at),
    })
}

fn status(progress: &Progress) -> &'static str {
    match progress.status {
        Status::Paused(_) => "paused",
        Status::Active if progress.ahead.next.is_some() || !progress.waiting.is_empty() => "active",
        Status::Active | Status::Removed => "ended",
    }
}

fn wire_action(action: &Action) -> api::Action {
    match action.clone() {
        Action::Prompt { agent, prompt } => api::Action {
            agent: Some(agent.to_string()),
            prompt: Some(prompt),
            ..api::Action::default()
        },
        Action::Tool { tool, payload } => {
            api::Action { tool: Some(tool), payload: Some(payload), ..api::Action::default() }
        }
    }
}

fn wire_terms(terms: &Terms) -> api::Terms {
    api::Terms {
        overlap: Some(terms.overlap.to_string()),
        missed: Some(terms.missed.to_string()),
        window: terms.window.map(|span| span.to_string()),
        jitter: terms.jitter.map(|span| span.to_string()),
        attempts: Some(terms.retry.attempts),
        pause_after: Some(terms.pause_after),
        resume: Some(terms.resume.name().to_owned()),
        priority: Some(terms.priority),
        per_day: terms.per_day,
        max_fires: terms.max_fires,
        start_at: terms.start_at.map(rfc3339),
        end_at: terms.end_at.map(rfc3339),
    }
}
