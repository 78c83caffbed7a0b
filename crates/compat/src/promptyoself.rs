//! Schedules in the words of promptyoself: each has a number, and prompts an agent.
//!
//! The number is in the name of the schedule, so that it needs no place of its own.

pub mod agents;
pub mod register;
pub mod view;

use api::{
    Action, Call, Code, Error, Handle, Schedule, ScheduleAdd, SchedulePause, ScheduleShow,
    Schedules, Terms, ask,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{listed, schedules};
use agents::Agents;
use register::{Said, Wanted, refused};
use view::{Item, number};

/// Numbers that are tried when others take them at the same time.
const TRIES_MAX: usize = 100;
/// A prompt is tried as often as ever; one that cannot be delivered does not stop the next.
const ATTEMPTS: u32 = 3;
/// However long nobody was there, what was missed is made up for once.
const WINDOW: &str = "3660d";
/// Bytes of a hash that make a number: with what such numbers begin at, it fits into a double.
const KEY_BYTES: usize = 6;

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct Registered {
    pub id: u64,
    pub next_run: Option<String>,
    pub message: String,
}

#[derive(Debug, Default, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct Listed {
    pub schedules: Vec<Item>,
    pub count: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct Cancelled {
    pub cancelled_id: u64,
    pub message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_cancelled: bool,
}

/// An error, in both of the forms in which clients look for it.
#[derive(Debug, Serialize)]
pub struct Failure<'a> {
    status: &'static str,
    error: &'a str,
    message: &'a str,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Error> for Failure<'a> {
    fn from(Error { code, message, hint }: &'a Error) -> Failure<'a> {
        Failure { status: "error", error: message, message, code: *code, hint: hint.as_deref() }
    }
}

/// Whose prompts are listed or cancelled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Of<'a> {
    /// The agent to whose prompts whoever asks is held.
    pub own: Option<&'a str>,
    /// The agent that was asked for.
    pub agent_id: Option<&'a str>,
}

impl Of<'_> {
    pub fn is(&self, item: &Item) -> bool {
        let asked = self.agent_id.filter(|id| !id.is_empty());
        [self.own, asked].into_iter().flatten().all(|id| item.agent_id == id)
    }

    /// Refuses to schedule for others.
    pub fn check(&self, id: &str) -> Result<(), Error> {
        match self.own.filter(|own| *own != id) {
            Some(own) => {
                let what =
                    format!("Agent {own} may schedule prompts only for itself, not for {id}");
                Err(Error::new(Code::RoleTooLow, what))
            }
            None => Ok(()),
        }
    }
}

/// Adds a schedule under the first number that is free. Whoever else takes that one at the same time has
/// used its key for another request. Whoever does not see all schedules cannot know what is free, and has
/// numbers that follow from the name of the agent.
pub async fn add(
    handle: &dyn Handle,
    said: &Said,
    wanted: &Wanted,
    agent: &str,
) -> Result<Registered, Error> {
    let Schedules { schedules: seen, agent: held_to, .. } = listed(handle).await?;
    let sees_all = held_to.is_none();
    let is_free = |id: &u64| seen.iter().all(|it| view::number_in(&it.name) != Some(*id));
    let first = if sees_all { view::free_number(&seen) } else { 1 };
    let ids = (first..).map(|place| match sees_all {
        true => place,
        false => number_of(&format!("{agent} {place}")),
    });
    for id in ids.filter(is_free).take(TRIES_MAX) {
        match add_as(handle, id, said, wanted, agent).await {
            Err(taken) if taken.code == Code::KeyTaken => {}
            Err(error) => return Err(error),
            Ok(Some(registered)) => return Ok(registered),
            Ok(None) => {}
        }
    }
    Err(Error::new(Code::Busy, "many prompts are scheduled at once").hint("try again"))
}

/// Adds a schedule once, however often it is asked for with the same key: its number follows from the key.
pub async fn add_once(
    handle: &dyn Handle,
    key: &str,
    said: &Said,
    wanted: &Wanted,
    agent: &str,
) -> Result<Registered, Error> {
    let taken = || {
        Error::new(Code::KeyTaken, "the idempotency key was used before, for another prompt")
            .hint("promptyoself_list shows what is scheduled; give another key for another prompt")
    };
    let id = number_of(key);
    let schedules = schedules(handle).await?;
    let earlier = schedules.into_iter().find(|it| view::number_in(&it.name) == Some(id));
    let Some(earlier) = earlier else {
        return add_as(handle, id, said, wanted, agent).await?.ok_or_else(taken);
    };
    match earlier.action == prompt(agent, &said.prompt) {
        true => Ok(Registered::of(id, earlier.next_run_at)),
        false => Err(taken()),
    }
}

