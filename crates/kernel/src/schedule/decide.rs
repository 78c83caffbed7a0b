//! Rules for commands about a schedule: who may give them, and which definitions are valid.

use calendar::{Calendar, Span};

use super::event::{Added, BackfillMoved, BackfillStarted, Changed, Dropped, Event};
use super::event::{AddingAgent, Passed, Paused, Removed, Resumed, TierRaise};
use super::terms::{ATTEMPTS_MAX, BACKOFF_CAP_MAX, BACKOFF_FACTOR_MAX};
use super::terms::{KEYS_MAX, PRIORITY_MAX, Resume, Terms};
use super::{Action, Definition, KEY_BYTES_MAX, NAME_CHARS_MAX, NOTE_BYTES_MAX, Schedule};
use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::money::Money;
use crate::principal::Principal;
use crate::progress::{NextFire, Progress, Status};
use crate::run::{self, Occurrence, Queued, Run, effective_tier};
use crate::slot::{Disposition, Reason, Slot, SlotOutcome};
use crate::tick::Tick;
use crate::time::Timestamp;
use crate::tool::ToolStats;
use crate::{EventBody, RunId, ScheduleId};

/// Longest chain of schedules that depend on each other.
pub const CHAIN_MAX: usize = 16;
/// Schedules that depend on the same one.
const DEPENDENTS_MAX: usize = 100;
/// Schedules that one run may add.
const ADDED_BY_RUN_MAX: u32 = 10;
/// Existing schedules that one agent has added.
const ADDED_BY_AGENT_MAX: u32 = 100;
/// Slots in one backfill.
const BACKFILL_SLOTS_MAX: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Add {
        definition: Box<Definition>,
        /// Add the schedule paused.
        paused: bool,
    },
    Edit {
        definition: Box<Definition>,
    },
    Pause {
        note: Option<String>,
    },
    Resume,
    Remove,
    /// Run it now. A key starts at most one run.
    Fire {
        run: RunId,
        key: String,
    },
    /// Run past slots.
    Backfill(Backfill),
    /// End a backfill early.
    EndBackfill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backfill {
    pub from: Timestamp,
    pub to: Timestamp,
    pub at_once: Option<u32>,
    pub gap: Option<Span>,
}

/// Why a command was refused. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("schedule `{0}` does not exist")]
    Unknown(ScheduleId),
    #[error("id `{0}` belongs to another schedule")]
    Taken(ScheduleId),
    #[error("agent `{0}` does not exist")]
    UnknownAgent(AgentName),
    #[error("a schedule cannot follow itself: {}", join_chain(.0))]
    Cycle(Vec<ScheduleId>),
    #[error("a schedule can follow a chain of at most {CHAIN_MAX} others")]
    ChainTooLong,
    #[error("schedule `{0}` has the most dependents allowed ({DEPENDENTS_MAX})")]
    TooManyDependents(ScheduleId),
    #[error("schedule `{0}` depends on this one")]
    HasDependents(ScheduleId),
    #[error("a backfill is already running, next slot {}", calendar::format_instant(.0.as_micros()))]
    BackfillRunning(Timestamp),
    #[error("the range has no slots to backfill")]
    NothingToBackfill,
    #[error("the range has {0} slots; a backfill runs at most {BACKFILL_SLOTS_MAX}")]
    BackfillTooLong(u64),
    #[error("the schedule never fires after {}", calendar::format_instant(*.0))]
    NeverFires(i64),
    #[error("agent `{agent}` has tier {min}, and a schedule may only raise it")]
    TierTooLow { agent: AgentName, min: Tier },
    #[error(
        "a person gave a schedule {of} tier {min}; only a person may add one with a lower tier"
    )]
    TierWasRaised {
        /// The agent that it prompts, or the tool that it calls.
        of: String,
        min: Tier,
    },
    #[error("agent `{0}` gets prompts as an argument, which every user of the machine can read")]
    PromptVisible(AgentName),
    #[error("{what}")]
    Invalid { what: String, hint: String },
    #[error("this key has already started run `{0}`")]
    AlreadyFired(RunId),
    #[error("run `{0}` is live, and the overlap policy allows no other run beside it")]
    RunIsLive(RunId),
    #[error("the schedule has reached its limit of {0} runs today")]
    OutOfBudget(u32),
    #[error("run `{0}` is not running, so it cannot add schedules")]
    RunNotRunning(RunId),
    #[error("runs may not add schedules: this is switched off")]
    RunsMayNotAdd,
    #[error("a run may add at most {ADDED_BY_RUN_MAX} schedules")]
    RunAddedTooMany,
    #[error("agent `{0}` has added the most schedules allowed ({ADDED_BY_AGENT_MAX})")]
    AgentAddedTooMany(AgentName),
    #[error("schedule `{0}` was added by an agent, so its runs may not add schedules")]
    AddedByAgentSchedule(ScheduleId),
    #[error("a scheduled tool call may not add or change a schedule that calls a tool")]
    ToolCallAddsToolCall,
    #[error("agent `{0}` may not add a schedule that calls a tool")]
    AgentAddsToolCall(AgentName),
    #[error("agent `{0}` may add schedules for itself only")]
    OtherAgent(AgentName),
    #[error("only a human may raise a limit, lower the tier or unseal a sensitive text")]
    LoosensLimits,
    #[error("this needs the role `{}`, but `{}` has the role `{}`", needed.name(), actor.name(), actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
}

