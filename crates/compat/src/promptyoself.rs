//! promptyoself: schedules that prompt an agent, each known by a number.
//!
//! The number is part of the schedule's name.

pub mod agents;
pub mod register;
pub mod view;

use api::{
    Action, Call, Code, Error, Handle, Schedule, ScheduleAdd, SchedulePause, ScheduleShow,
    ScheduleStatus, Schedules, Terms, send,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{list_schedules, list_schedules_with_scope};
use agents::Agents;
use register::{CheckedArgs, NewSchedule, invalid_input};
use view::PromptItem;

/// How many numbers `register` tries while concurrent callers take them.
const NUMBERS_TRIED_MAX: usize = 100;
/// Attempts to deliver a prompt, as in promptyoself. A failed prompt does not pause its schedule.
const ATTEMPTS: u32 = 3;
/// `execute` waits for the attempts of a run, so they follow each other quickly.
const BACKOFF: &str = "1s:2:5m";
/// Catch-up window: after any downtime a missed prompt is delivered once.
const WINDOW: &str = "3660d";
/// Bytes of a hash in a derived number. Derived numbers still fit into a double.
const NUMBER_HASH_BYTES: usize = 6;

/// The message of a successful `test`.
pub const CONNECTED: &str = "Connection to Letta server successful";
/// Why `upload` is refused to agents and their clients.
pub const UPLOAD_REFUSED: &str = "Only an operator may upload a tool to the Letta server";

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct RegisterResult {
    pub id: u64,
    pub next_run: Option<String>,
    pub message: String,
}

#[derive(Debug, Default, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct ListResult {
    pub schedules: Vec<PromptItem>,
    pub count: usize,
}

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub struct CancelResult {
    pub cancelled_id: u64,
    pub message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_cancelled: bool,
}

/// An error. Some clients read `error`, others `message`.
#[derive(Debug, Serialize)]
pub struct ErrorResult<'a> {
    status: &'static str,
    error: &'a str,
    message: &'a str,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Error> for ErrorResult<'a> {
    fn from(Error { code, message, hint }: &'a Error) -> ErrorResult<'a> {
        ErrorResult { status: "error", error: message, message, code: *code, hint: hint.as_deref() }
    }
}

/// The agent that a call names. Some clients write `null` or `None` for none.
pub fn named_agent(text: Option<&str>) -> Option<&str> {
    let text = text.map(str::trim)?;
    let is_none = ["", "null", "none"].iter().any(|none| text.eq_ignore_ascii_case(none));
    (!is_none).then_some(text)
}

/// Selects the prompts that a call lists or cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptFilter<'a> {
    /// The agent to which the caller is limited.
    pub only_agent: Option<&'a str>,
    /// The agent that the call names.
    pub agent_id: Option<&'a str>,
}

impl PromptFilter<'_> {
    pub fn matches(&self, item: &PromptItem) -> bool {
        [self.only_agent, named_agent(self.agent_id)]
            .into_iter()
            .flatten()
            .all(|id| item.agent_id == id)
    }

    /// Refuses an agent other than the one to which the caller is limited.
    pub fn check_may_schedule_for(&self, id: &str) -> Result<(), Error> {
        match self.only_agent.filter(|own| *own != id) {
            Some(own) => {
                let what =
                    format!("Agent {own} may schedule prompts only for itself, not for {id}");
                Err(Error::new(Code::RoleTooLow, what))
            }
            None => Ok(()),
        }
    }
}

/// Adds a schedule under the next free number. The number is also the idempotency key, so that of two concurrent
/// callers one is refused and tries the next number. A caller that does not see all schedules cannot know which
/// numbers are free; its numbers are derived from the agent's name.
pub async fn register_prompt(
    handle: &dyn Handle,
    args: &CheckedArgs,
    new: &NewSchedule,
    agent: &str,
) -> Result<RegisterResult, Error> {
    let Schedules { schedules: seen, agent: limited_to, .. } =
        list_schedules_with_scope(handle).await?;
    let sees_all = limited_to.is_none();
    let is_free = |id: &u64| seen.iter().all(|it| view::number_in_name(&it.name) != Some(*id));
    let first = match sees_all {
        true => view::next_free_number(seen.iter().map(|it| it.name.as_str())),
        false => 1,
    };
    let ids = (first..).map(|count| match sees_all {
        true => count,
        false => number_from_key(&format!("{agent} {count}")),
    });
    for id in ids.filter(is_free).take(NUMBERS_TRIED_MAX) {
        match register_as(handle, id, args, new, agent).await {
            Err(taken) if taken.code == Code::KeyTaken => {}
            Err(error) => return Err(error),
            Ok(Some(registered)) => return Ok(registered),
            Ok(None) => {}
        }
    }
    Err(Error::new(Code::Busy, "too many prompts are being scheduled at once").hint("try again"))
}

