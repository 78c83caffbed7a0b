//! What makes schedules fire that do not go by the time: the end of a run of another schedule, which is
//! decided in the commit that ends it, and events that somebody tells of.

use api::{Answer, Code, Error, EventTell, EventTold};
use kernel::run::{Event as RunEvent, Origin, Outcome, Run};
use kernel::schedule::trigger::EventName;
use kernel::slot::{self, Fate, Source};
use kernel::tick::{Happened, Tick, happened};
use kernel::{Actor, Body, Noun, Role, RunId, ScheduleId, Timestamp};

use crate::errors::{self, internal};
use crate::rows::{RowKey, Rows};
use crate::runs;
use crate::timer::Ready;
use crate::transact::{Change, Key};
use crate::watch::Engine;

/// Schedules that are looked up at once.
const PAGE: usize = 1_000;
const EVENT_ID_BYTES_MAX: usize = 256;

/// A run that has come to its end.
struct End {
    run: RunId,
    schedule: ScheduleId,
    outcome: Outcome,
    depth: u32,
}

impl Engine {
    /// What the ends of runs among these events lead to. The rows of the schedules that follow are
    /// loaded, so that what is decided about them is part of the same commit.
    pub(crate) async fn followers_of(
        &self,
        rows: &mut Rows,
        bodies: &[Body],
        now: Timestamp,
    ) -> Result<Vec<Body>, Error> {
        let mut led_to = Vec::new();
        let ends: Vec<End> = bodies.iter().filter_map(|body| end(rows, body)).collect();
        for end in ends {
            let followers = rows.progress(&end.schedule).map(|it| it.followers.clone());
            for follower in followers.unwrap_or_default() {
                let source = Source::Run(end.run.clone());
                let keys = self.rows_of(&follower, &source).await?;
                rows.extend(self.load(&keys).await?);
                let depth = end.depth.saturating_add(1);
                let what = Happened { source: &source, origin: Origin::After, depth };
                let is_for_it = rows.schedule(&follower).is_some_and(|schedule| {
                    let follows = schedule.definition.trigger.follows();
                    follows.is_some_and(|(of, on)| *of == end.schedule && on.matches(end.outcome))
                });
                if is_for_it {
                    led_to.extend(self.happen(rows, &follower, what, now)?);
                }
            }
        }
        Ok(led_to)
    }

    /// Tells every schedule that waits for it of an event. Told of again, it is the same event.
    pub(crate) async fn event_tell(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: EventTell,
    ) -> Result<Answer, Error> {
        if actor.role < Role::Operator {
            let needed = Role::Operator;
            let refusal = kernel::schedule::Refusal::RoleTooLow { actor: actor.clone(), needed };
            return Err(errors::schedule(refusal));
        }
        let name: EventName =
            asked.name.parse().map_err(|invalid| Error::new(Code::InvalidInput, invalid))?;
        let id = self.event_id(asked.id, key.as_ref())?;
        let source = Source::Event(id.clone());
        let (mut runs, mut told) = (Vec::new(), 0);
        for listener in self.listeners(&name).await? {
            told += 1;
            runs.extend(self.tell(actor, &listener, &name, &source).await?);
        }
        Ok(Answer::EventTell(EventTold { name: name.to_string(), id, told, runs }))
    }

    /// Told of without an id, by a call that may be repeated, it has that call's key.
    fn event_id(&self, id: Option<String>, key: Option<&Key>) -> Result<String, Error> {
        let own = || {
            key.map_or_else(|| self.new_run(self.now()).to_string(), |key| key.name().to_owned())
        };
        let id = id.unwrap_or_else(own);
        let is_fine =
            (1..=EVENT_ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control);
        match is_fine {
            true => Ok(id),
            false => Err(Error::new(
                Code::InvalidInput,
                "the id of an event has 1 to 256 bytes of printable text",
            )),
        }
    }

    async fn listeners(&self, name: &EventName) -> Result<Vec<ScheduleId>, Error> {
        let under = name.listed_under();
        let mut listeners: Vec<ScheduleId> = Vec::new();
        loop {
            let before = listeners.last().map_or("", ScheduleId::as_str);
            let noun = Noun::Schedule.name();
            let found = self.store().newest(noun, Some(&under), before, PAGE).await;
            let found = found.map_err(errors::store)?;
            for item in &found {
                listeners.push(item.id.parse().map_err(internal)?);
            }
            if found.len() < PAGE {
                return Ok(listeners);
            }
        }
    }

    async fn tell(
        &self,
        actor: &Actor,
        listener: &ScheduleId,
        name: &EventName,
        source: &Source,
    ) -> Result<Option<api::Run>, Error> {
        let reads = self.rows_of(listener, source).await?;
        let change = Change { reads, ..Change::by(actor, None) };
        let what = Happened { source, origin: Origin::Event, depth: 0 };
        let decide = |rows: &Rows, now| {
            // An edit may have come between.
            let waits = rows.schedule(listener).and_then(|it| it.definition.trigger.event());
            match waits == Some(name) {
                true => self.happen(rows, listener, what, now),
                false => Ok(Vec::new()),
            }
        };
        let done = self.act_for(change, decide).await?;
        let run = done.bodies.iter().find_map(|body| match body {
            Body::Run(id, RunEvent::Queued(_)) => Some(id),
            _ => None,
        });
        match run {
            Some(id) => runs::wire_in(&done.after, id).map(Some),
            None => self.led_to(listener, source).await,
        }
    }