impl Refusal {
    pub(crate) fn invalid(what: &str, hint: &str) -> Refusal {
        Refusal::Invalid { what: what.to_owned(), hint: hint.to_owned() }
    }
}

/// The rows that a decision about a schedule depends on.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleContext<'a> {
    pub id: &'a ScheduleId,
    pub schedule: Option<&'a Schedule>,
    pub progress: Option<&'a Progress>,
    /// The agent that the definition names.
    pub agent: Option<&'a Agent>,
    /// The tool that the definition calls, if it is known.
    pub tool: Option<&'a ToolStats>,
    /// The chain of schedules that the definition depends on, nearest first.
    pub upstream: &'a [(ScheduleId, Schedule, Progress)],
    /// The slot of a manual start with the same key.
    pub fired: Option<&'a Slot>,
    /// The calling agent, if the caller is one.
    pub caller: Option<AgentCaller<'a>>,
    pub now: Timestamp,
}

/// An agent that gives a command: one of its runs, or a caller with its token.
#[derive(Clone, Copy, Debug)]
pub struct AgentCaller<'a> {
    pub agent: &'a Agent,
    pub run: Option<CallingRun<'a>>,
    /// Schedules added earlier in the same batch.
    pub added_in_batch: u32,
    /// Policy lets it manage the schedules of other agents too.
    pub may_manage_others: bool,
    /// Whether runs may add schedules at all.
    pub runs_may_add: bool,
}

/// The run that gives a command.
#[derive(Clone, Copy, Debug)]
pub struct CallingRun<'a> {
    pub id: &'a RunId,
    pub run: &'a Run,
    /// The schedule of the run.
    pub schedule: Option<&'a Schedule>,
}