fn number_of(key: &str) -> u64 {
    let hash = Sha256::digest(key.as_bytes());
    let bytes = hash.iter().take(KEY_BYTES);
    view::DERIVED_FROM + bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Nothing if there was such a schedule once, and it was removed since.
async fn add_as(
    handle: &dyn Handle,
    id: u64,
    said: &Said,
    wanted: &Wanted,
    agent: &str,
) -> Result<Option<Registered>, Error> {
    let request = ScheduleAdd {
        name: view::name(id, &wanted.value),
        when: wanted.when.clone(),
        action: prompt(agent, &said.prompt),
        terms: terms(wanted.max_fires),
        ..ScheduleAdd::default()
    };
    let key = Some(format!("promptyoself-{id}"));
    let added = Call { key, ..Call::new(request) }.ask::<ScheduleAdd>(handle).await?;
    // The answer may be one that was given before the schedule was removed.
    match ask(handle, ScheduleShow { id: added.schedule.id }).await {
        Err(gone) if gone.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(Some(Registered::of(id, added.next.into_iter().next()))),
    }
}

impl Registered {
    fn of(id: u64, next_run: Option<String>) -> Registered {
        Registered { id, next_run, message: format!("Prompt scheduled with ID {id}") }
    }
}

pub fn prompt(agent: &str, prompt: &str) -> Action {
    Action { agent: Some(agent.to_owned()), prompt: Some(prompt.to_owned()), ..Action::default() }
}

pub fn terms(max_fires: Option<u64>) -> Terms {
    Terms {
        window: Some(WINDOW.to_owned()),
        attempts: Some(ATTEMPTS),
        pause_after: Some(0),
        max_fires,
        ..Terms::default()
    }
}

/// The next one first; those that are cancelled or over only if `all` are asked for.
pub async fn list(handle: &dyn Handle, of: Of<'_>, all: bool) -> Result<Listed, Error> {
    let agents = Agents::registered(handle).await?;
    let schedules = schedules(handle).await?;
    let mut items: Vec<Item> =
        schedules.iter().filter_map(|schedule| view::item(schedule, &agents)).collect();
    items.retain(|item| (all || item.active) && of.is(item));
    items.sort_by(view::by_next_run);
    Ok(Listed { count: items.len(), schedules: items })
}

/// The number that a caller gave.
pub fn number_given(text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| refused("Schedule ID must be a number"))
}

pub fn unknown(id: u64) -> Error {
    Error::new(Code::NotFound, format!("Schedule {id} not found or already cancelled"))
}

/// Ends one by its number; `key` is the caller's.
pub async fn cancel(
    handle: &dyn Handle,
    key: Option<String>,
    of: Of<'_>,
    id: u64,
) -> Result<Cancelled, Error> {
    let agents = Agents::registered(handle).await?;
    let schedules = schedules(handle).await?;
    let is_meant = |schedule: &&Schedule| {
        view::item(schedule, &agents).is_some_and(|item| item.id == id && of.is(&item))
    };
    let found: Vec<&Schedule> = schedules.iter().filter(is_meant).collect();
    let [schedule] = found.as_slice() else {
        return Err(match found.as_slice() {
            [] => unknown(id),
            [first, ..] => Error::new(Code::NotNow, format!("Schedule {id} is more than one"))
                .hint(format!("`midwatch schedule pause {}` ends the first", first.id)),
        });
    };
    let message = format!("Schedule {} cancelled", number(schedule));
    let is_over = schedule.status == "ended";
    let request = SchedulePause { id: schedule.id.clone(), note: Some("cancelled".to_owned()) };
    let paused = Call { key, ..Call::new(request) }.ask::<SchedulePause>(handle).await?;
    let already_cancelled = is_over || !paused.changed;
    Ok(Cancelled { cancelled_id: id, message, already_cancelled })
}