    /// The run of what somebody has told of before, if it got one by now.
    async fn led_to(
        &self,
        listener: &ScheduleId,
        source: &Source,
    ) -> Result<Option<api::Run>, Error> {
        let key = slot::source_key(listener, source);
        let rows = self.load(&[(Noun::Slot, key.clone())]).await?;
        let Some(told) = rows.slot(&key) else { return Ok(None) };
        // One that has waited says so for ever where it was told of, and its run where it is a slot.
        let key = slot::key(listener, told.last);
        let rows = self.load(&[(Noun::Slot, key.clone())]).await?;
        let Some(Fate::Run { run, .. }) = rows.slot(&key).map(|slot| &slot.fate) else {
            return Ok(None);
        };
        let rows = self.load(&[(Noun::Run, run.to_string())]).await?;
        runs::wire_in(&rows, run).map(Some)
    }

    /// What must be known of a schedule for which something has happened.
    async fn rows_of(&self, id: &ScheduleId, source: &Source) -> Result<Vec<RowKey>, Error> {
        let mut keys = vec![(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string())];
        let rows = self.load(&keys).await?;
        let ends_others =
            rows.schedule(id).is_some_and(|it| it.definition.terms.overlap.ends_others());
        let live = rows.progress(id).filter(|_| ends_others).map(|it| it.live.as_slice());
        let live = live.unwrap_or_default().iter();
        keys.extend(live.map(|run| (Noun::Run, run.to_string())));
        keys.push((Noun::Slot, slot::source_key(id, source)));
        Ok(keys)
    }

    fn happen(
        &self,
        rows: &Rows,
        id: &ScheduleId,
        what: Happened<'_>,
        now: Timestamp,
    ) -> Result<Vec<Body>, Error> {
        let is_known = rows.slot(&slot::source_key(id, what.source)).is_some();
        let (Some(schedule), Some(progress)) = (rows.schedule(id), rows.progress(id)) else {
            return Ok(Vec::new());
        };
        if is_known {
            return Ok(Vec::new());
        }
        // An edit came between the two rows.
        if schedule.revision != progress.revision {
            return Err(Error::new(Code::Busy, "the schedule was changed at the same time")
                .hint("tell of it again, with the same id"));
        }
        let ready = Ready::new(schedule.clone())?;
        let calendar = ready.calendar(progress)?;
        let live = progress.live.iter();
        let live: Vec<(RunId, Run)> =
            live.filter_map(|id| Some((id.clone(), rows.run(id)?.clone()))).collect();
        let tick = Tick { live: &live, ..Tick::new(id, schedule, &calendar, now) };
        Ok(happened(tick, progress, what, &mut || self.new_run(now)))
    }
}

fn end(rows: &Rows, body: &Body) -> Option<End> {
    let Body::Run(id, event) = body else { return None };
    let outcome = match event {
        RunEvent::Ended(ended) => ended.outcome,
        RunEvent::Settled(settled) => settled.outcome,
        _ => return None,
    };
    let run = rows.run(id)?;
    Some(End { run: id.clone(), schedule: run.schedule.clone(), outcome, depth: run.depth })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use api::{Action, AgentAdd, Happening, ScheduleAdd, ScheduleEdit, When, ask};
    use kernel::ruling::Posture;
    use store::Memory;

    use super::*;
    use crate::{Settings, Standing, SystemClock};

    async fn watch(data: &std::path::Path) -> Engine {
        let settings = Settings {
            data: data.to_owned(),
            version: "test".into(),
            posture: Posture::Staging,
            checkpoint_copy: None,
            heartbeat: Duration::ZERO,
            drain: Duration::ZERO,
            secret_variables: Vec::new(),
        };
        let (store, clock) = (Arc::new(Memory::new()), Arc::new(SystemClock));
        Engine::open(store, clock, settings, Standing::default()).await.unwrap()
    }

    /// Between the look for those who wait for an event and the decision about each.
    #[tokio::test]
    async fn an_event_does_not_fire_what_was_edited_meanwhile() {
        let data = tempfile::tempdir().unwrap();
        let watch = watch(data.path()).await;
        let actor = Actor { name: "somebody".into(), role: Role::Operator };
        let handle = watch.handle(actor.clone());
        let agent =
            AgentAdd { name: "ada".into(), backend: "builtin".into(), ..AgentAdd::default() };
        ask(&handle, agent).await.unwrap();
        let name: EventName = "mail/new".parse().unwrap();
        let (agent, prompt) = (Some("ada".to_owned()), Some("look".to_owned()));
        let listener = ScheduleAdd {
            name: "mail".into(),
            happening: Happening { event: Some(name.to_string()), ..Happening::default() },
            action: Action { agent, prompt, ..Action::default() },
            ..ScheduleAdd::default()
        };
        let id = ask(&handle, listener).await.unwrap().schedule.id;
        let found = watch.listeners(&name).await.unwrap();
        assert_eq!(found.iter().map(ScheduleId::as_str).collect::<Vec<_>>(), [&id]);
        let tell = async |id: &str| {
            let source = Source::Event(id.to_owned());
            watch.tell(&actor, &found[0], &name, &source).await.unwrap()
        };
        assert!(tell("one").await.is_some());
        let every = When { every: Some("1000h".into()), ..When::default() };
        let edit = ScheduleEdit { id, when: Some(every), ..ScheduleEdit::default() };
        ask(&handle, edit).await.unwrap();
        assert_eq!(tell("two").await, None);
    }
}