/// Decides a command about a schedule. Returns no events if the schedule is already in the requested state.
pub fn decide(
    context: ScheduleContext<'_>,
    actor: &Actor,
    command: Command,
) -> Result<Vec<EventBody>, Refusal> {
    if actor.role < Role::Operator {
        context.check_agent(actor, &command)?;
        context.check_raised_tier(&command)?;
    }
    match (command, context.schedule.zip(context.progress)) {
        (Command::Add { definition, paused }, None) => {
            let mut events = add(context, actor, *definition)?;
            events.extend(paused.then(|| pause(context, actor, None)));
            Ok(events)
        }
        (Command::Add { definition, .. }, Some((schedule, _))) => {
            let is_same = definition.without_tool_hash() == schedule.definition.without_tool_hash();
            match is_same {
                true => Ok(Vec::new()),
                false => Err(Refusal::Taken(context.id.clone())),
            }
        }
        (_, None) => Err(Refusal::Unknown(context.id.clone())),
        (Command::Edit { definition }, Some((schedule, progress))) => {
            edit(context, schedule, progress, *definition, actor)
        }
        (Command::Pause { note }, Some((_, progress))) => {
            check_note(note.as_deref())?;
            Ok(match progress.status {
                Status::Paused(_) => Vec::new(),
                Status::Active | Status::Removed => vec![pause(context, actor, note)],
            })
        }
        (Command::Resume, Some((schedule, progress))) => resume(context, schedule, progress),
        (Command::Remove, Some((schedule, progress))) => remove(context, actor, schedule, progress),
        (Command::Fire { run, key }, Some((schedule, progress))) => {
            fire(context, actor, schedule, progress, (run, key))
        }
        (Command::Backfill(request), Some((schedule, progress))) => {
            backfill(context, actor, schedule, progress, request)
        }
        (Command::EndBackfill, Some((_, progress))) => {
            let is_running = progress.backfill.as_ref().is_some_and(|it| it.next.is_some());
            let moved = BackfillMoved { next: None, at: context.now };
            Ok(is_running.then(|| context.event(Event::BackfillMoved(moved))).into_iter().collect())
        }
    }
}

fn add(
    context: ScheduleContext<'_>,
    actor: &Actor,
    definition: Definition,
) -> Result<Vec<EventBody>, Refusal> {
    context.check(&definition)?;
    let added_by_agent = context.caller.map(AgentCaller::check_may_add).transpose()?;
    let calendar = definition.calendar(None)?;
    // A schedule that was removed and comes back continues after its last decided slot.
    let decided = context.progress.map_or(i64::MIN, |progress| progress.decided_until.as_micros());
    let after = decided.max(context.now.as_micros());
    let next_fire = context.first_slot(&definition, &calendar, after, 0)?;
    let raises = is_person(actor).then(|| definition.tier_raise()).flatten();
    let definition = Box::new(definition);
    let by = actor.principal().clone();
    let added = Added { definition, by, added_by_agent, raises, at: context.now, next_fire };
    Ok(vec![context.event(Event::Added(added))])
}

fn pause(context: ScheduleContext<'_>, actor: &Actor, note: Option<String>) -> EventBody {
    context.event(Event::Paused(Paused { by: actor.principal().clone(), note, at: context.now }))
}

/// Replaces the definition. Waiting slots and undecided due slots are superseded.
fn edit(
    context: ScheduleContext<'_>,
    schedule: &Schedule,
    progress: &Progress,
    definition: Definition,
    actor: &Actor,
) -> Result<Vec<EventBody>, Refusal> {
    if definition == schedule.definition {
        return Ok(Vec::new());
    }
    context.check(&definition)?;
    let mut events = context.supersede(schedule, progress, Reason::Changed)?;
    let calendar = definition.calendar(None)?;
    let after = progress.decided_until.as_micros().max(context.now.as_micros());
    let next_fire = context.first_slot(&definition, &calendar, after, progress.fires)?;
    let upstream =
        |definition: &Definition| definition.trigger.upstream().map(|(id, _)| id.clone());
    let former_upstream =
        upstream(&schedule.definition).filter(|id| Some(id) != upstream(&definition).as_ref());
    // What a person raised stays counted for its agent until a person lowers it.
    let raise = definition.tier_raise();
    let (raises, lowers) = match is_person(actor) && raise != schedule.raises {
        true => (raise, schedule.raises.clone()),
        false => (None, None),
    };
    let definition = Box::new(definition);
    let by = Some(actor.principal().clone());
    let at = context.now;
    let changed = Changed { definition, former_upstream, by, raises, lowers, at, next_fire };
    events.push(context.event(Event::Changed(changed)));
    Ok(events)
}