/// Adds a schedule once per key: its number is derived from the key.
pub async fn register_once(
    handle: &dyn Handle,
    key: &str,
    args: &CheckedArgs,
    new: &NewSchedule,
    agent: &str,
) -> Result<RegisterResult, Error> {
    let taken = || {
        Error::new(Code::KeyTaken, "the idempotency key was already used for another prompt")
            .hint("promptyoself_list shows the scheduled prompts; use a new key for a new prompt")
    };
    let id = number_from_key(key);
    let schedules = list_schedules(handle).await?;
    let earlier = schedules.into_iter().find(|it| view::number_in_name(&it.name) == Some(id));
    let Some(earlier) = earlier else {
        return register_as(handle, id, args, new, agent).await?.ok_or_else(taken);
    };
    match earlier.action == prompt_action(agent, &args.prompt).into() {
        true => Ok(RegisterResult::of(id, earlier.next_run_at)),
        false => Err(taken()),
    }
}

fn number_from_key(key: &str) -> u64 {
    let hash = Sha256::digest(key.as_bytes());
    let bytes = hash.iter().take(NUMBER_HASH_BYTES);
    view::DERIVED_NUMBERS_START + bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Adds a schedule under this number. `None` if a schedule with this number existed and was removed.
async fn register_as(
    handle: &dyn Handle,
    id: u64,
    args: &CheckedArgs,
    new: &NewSchedule,
    agent: &str,
) -> Result<Option<RegisterResult>, Error> {
    let request = ScheduleAdd {
        name: view::schedule_name(id, 0, &new.value),
        when: new.when.clone(),
        action: prompt_action(agent, &args.prompt),
        terms: prompt_terms(new.max_fires),
        ..ScheduleAdd::default()
    };
    let key = Some(format!("promptyoself-{id}"));
    let added = Call { key, ..Call::new(request) }.send::<ScheduleAdd>(handle).await?;
    // A replayed answer may name a schedule that was removed since.
    match send(handle, ScheduleShow { id: added.schedule.id }).await {
        Err(gone) if gone.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(_) => Ok(Some(RegisterResult::of(id, added.next.into_iter().next()))),
    }
}

impl RegisterResult {
    fn of(id: u64, next_run: Option<String>) -> RegisterResult {
        RegisterResult { id, next_run, message: format!("Prompt scheduled with ID {id}") }
    }
}

pub fn prompt_action(agent: &str, prompt: &str) -> Action {
    Action { agent: Some(agent.to_owned()), prompt: Some(prompt.to_owned()), ..Action::default() }
}

pub fn prompt_terms(max_fires: Option<u64>) -> Terms {
    Terms {
        window: Some(WINDOW.to_owned()),
        attempts: Some(ATTEMPTS),
        backoff: Some(BACKOFF.to_owned()),
        pause_after: Some(0),
        max_fires,
        ..Terms::default()
    }
}

/// Lists prompts, next due first. Cancelled and ended prompts are included only with `all`.
pub async fn list_prompts(
    handle: &dyn Handle,
    filter: PromptFilter<'_>,
    all: bool,
) -> Result<ListResult, Error> {
    let agents = Agents::load(handle).await?;
    let schedules = list_schedules(handle).await?;
    let mut items: Vec<PromptItem> =
        schedules.iter().filter_map(|schedule| view::prompt_item(schedule, &agents)).collect();
    items.retain(|item| (all || item.active) && filter.matches(item));
    items.sort_by(view::by_next_run);
    Ok(ListResult { count: items.len(), schedules: items })
}

/// Parses the number of a prompt.
pub fn parse_number(text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| invalid_input("Schedule ID must be a number"))
}

pub fn schedule_not_found(id: u64) -> Error {
    Error::new(Code::NotFound, format!("Schedule {id} not found or already cancelled"))
}

/// Cancels the prompt with this number. `key` is the caller's idempotency key.
pub async fn cancel_prompt(
    handle: &dyn Handle,
    key: Option<String>,
    filter: PromptFilter<'_>,
    id: u64,
) -> Result<CancelResult, Error> {
    let agents = Agents::load(handle).await?;
    let schedules = list_schedules(handle).await?;
    let is_match = |schedule: &&Schedule| {
        view::prompt_item(schedule, &agents)
            .is_some_and(|item| item.id == id && filter.matches(&item))
    };
    let found: Vec<&Schedule> = schedules.iter().filter(is_match).collect();
    let [schedule] = found.as_slice() else {
        return Err(match found.as_slice() {
            [] => schedule_not_found(id),
            [first, ..] => {
                Error::new(Code::NotNow, format!("Several schedules have the number {id}"))
                    .hint(format!("`midwatch schedule pause {}` pauses the first", first.id))
            }
        });
    };
    let message = format!("Schedule {id} cancelled");
    let has_ended = schedule.status == ScheduleStatus::Ended;
    let request = SchedulePause { id: schedule.id.clone(), note: Some("cancelled".to_owned()) };
    let paused = Call { key, ..Call::new(request) }.send::<SchedulePause>(handle).await?;
    let already_cancelled = has_ended || !paused.changed;
    Ok(CancelResult { cancelled_id: id, message, already_cancelled })
}
