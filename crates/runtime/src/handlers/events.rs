//! Publishes an event, which fires the schedules that wait for it.

use api::{Code, Error, EventPublish, EventPublished, Serve};
use kernel::run::{Event as RunEvent, Origin, Run};
use kernel::schedule::Schedule;
use kernel::schedule::trigger::EventName;
use kernel::slot::{self, Slot, SlotOutcome, Source};
use kernel::tick::EventOccurrence;
use kernel::{Actor, EventBody, Noun, Role, RunId, ScheduleId};
use store::Newest;

use crate::commit::caller::Caller;
use crate::commit::idempotency::IdempotencyKey;
use crate::commit::rows::{Rows, row_key};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::handlers::runs;

/// Schedules read at a time.
const PAGE: usize = 1_000;
const EVENT_ID_BYTES_MAX: usize = 256;

/// An event that is published again with the same id fires no schedule twice.
impl Serve<EventPublish> for Engine {
    async fn serve(&self, caller: &Caller, request: EventPublish) -> Result<EventPublished, Error> {
        if caller.actor.role < Role::Operator {
            let needed = Role::Operator;
            let refusal =
                kernel::schedule::Refusal::RoleTooLow { actor: caller.actor.clone(), needed };
            return Err(errors::refused(refusal));
        }
        let name: EventName =
            request.name.parse().map_err(|invalid| Error::new(Code::InvalidInput, invalid))?;
        let id = self.event_id(request.id, caller.key.as_ref())?;
        let source = Source::Event(id.clone());
        let (mut runs, mut listeners) = (Vec::new(), 0);
        for listener in self.listeners(&name).await? {
            listeners += 1;
            runs.extend(self.fire_on_event(&caller.actor, &listener, &name, &source).await?);
        }
        Ok(EventPublished { name: name.to_string(), id, listeners, runs })
    }
}

impl Engine {
    /// The given id, or the idempotency key of a request that may be repeated, or a new id.
    fn event_id(&self, id: Option<String>, key: Option<&IdempotencyKey>) -> Result<String, Error> {
        let new_id = || RunId::of(self.time.time_ordered(self.time.now())).to_string();
        let id = id.unwrap_or_else(|| key.map_or_else(new_id, |key| key.name.clone()));
        let is_valid =
            (1..=EVENT_ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control);
        match is_valid {
            true => Ok(id),
            false => Err(Error::new(
                Code::InvalidInput,
                "the id of an event has 1 to 256 bytes of printable text",
            )),
        }
    }

    /// The schedules that wait for an event.
    async fn listeners(&self, name: &EventName) -> Result<Vec<ScheduleId>, Error> {
        let index_key = name.index_key();
        let mut listeners: Vec<ScheduleId> = Vec::new();
        loop {
            let before = listeners.last().map_or("", ScheduleId::as_str);
            let noun = Noun::Schedule.name();
            let found = self
                .store
                .list_newest(Newest { noun, index_key: Some(&index_key), before, limit: PAGE })
                .await;
            let found = found.map_err(errors::store)?;
            for item in &found {
                listeners.push(item.id.parse().map_err(internal)?);
            }
            if found.len() < PAGE {
                return Ok(listeners);
            }
        }
    }

    async fn fire_on_event(
        &self,
        actor: &Actor,
        listener: &ScheduleId,
        name: &EventName,
        source: &Source,
    ) -> Result<Option<api::Run>, Error> {
        let reads = self.dependents.rows_of(&self.transactions, listener, source).await?;
        let transaction = Transaction { reads, ..Transaction::by(actor) };
        let occurrence = EventOccurrence { source, origin: Origin::Event, depth: 0 };
        let decide = |rows: &Rows, now| {
            // The schedule may have been edited since it was found.
            let waits_for =
                rows.get::<Schedule>(listener).and_then(|it| it.definition.trigger.event_name());
            match waits_for == Some(name) {
                true => self.dependents.fire(rows, listener, occurrence, now),
                false => Ok(Vec::new()),
            }
        };
        let committed = self.transactions.commit(transaction, decide).await?;
        let run = committed.events.iter().find_map(|event| match event {
            EventBody::Run(id, RunEvent::Queued(_)) => Some(id),
            _ => None,
        });
        match run {
            Some(id) => runs::wire_in(&committed.after, id).map(Some),
            None => self.run_of_event(listener, source).await,
        }
    }

    /// The run of an event that was published before, if it has one by now.
    async fn run_of_event(
        &self,
        listener: &ScheduleId,
        source: &Source,
    ) -> Result<Option<api::Run>, Error> {
        let key = slot::source_key(listener, source);
        let rows = self.transactions.load(&[(Noun::Slot, key.clone())]).await?;
        let Some(occurrence) = rows.get::<Slot>(&key) else { return Ok(None) };
        // The row of the event does not change when its slot gets a run later; the row of the slot does.
        let key = slot::key(listener, occurrence.last);
        let rows = self.transactions.load(&[(Noun::Slot, key.clone())]).await?;
        let Some(SlotOutcome::Run { run, .. }) = rows.get::<Slot>(&key).map(|slot| &slot.outcome)
        else {
            return Ok(None);
        };
        let rows = self.transactions.load(&[row_key::<Run>(run)]).await?;
        runs::wire_in(&rows, run).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use api::{Action, AgentAdd, EventTrigger, ScheduleAdd, ScheduleEdit, When, send};
    use kernel::posture::Posture;
    use store::Memory;

    use super::*;
    use crate::{Components, ReloadableConfig, Settings, SystemClock};

    async fn engine(data: &std::path::Path) -> Engine {
        let settings = Settings {
            data: data.to_owned(),
            version: "test".into(),
            posture: Posture::Staging,
            checkpoint_copy: None,
            heartbeat: Duration::ZERO,
            drain: Duration::ZERO,
            secret_variables: Vec::new(),
        };
        let components = Components::new(Arc::new(Memory::new()), Arc::new(SystemClock));
        Engine::open(components, settings, ReloadableConfig::default()).await.unwrap()
    }

    #[tokio::test]
    async fn an_event_does_not_fire_a_schedule_that_was_edited_after_it_was_found() {
        let data = tempfile::tempdir().unwrap();
        let engine = engine(data.path()).await;
        let actor = Actor::token_holder("olga".parse().unwrap(), Role::Operator);
        let handle = engine.handle(actor.clone());
        let agent =
            AgentAdd { name: "ada".into(), backend: "builtin".into(), ..AgentAdd::default() };
        send(&handle, agent).await.unwrap();
        let name: EventName = "mail/new".parse().unwrap();
        let (agent, prompt) = (Some("ada".to_owned()), Some("look".to_owned()));
        let listener = ScheduleAdd {
            name: "mail".into(),
            event_trigger: EventTrigger {
                event: Some(name.to_string()),
                ..EventTrigger::default()
            },
            action: Action { agent, prompt, ..Action::default() },
            ..ScheduleAdd::default()
        };
        let id = send(&handle, listener).await.unwrap().schedule.id;
        let found = engine.listeners(&name).await.unwrap();
        assert_eq!(found.iter().map(ScheduleId::as_str).collect::<Vec<_>>(), [&id]);
        let publish = async |id: &str| {
            let source = Source::Event(id.to_owned());
            engine.fire_on_event(&actor, &found[0], &name, &source).await.unwrap()
        };
        assert!(publish("one").await.is_some());
        let every = When { every: Some("1000h".into()), ..When::default() };
        let edit = ScheduleEdit { id, when: Some(every), ..ScheduleEdit::default() };
        send(&handle, edit).await.unwrap();
        assert_eq!(publish("two").await, None);
    }
}