fn resume(
    context: ScheduleContext<'_>,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<EventBody>, Refusal> {
    if !matches!(progress.status, Status::Paused(_)) {
        return Ok(Vec::new());
    }
    let calendar = schedule.definition.calendar(progress.next_fire.slot)?;
    let tick = Tick::new(context.id, schedule, &calendar, context.now);
    let backlog = progress.next_fire.slot.and_then(|first| tick.backlog(first));
    let resumed = |next_fire| context.event(Event::Resumed(Resumed { at: context.now, next_fire }));
    match (backlog, schedule.definition.terms.resume) {
        (Some((first, last)), Resume::Skip) => {
            let next_fire = tick.next_fire(last, progress.slots_used(), progress.live.len());
            let passed = tick.passed_event(first, last, Disposition::SkippedPaused, next_fire);
            Ok(vec![context.event(Event::Passed(passed)), resumed(next_fire)])
        }
        (_, Resume::AsMissed) | (None, Resume::Skip) => Ok(vec![resumed(progress.next_fire)]),
    }
}

/// Removes the schedule. Waiting slots and undecided due slots are superseded.
fn remove(
    context: ScheduleContext<'_>,
    actor: &Actor,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<EventBody>, Refusal> {
    if let Some(dependent) = progress.dependents.first() {
        return Err(Refusal::HasDependents(dependent.clone()));
    }
    let mut events = context.supersede(schedule, progress, Reason::Removed)?;
    let former_upstream = schedule.definition.trigger.upstream().map(|(id, _)| id.clone());
    let removed = Removed {
        former_upstream,
        added_by_agent: schedule.added_by_agent.clone(),
        lowers: schedule.raises.clone().filter(|_| is_person(actor)),
        name: Some(schedule.definition.name.clone()),
        at: context.now,
    };
    events.push(context.event(Event::Removed(removed)));
    Ok(events)
}

/// Starts a backfill of decided slots, or of instants before the schedule existed. Slots with a run are
/// skipped later.
fn backfill(
    context: ScheduleContext<'_>,
    actor: &Actor,
    schedule: &Schedule,
    progress: &Progress,
    request: Backfill,
) -> Result<Vec<EventBody>, Refusal> {
    if let Some(next) = progress.backfill.as_ref().and_then(|it| it.next) {
        return Err(Refusal::BackfillRunning(next));
    }
    let terms = &schedule.definition.terms;
    let (first, last, count) = backfill_range(&schedule.definition, progress, request)
        .ok_or(Refusal::NothingToBackfill)?;
    if BACKFILL_SLOTS_MAX < count {
        return Err(Refusal::BackfillTooLong(count));
    }
    let half = u32::try_from(terms.overlap.live_max() / 2).unwrap_or(u32::MAX).max(1);
    let at_once = request.at_once.unwrap_or(half);
    if !(1..=half).contains(&at_once) {
        let most = format!(
            "a backfill has at most {half} live runs, half of what the overlap policy allows"
        );
        let hint = "omit `--at-once N` for the most, or allow more with `--overlap allow:N`";
        return Err(Refusal::invalid(&most, hint));
    }
    let started = BackfillStarted {
        first,
        last,
        count,
        at_once,
        gap: request.gap,
        by: actor.name().to_owned(),
        at: context.now,
    };
    Ok(vec![context.event(Event::BackfillStarted(started))])
}

/// Returns the first slot, the last slot and the number of slots of a backfill.
pub fn backfill_range(
    definition: &Definition,
    progress: &Progress,
    request: Backfill,
) -> Option<(Timestamp, Timestamp, u64)> {
    definition.trigger.timed()?;
    let calendar = definition.calendar(None).ok()?;
    let from = request.from.as_micros().saturating_sub(1);
    let until = request.to.min(progress.decided_until).as_micros();
    let first = calendar.next_after(from).filter(|first| *first <= until)?;
    let last = calendar.last_at_or_before(until)?;
    let count = calendar.count_slots(from, last);
    Some((Timestamp::from_micros(first), Timestamp::from_micros(last), count))
}

fn fire(
    context: ScheduleContext<'_>,
    actor: &Actor,
    schedule: &Schedule,
    progress: &Progress,
    (run, key): (RunId, String),
) -> Result<Vec<EventBody>, Refusal> {
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) || key.chars().any(char::is_control) {
        let what = "a key has 1 to 256 bytes of printable text";
        return Err(Refusal::invalid(what, "use a new key for each run, such as a UUID"));
    }
    if let Some(SlotOutcome::Run { run, .. }) = context.fired.map(|slot| &slot.outcome) {
        return Err(Refusal::AlreadyFired(run.clone()));
    }
    let terms = &schedule.definition.terms;
    check_overlap(terms, progress)?;
    let calendar = schedule.definition.calendar(progress.next_fire.slot)?;
    let tick = Tick::new(context.id, schedule, &calendar, context.now);
    if tick.has_reached_daily_limit(progress) {
        return Err(Refusal::OutOfBudget(tick.per_day(progress.day(context.now))));
    }
    let queued = Queued {
        schedule: context.id.clone(),
        revision: schedule.revision,
        occurrence: Occurrence::Manual { key },
        agent: schedule.definition.action.agent().cloned(),
        priority: terms.priority,
        keys: terms.keys.clone(),
        depth: 0,
        by_runner: actor.role < Role::Operator,
        at: context.now,
    };
    Ok(vec![EventBody::Run(run, run::Event::Queued(queued))])
}

impl ScheduleContext<'_> {
    fn event(&self, event: Event) -> EventBody {
        EventBody::Schedule(self.id.clone(), event)
    }

    /// Supersedes the waiting and undecided due slots of a definition that is replaced or removed.
    fn supersede(
        &self,
        schedule: &Schedule,
        progress: &Progress,
        reason: Reason,
    ) -> Result<Vec<EventBody>, Refusal> {
        let calendar = schedule.definition.calendar(progress.next_fire.slot)?;
        let tick = Tick::new(self.id, schedule, &calendar, self.now);
        let (disposition, reason) = (Disposition::Superseded, Some(reason));
        let mut events = Vec::new();
        for slot in &progress.waiting {
            let (slot, at, next_fire) = (*slot, self.now, progress.next_fire);
            let dropped = Dropped { slot, disposition, reason, into: None, at, next_fire };
            events.push(self.event(Event::Dropped(dropped)));
        }
        if let Some((first, last)) =
            progress.next_fire.slot.and_then(|first| tick.backlog_ignoring_jitter(first))
        {
            let passed = tick.passed_event(first, last, disposition, NextFire::default());
            events.push(self.event(Event::Passed(Passed { reason, ..passed })));
        }
        Ok(events)
    }

    /// The first slot of a definition after an instant. A definition on a calendar or interval must have
    /// one; a definition on an event has none.
    fn first_slot(
        &self,
        definition: &Definition,
        calendar: &Calendar,
        after_us: i64,
        taken: u64,
    ) -> Result<NextFire, Refusal> {
        let (id, now) = (self.id, self.now);
        let tick = Tick {
            id,
            definition,
            revision: 1,
            calendar,
            live: &[],
            decided_wall: None,
            backfill_slot: None,
            now,
        };
        let next_fire = tick.next_fire(after_us, taken, 0);
        let must_have_slot =
            definition.trigger.timed().is_some() || definition.own_run_interval().is_some();
        match next_fire.slot {
            None if must_have_slot => Err(Refusal::NeverFires(after_us)),
            _ => Ok(next_fire),
        }
    }

    fn check(&self, definition: &Definition) -> Result<(), Refusal> {
        definition.check_limits(self.agent)?;
        let Some((upstream, _)) = definition.trigger.upstream() else { return Ok(()) };
        let Some((_, _, upstream_progress)) = self.upstream.first() else {
            return Err(Refusal::Unknown(upstream.clone()));
        };
        let chain = || [self.id].into_iter().chain(self.upstream.iter().map(|(id, ..)| id));
        if let Some(position) = chain().skip(1).position(|id| id == self.id) {
            return Err(Refusal::Cycle(chain().take(position + 2).cloned().collect()));
        }
        if CHAIN_MAX < self.upstream.len() {
            return Err(Refusal::ChainTooLong);
        }
        let is_new = !upstream_progress.dependents.contains(self.id);
        match is_new && DEPENDENTS_MAX <= upstream_progress.dependents.len() {
            true => Err(Refusal::TooManyDependents(upstream.clone())),
            false => Ok(()),
        }
    }
}

impl ScheduleContext<'_> {
    /// An agent may add, fire, pause and remove its own schedules; a run may only add them.
    fn check_agent(&self, actor: &Actor, command: &Command) -> Result<(), Refusal> {
        let too_low = || Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator };
        if actor.is_assistant() {
            return self.check_assistant(actor, command);
        }
        let caller = self.caller.ok_or_else(too_low)?;
        match command {
            Command::Add { definition, .. }
                if caller.may_manage_others && definition.action.agent().is_none() =>
            {
                Err(Refusal::AgentAddsToolCall(caller.agent.name.clone()))
            }
            Command::Add { definition, .. } if !caller.may_manage(definition) => {
                Err(Refusal::OtherAgent(caller.agent.name.clone()))
            }
            Command::Add { .. } => Ok(()),
            Command::Pause { .. } | Command::Remove | Command::Fire { .. }
                if caller.run.is_none() =>
            {
                let is_own = self.schedule.is_some_and(|it| caller.may_manage(&it.definition));
                let is_paused =
                    self.progress.is_some_and(|it| matches!(it.status, Status::Paused(_)));
                match command {
                    // An agent must not learn that other schedules exist.
                    _ if !is_own => Err(Refusal::Unknown(self.id.clone())),
                    // An agent must not run a schedule that was paused.
                    Command::Fire { .. } if is_paused => Err(too_low()),
                    _ => Ok(()),
                }
            }
            _ => Err(too_low()),
        }
    }
}

impl ScheduleContext<'_> {
    /// Agents and assistants may not avoid the tier that people gave the schedules of an agent, or with calls of a
    /// tool, by writing another schedule with a lower one.
    fn check_raised_tier(&self, command: &Command) -> Result<(), Refusal> {
        let definition = match (command, self.schedule) {
            (Command::Add { definition, .. }, None) => definition,
            (Command::Edit { definition }, Some(schedule))
                if definition.action != schedule.definition.action =>
            {
                definition
            }
            _ => return Ok(()),
        };
        let (raised, tier, of) = match (&definition.action, self.agent, self.tool) {
            (Action::Prompt { .. }, Some(agent), _) => {
                let tier = effective_tier(definition, agent);
                (agent.raised_tier(), tier, format!("of agent `{}`", agent.name))
            }
            (Action::Tool { tool, .. }, _, Some(stats)) => {
                let tier = definition.tier.unwrap_or(Tier::ReadOnly);
                (stats.raised_tier(), tier, format!("that calls `{tool}`"))
            }
            _ => return Ok(()),
        };
        match raised.filter(|min| tier < *min) {
            Some(min) => Err(Refusal::TierWasRaised { of, min }),
            None => Ok(()),
        }
    }

    /// An assistant may do for its person what policy allows, but not loosen the limits that people have set
    /// on a schedule.
    fn check_assistant(&self, actor: &Actor, command: &Command) -> Result<(), Refusal> {
        let too_low = || Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator };
        let paused_by = self.progress.and_then(|progress| match &progress.status {
            Status::Paused(pause) => Some(&pause.by),
            Status::Active | Status::Removed => None,
        });
        match command {
            Command::Backfill(_) | Command::EndBackfill => Err(too_low()),
            // A tool call may resume what another one paused: people wrote both schedules.
            Command::Resume | Command::Fire { .. }
                if paused_by.is_some_and(|by| {
                    by != actor.principal() && !matches!(by, Principal::ToolCall(_))
                }) =>
            {
                Err(too_low())
            }
            // Scheduled tool calls must not multiply.
            Command::Add { definition, .. } | Command::Edit { definition }
                if actor.tool_call_run().is_some() && definition.action.agent().is_none() =>
            {
                Err(Refusal::ToolCallAddsToolCall)
            }
            Command::Edit { definition } => match self.schedule {
                Some(schedule) if definition.is_looser_than(&schedule.definition) => {
                    Err(Refusal::LoosensLimits)
                }
                _ => Ok(()),
            },
            Command::Add { .. }
            | Command::Pause { .. }
            | Command::Resume
            | Command::Remove
            | Command::Fire { .. } => Ok(()),
        }
    }
}

impl AgentCaller<'_> {
    fn may_manage(&self, definition: &Definition) -> bool {
        self.may_manage_others || definition.action.agent() == Some(&self.agent.name)
    }

    /// Refuses additions past the limits, so that agents cannot multiply schedules.
    fn check_may_add(self) -> Result<AddingAgent, Refusal> {
        let AgentCaller { agent, run, added_in_batch: beside, runs_may_add: may_add, .. } = self;
        if let Some(CallingRun { id, run, schedule }) = run {
            if !may_add {
                return Err(Refusal::RunsMayNotAdd);
            }
            if !matches!(run.state, run::State::Running { .. }) {
                return Err(Refusal::RunNotRunning(id.clone()));
            }
            if schedule.is_some_and(|schedule| schedule.added_by_agent.is_some()) {
                return Err(Refusal::AddedByAgentSchedule(run.schedule.clone()));
            }
            if ADDED_BY_RUN_MAX <= run.schedules_made + beside {
                return Err(Refusal::RunAddedTooMany);
            }
        }
        if ADDED_BY_AGENT_MAX <= agent.schedules_made + beside {
            return Err(Refusal::AgentAddedTooMany(agent.name.clone()));
        }
        Ok(AddingAgent { run: run.map(|run| run.id.clone()), agent: agent.name.clone() })
    }
}

fn join_chain(ids: &[ScheduleId]) -> String {
    let names: Vec<&str> = ids.iter().map(ScheduleId::as_str).collect();
    names.join(" follows ")
}

/// Whether a character changes the display order of the text around it.
fn is_reordering(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether the actor is a person, not a program that acts for one.
fn is_person(actor: &Actor) -> bool {
    Role::Operator <= actor.role
}

impl Definition {
    /// The tier that it gives the schedules of its agent, or with calls of its tool, if it has one.
    fn tier_raise(&self) -> Option<TierRaise> {
        let tier = self.tier.filter(|tier| Tier::ReadOnly < *tier)?;
        Some(match &self.action {
            Action::Prompt { agent, .. } => TierRaise::Agent { agent: agent.clone(), tier },
            // A longer name is that of no tool.
            Action::Tool { tool, .. } => TierRaise::Tool { tool: tool.parse().ok()?, tier },
        })
    }

    /// Whether a limit of the other definition is raised or dropped.
    fn is_looser_than(&self, other: &Definition) -> bool {
        fn is_raised<T: PartialOrd>(new: Option<T>, old: Option<T>) -> bool {
            old.is_some_and(|old| new.is_none_or(|new| old < new))
        }
        let (new, old) = (&self.terms, &other.terms);
        let pauses = |terms: &Terms| Some(terms.pause_after).filter(|after| *after != 0);
        let (old_text, new_text) = (other.action.text(), self.action.text());
        let is_unsealed = old_text.is_sealed()
            && (!new_text.is_sealed() || self.action.agent() != other.action.agent());
        self.tier < other.tier
            || is_unsealed
            || is_raised(new.per_day, old.per_day)
            || is_raised(new.tokens_per_day, old.tokens_per_day)
            || is_raised(new.money_per_day, old.money_per_day)
            || is_raised(new.max_fires, old.max_fires)
            || is_raised(new.end_at, old.end_at)
            || is_raised(pauses(new), pauses(old))
    }

    fn check_limits(&self, agent: Option<&Agent>) -> Result<(), Refusal> {
        let invalid = |what, hint| Err(Refusal::invalid(what, hint));
        let terms = &self.terms;
        if self.name.is_empty() || NAME_CHARS_MAX < self.name.chars().count() {
            return invalid(
                "the name of a schedule has 1 to 120 characters",
                "give a short name with `--name TEXT`",
            );
        }
        if self.name.chars().any(|c| c.is_control() || is_reordering(c)) {
            return invalid(
                "the name of a schedule is one line of printable text",
                "remove line breaks and invisible characters",
            );
        }
        if PRIORITY_MAX < terms.priority {
            return invalid(
                "a priority is from 0 to 9",
                "5 is the default, and each step is worth a minute of waiting",
            );
        }
        if terms.retry.attempts.is_some_and(|it| !(1..=ATTEMPTS_MAX).contains(&it)) {
            return invalid("a run has 1 to 100 attempts", "`--attempts 1` disables retries");
        }
        if !(1..=BACKOFF_FACTOR_MAX).contains(&terms.retry.factor) {
            return invalid(
                "the factor of a backoff is from 1 to 10",
                "it is the second part of `--backoff 5s:2:5m`",
            );
        }
        if terms.retry.cap < terms.retry.initial || BACKOFF_CAP_MAX < terms.retry.cap {
            return invalid(
                "the cap of a backoff is from its first delay to a day",
                "it is the last part of `--backoff 5s:2:5m`",
            );
        }
        if KEYS_MAX < terms.keys.len() {
            return invalid(
                "a schedule has at most 8 concurrency keys",
                "use one key for all runs that must not overlap",
            );
        }
        if terms.per_day == Some(0) {
            return invalid(
                "a schedule runs at least once a day",
                "omit `--per-day N` for a limit derived from the trigger, or stop the schedule with `midwatch schedule pause`",
            );
        }
        if terms.tokens_per_day == Some(0) || terms.money_per_day == Some(Money::ZERO) {
            return invalid(
                "a schedule with a budget of 0 never runs",
                "omit the limit, or stop the schedule with `midwatch schedule pause`",
            );
        }
        if terms.max_fires == Some(0) {
            return invalid("a schedule fires at least once", "omit `--max-fires N` for no limit");
        }
        if let (Some(start), Some(end)) = (terms.start_at, terms.end_at)
            && end < start
        {
            return invalid(
                "a schedule ends after it starts",
                "give a later `--end-at T`, or an earlier `--start-at T`",
            );
        }
        self.action.check_text()?;
        match &self.action {
            Action::Prompt { agent: name, prompt } => {
                let agent = agent.ok_or_else(|| Refusal::UnknownAgent(name.clone()))?;
                if prompt.is_sealed() && agent.backend.exposes_prompt() {
                    return Err(Refusal::PromptVisible(name.clone()));
                }
                if self.tier.is_some_and(|tier| tier < agent.tier) {
                    return Err(Refusal::TierTooLow { agent: name.clone(), min: agent.tier });
                }
            }
            Action::Tool { tool, .. } => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                if !(1..=128).contains(&tool.len()) || !tool.chars().all(is_plain) {
                    return invalid(
                        "a tool name has 1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `-`",
                        "docs/mcp-tools.md lists the tools",
                    );
                }
            }
        }
        self.calendar(None).map(drop)
    }
}

/// Refuses another live run if the overlap policy does not allow it.
pub(crate) fn check_overlap(terms: &Terms, progress: &Progress) -> Result<(), Refusal> {
    match progress.live.first() {
        Some(live) if terms.overlap.live_max() <= progress.live.len() => {
            Err(Refusal::RunIsLive(live.clone()))
        }
        _ => Ok(()),
    }
}

pub fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if NOTE_BYTES_MAX < note.len() => {
            Err(Refusal::invalid("a note has at most 1024 bytes", "shorten it"))
        }
        _ => Ok(()),
    }
}
