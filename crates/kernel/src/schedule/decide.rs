//! Every rule about what people ask of a schedule.

use calendar::{Calendar, Span};

use super::event::{Added, BackfillBegun, BackfillMoved, Changed, Dropped, Event};
use super::event::{MadeBy, Passed, Paused, Removed, Resumed};
use super::terms::{ATTEMPTS_MAX, BACKOFF_CAP_MAX, BACKOFF_FACTOR_MAX};
use super::terms::{KEYS_MAX, PRIORITY_MAX, Resume, Terms};
use super::{Action, Definition, KEY_BYTES_MAX, NAME_CHARS_MAX, NOTE_BYTES_MAX, Schedule};
use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::money::Money;
use crate::progress::{Ahead, Progress, Status};
use crate::run::{self, Occurrence, Queued, Run};
use crate::slot::{Disposition, Fate, Reason, Slot};
use crate::tick::Tick;
use crate::time::Timestamp;

/// Schedules in a row, each of which follows the next.
pub const CHAIN_MAX: usize = 16;
/// Schedules that follow one.
const FOLLOWERS_MAX: usize = 100;
/// Schedules that a run may add.
const MADE_BY_RUN_MAX: u32 = 10;
/// Schedules that there may be which runs of one agent have added.
const MADE_BY_AGENT_MAX: u32 = 100;
/// Slots of one backfill.
const BACKFILL_SLOTS_MAX: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Add {
        definition: Box<Definition>,
        /// It does nothing until somebody resumes it.
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
    /// Run it now. The same key is the same run.
    Fire {
        run: RunId,
        key: String,
    },
    /// Run slots of the past.
    Backfill(Backfill),
    /// Leave the rest of a backfill.
    EndBackfill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backfill {
    pub from: Timestamp,
    pub to: Timestamp,
    pub at_once: Option<u32>,
    pub gap: Option<Span>,
}

/// Why a command was not carried out. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no schedule `{0}`")]
    Unknown(ScheduleId),
    #[error("the id `{0}` is another schedule's")]
    Taken(ScheduleId),
    #[error("there is no agent `{0}`")]
    UnknownAgent(AgentName),
    #[error("a schedule cannot follow itself: {}", chain(.0))]
    Cycle(Vec<ScheduleId>),
    #[error("a schedule follows at most {CHAIN_MAX} others in a row")]
    ChainTooLong,
    #[error("schedule `{0}` has as many followers as it may ({FOLLOWERS_MAX})")]
    TooManyFollowers(ScheduleId),
    #[error("schedule `{0}` follows it")]
    Followed(ScheduleId),
    #[error("slots from {} on are being run already", calendar::format_instant(.0.as_micros()))]
    Backfilling(Timestamp),
    #[error("there is no slot to run in that time")]
    NothingToBackfill,
    #[error("these are {0} slots, and at most {BACKFILL_SLOTS_MAX} are run at a time")]
    BackfillTooLong(u64),
    #[error("the schedule never fires after {}", calendar::format_instant(*.0))]
    NeverFires(i64),
    #[error("agent `{agent}` has tier {min}, and a schedule may only raise it")]
    TierTooLow { agent: AgentName, min: Tier },
    #[error("agent `{0}` gets its prompts as an argument, which everybody on the machine can read")]
    Shown(AgentName),
    #[error("{what}")]
    Invalid { what: String, hint: String },
    #[error("run `{0}` was started with this key before")]
    Fired(RunId),
    #[error("run `{0}` is live, and the overlap policy lets no other run beside it")]
    Live(RunId),
    #[error("the schedule has run as often today as it may ({0})")]
    OutOfBudget(u32),
    #[error("run `{0}` is not at work, so it can add nothing")]
    NotAtWork(RunId),
    #[error("runs add no schedules: that is switched off")]
    NotByRuns,
    #[error("a run adds at most {MADE_BY_RUN_MAX} schedules")]
    MadeByRun,
    #[error("agent `{0}` has added as many schedules as there may be ({MADE_BY_AGENT_MAX})")]
    MadeByAgent(AgentName),
    #[error("schedule `{0}` was added by an agent, so its own runs can add none")]
    MadeByMade(ScheduleId),
    #[error("a tool that a schedule calls adds no schedule that calls a tool, and changes none")]
    CallByCall,
    #[error("agent `{0}` adds no schedule that calls a tool")]
    CallByAgent(AgentName),
    #[error("agent `{0}` adds schedules for itself only")]
    OtherAgent(AgentName),
    #[error("a limit, a tier or what is sensitive is a human's to loosen")]
    Looser,
    #[error("this needs the role `{}`, and `{}` has the role `{}`", needed.name(), actor.name, actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
}

impl Refusal {
    pub(crate) fn invalid(what: &str, hint: &str) -> Refusal {
        Refusal::Invalid { what: what.to_owned(), hint: hint.to_owned() }
    }
}

/// What is known when a command about a schedule is decided.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub id: &'a ScheduleId,
    pub schedule: Option<&'a Schedule>,
    pub progress: Option<&'a Progress>,
    /// The agent that the definition names.
    pub agent: Option<&'a Agent>,
    /// The schedules that the definition follows, the nearest first, each with its own progress.
    pub upstream: &'a [(ScheduleId, Schedule, Progress)],
    /// What was started by hand with the same key.
    pub fired: Option<&'a Slot>,
    /// The agent that asks, if it is one.
    pub maker: Option<Maker<'a>>,
    pub now: Timestamp,
}

/// An agent that asks: one of its runs, or somebody with its token.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a> {
    pub agent: &'a Agent,
    pub run: Option<AtWork<'a>>,
    /// Schedules that it adds before this one at the same time.
    pub beside: u32,
    /// The standing orders let it reach schedules for others too.
    pub reaches_others: bool,
    /// Whether runs add schedules at all.
    pub may_add: bool,
}

/// The run that asks.
#[derive(Clone, Copy, Debug)]
pub struct AtWork<'a> {
    pub id: &'a RunId,
    pub run: &'a Run,
    /// Whose run it is.
    pub schedule: Option<&'a Schedule>,
}

/// Every rule about what people ask of a schedule. Nothing happens when it is so already.
pub fn decide(ground: Ground<'_>, actor: &Actor, command: Command) -> Result<Vec<Body>, Refusal> {
    if actor.role < Role::Operator {
        ground.check_maker(actor, &command)?;
    }
    match (command, ground.schedule.zip(ground.progress)) {
        (Command::Add { definition, paused }, None) => {
            let mut bodies = add(ground, actor, *definition)?;
            bodies.extend(paused.then(|| pause(ground, actor, None)));
            Ok(bodies)
        }
        (Command::Add { definition, .. }, Some((schedule, _))) => {
            let is_same = definition.without_tool_hash() == schedule.definition.without_tool_hash();
            match is_same {
                true => Ok(Vec::new()),
                false => Err(Refusal::Taken(ground.id.clone())),
            }
        }
        (_, None) => Err(Refusal::Unknown(ground.id.clone())),
        (Command::Edit { definition }, Some((schedule, progress))) => {
            edit(ground, schedule, progress, *definition, &actor.name)
        }
        (Command::Pause { note }, Some((_, progress))) => {
            check_note(note.as_deref())?;
            Ok(match progress.status {
                Status::Paused(_) => Vec::new(),
                Status::Active | Status::Removed => vec![pause(ground, actor, note)],
            })
        }
        (Command::Resume, Some((schedule, progress))) => resume(ground, schedule, progress),
        (Command::Remove, Some((schedule, progress))) => remove(ground, schedule, progress),
        (Command::Fire { run, key }, Some((schedule, progress))) => {
            fire(ground, actor, schedule, progress, (run, key))
        }
        (Command::Backfill(asked), Some((schedule, progress))) => {
            backfill(ground, actor, schedule, progress, asked)
        }
        (Command::EndBackfill, Some((_, progress))) => {
            let is_under_way = progress.backfill.as_ref().is_some_and(|it| it.next.is_some());
            let moved = BackfillMoved { next: None, at: ground.now };
            Ok(is_under_way.then(|| ground.body(Event::BackfillMoved(moved))).into_iter().collect())
        }
    }
}

fn add(ground: Ground<'_>, actor: &Actor, definition: Definition) -> Result<Vec<Body>, Refusal> {
    ground.check(&definition)?;
    let made_by = ground.maker.map(Maker::check).transpose()?;
    let calendar = definition.calendar(None)?;
    // A schedule that was removed goes on after the last slot that it decided.
    let decided = ground.progress.map_or(i64::MIN, |progress| progress.decided_until.as_micros());
    let after = decided.max(ground.now.as_micros());
    let ahead = ground.first_slot(&definition, &calendar, after, 0)?;
    let definition = Box::new(definition);
    let added = Added { definition, by: actor.name.clone(), made_by, at: ground.now, ahead };
    Ok(vec![ground.body(Event::Added(added))])
}

fn pause(ground: Ground<'_>, actor: &Actor, note: Option<String>) -> Body {
    ground.body(Event::Paused(Paused { by: actor.name.clone(), note, at: ground.now }))
}

/// Slots that were due and not decided, or wait, are overtaken by the change.
fn edit(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
    definition: Definition,
    by: &str,
) -> Result<Vec<Body>, Refusal> {
    if definition == schedule.definition {
        return Ok(Vec::new());
    }
    ground.check(&definition)?;
    let mut bodies = ground.supersede(schedule, progress, Reason::Changed)?;
    let calendar = definition.calendar(None)?;
    let after = progress.decided_until.as_micros().max(ground.now.as_micros());
    let ahead = ground.first_slot(&definition, &calendar, after, progress.fires)?;
    let follows = |definition: &Definition| definition.trigger.follows().map(|(id, _)| id.clone());
    let unfollows =
        follows(&schedule.definition).filter(|id| Some(id) != follows(&definition).as_ref());
    let definition = Box::new(definition);
    let by = Some(by.to_owned());
    let changed = Changed { definition, unfollows, by, at: ground.now, ahead };
    bodies.push(ground.body(Event::Changed(changed)));
    Ok(bodies)
}

fn resume(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<Body>, Refusal> {
    if !matches!(progress.status, Status::Paused(_)) {
        return Ok(Vec::new());
    }
    let calendar = schedule.definition.calendar(progress.ahead.next)?;
    let tick = Tick::new(ground.id, schedule, &calendar, ground.now);
    let backlog = progress.ahead.next.and_then(|first| tick.backlog(first));
    let resumed = |ahead| ground.body(Event::Resumed(Resumed { at: ground.now, ahead }));
    match (backlog, schedule.definition.terms.resume) {
        (Some((first, last)), Resume::Skip) => {
            let ahead = tick.ahead(last, progress.taken(), progress.live.len());
            let passed = tick.passed(first, last, Disposition::SkippedPaused, ahead);
            Ok(vec![ground.body(Event::Passed(passed)), resumed(ahead)])
        }
        (_, Resume::AsMissed) | (None, Resume::Skip) => Ok(vec![resumed(progress.ahead)]),
    }
}

/// Slots that were due and not decided, or wait, are overtaken by the removal.
fn remove(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<Body>, Refusal> {
    if let Some(follower) = progress.followers.first() {
        return Err(Refusal::Followed(follower.clone()));
    }
    let mut bodies = ground.supersede(schedule, progress, Reason::Removed)?;
    let unfollows = schedule.definition.trigger.follows().map(|(id, _)| id.clone());
    let removed = Removed { unfollows, made_by: schedule.made_by.clone(), at: ground.now };
    bodies.push(ground.body(Event::Removed(removed)));
    Ok(bodies)
}

/// Slots that are decided, or were before the schedule was; one that has a run is left alone later.
fn backfill(
    ground: Ground<'_>,
    actor: &Actor,
    schedule: &Schedule,
    progress: &Progress,
    asked: Backfill,
) -> Result<Vec<Body>, Refusal> {
    if let Some(next) = progress.backfill.as_ref().and_then(|it| it.next) {
        return Err(Refusal::Backfilling(next));
    }
    let terms = &schedule.definition.terms;
    let (first, last, count) =
        backfill_range(&schedule.definition, progress, asked).ok_or(Refusal::NothingToBackfill)?;
    if BACKFILL_SLOTS_MAX < count {
        return Err(Refusal::BackfillTooLong(count));
    }
    let half = u32::try_from(terms.overlap.live_max() / 2).unwrap_or(u32::MAX).max(1);
    let at_once = asked.at_once.unwrap_or(half);
    if !(1..=half).contains(&at_once) {
        let most = format!(
            "at most {half} runs of a backfill are live at a time, half of what the overlap policy lets"
        );
        let hint = "leave `--at-once N` out for as many as may be, or let more overlap with `--overlap allow:N`";
        return Err(Refusal::invalid(&most, hint));
    }
    let begun = BackfillBegun {
        first,
        last,
        count,
        at_once,
        gap: asked.gap,
        by: actor.name.clone(),
        at: ground.now,
    };
    Ok(vec![ground.body(Event::BackfillBegun(begun))])
}

/// The first and the last slot of a backfill, and how many they are.
pub fn backfill_range(
    definition: &Definition,
    progress: &Progress,
    asked: Backfill,
) -> Option<(Timestamp, Timestamp, u64)> {
    definition.trigger.timed()?;
    let calendar = definition.calendar(None).ok()?;
    let from = asked.from.as_micros().saturating_sub(1);
    let until = asked.to.min(progress.decided_until).as_micros();
    let first = calendar.next_after(from).filter(|first| *first <= until)?;
    let last = calendar.last_until(until)?;
    let count = calendar.count(from, last);
    Some((Timestamp::from_micros(first), Timestamp::from_micros(last), count))
}

fn fire(
    ground: Ground<'_>,
    actor: &Actor,
    schedule: &Schedule,
    progress: &Progress,
    (run, key): (RunId, String),
) -> Result<Vec<Body>, Refusal> {
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) || key.chars().any(char::is_control) {
        let what = "a key has 1 to 256 bytes of printable text";
        return Err(Refusal::invalid(
            what,
            "take a new one for each run that you mean, such as a UUID",
        ));
    }
    if let Some(Fate::Run { run, .. }) = ground.fired.map(|slot| &slot.fate) {
        return Err(Refusal::Fired(run.clone()));
    }
    let terms = &schedule.definition.terms;
    check_room(terms, progress)?;
    let calendar = schedule.definition.calendar(progress.ahead.next)?;
    let tick = Tick::new(ground.id, schedule, &calendar, ground.now);
    if tick.is_out_of_budget(progress) {
        return Err(Refusal::OutOfBudget(tick.per_day(progress.day(ground.now))));
    }
    let queued = Queued {
        schedule: ground.id.clone(),
        revision: schedule.revision,
        occurrence: Occurrence::Manual { key },
        agent: schedule.definition.action.agent().cloned(),
        priority: terms.priority,
        keys: terms.keys.clone(),
        depth: 0,
        by_runner: actor.role < Role::Operator,
        at: ground.now,
    };
    Ok(vec![Body::Run(run, run::Event::Queued(queued))])
}

impl Ground<'_> {
    fn body(&self, event: Event) -> Body {
        Body::Schedule(self.id.clone(), event)
    }

    /// The slots of a definition that are not decided and will not be: another takes its place, or none.
    fn supersede(
        &self,
        schedule: &Schedule,
        progress: &Progress,
        reason: Reason,
    ) -> Result<Vec<Body>, Refusal> {
        let calendar = schedule.definition.calendar(progress.ahead.next)?;
        let tick = Tick::new(self.id, schedule, &calendar, self.now);
        let (disposition, reason) = (Disposition::Superseded, Some(reason));
        let mut bodies = Vec::new();
        for slot in &progress.waiting {
            let (slot, at, ahead) = (*slot, self.now, progress.ahead);
            let dropped = Dropped { slot, disposition, reason, into: None, at, ahead };
            bodies.push(self.body(Event::Dropped(dropped)));
        }
        if let Some((first, last)) = progress.ahead.next.and_then(|first| tick.past(first)) {
            let passed = tick.passed(first, last, disposition, Ahead::default());
            bodies.push(self.body(Event::Passed(Passed { reason, ..passed })));
        }
        Ok(bodies)
    }

    /// The first slot of a definition after an instant. One that waits for something to happen has
    /// none; any other has one, or it never fires.
    fn first_slot(
        &self,
        definition: &Definition,
        calendar: &Calendar,
        after_us: i64,
        taken: u64,
    ) -> Result<Ahead, Refusal> {
        let (id, now) = (self.id, self.now);
        let tick = Tick {
            id,
            definition,
            revision: 1,
            calendar,
            live: &[],
            decided_wall: None,
            filled: None,
            now,
        };
        let ahead = tick.ahead(after_us, taken, 0);
        let is_on_a_clock = definition.trigger.timed().is_some() || definition.again().is_some();
        match ahead.next {
            None if is_on_a_clock => Err(Refusal::NeverFires(after_us)),
            _ => Ok(ahead),
        }
    }

    fn check(&self, definition: &Definition) -> Result<(), Refusal> {
        definition.check(self.agent)?;
        let Some((upstream, _)) = definition.trigger.follows() else { return Ok(()) };
        let Some((_, _, followed)) = self.upstream.first() else {
            return Err(Refusal::Unknown(upstream.clone()));
        };
        let chain = || [self.id].into_iter().chain(self.upstream.iter().map(|(id, ..)| id));
        if let Some(place) = chain().skip(1).position(|id| id == self.id) {
            return Err(Refusal::Cycle(chain().take(place + 2).cloned().collect()));
        }
        if CHAIN_MAX < self.upstream.len() {
            return Err(Refusal::ChainTooLong);
        }
        let is_new = !followed.followers.contains(self.id);
        match is_new && FOLLOWERS_MAX <= followed.followers.len() {
            true => Err(Refusal::TooManyFollowers(upstream.clone())),
            false => Ok(()),
        }
    }
}

impl Ground<'_> {
    /// An agent adds schedules for itself, and fires and stops what is for itself; a run only adds.
    fn check_maker(&self, actor: &Actor, command: &Command) -> Result<(), Refusal> {
        let too_low = || Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator };
        if actor.is_assistant() {
            return self.check_assistant(actor, command);
        }
        let maker = self.maker.ok_or_else(too_low)?;
        match command {
            Command::Add { definition, .. }
                if maker.reaches_others && definition.action.agent().is_none() =>
            {
                Err(Refusal::CallByAgent(maker.agent.name.clone()))
            }
            Command::Add { definition, .. } if !maker.may_reach(definition) => {
                Err(Refusal::OtherAgent(maker.agent.name.clone()))
            }
            Command::Add { .. } => Ok(()),
            Command::Pause { .. } | Command::Remove | Command::Fire { .. }
                if maker.run.is_none() =>
            {
                let is_own = self.schedule.is_some_and(|it| maker.may_reach(&it.definition));
                let is_paused =
                    self.progress.is_some_and(|it| matches!(it.status, Status::Paused(_)));
                match command {
                    // What is not its own, it does not learn of.
                    _ if !is_own => Err(Refusal::Unknown(self.id.clone())),
                    // Whoever has paused it did not mean its agent to go on.
                    Command::Fire { .. } if is_paused => Err(too_low()),
                    _ => Ok(()),
                }
            }
            _ => Err(too_low()),
        }
    }
}

impl Ground<'_> {
    /// An assistant does for its person what the standing orders allow, but takes away nothing by which people
    /// hold a schedule.
    fn check_assistant(&self, actor: &Actor, command: &Command) -> Result<(), Refusal> {
        let too_low = || Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator };
        let paused_by = self.progress.and_then(|progress| match &progress.status {
            Status::Paused(pause) => Some(&pause.by),
            Status::Active | Status::Removed => None,
        });
        match command {
            Command::Backfill(_) | Command::EndBackfill => Err(too_low()),
            // What a call has paused, another may resume: people have written both into schedules.
            Command::Resume | Command::Fire { .. }
                if paused_by.is_some_and(|by| *by != actor.name && !Actor::is_call(by)) =>
            {
                Err(too_low())
            }
            // So that calls do not breed.
            Command::Add { definition, .. } | Command::Edit { definition }
                if actor.call().is_some() && definition.action.agent().is_none() =>
            {
                Err(Refusal::CallByCall)
            }
            Command::Edit { definition } => match self.schedule {
                Some(schedule) if definition.is_looser_than(&schedule.definition) => {
                    Err(Refusal::Looser)
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

impl Maker<'_> {
    fn may_reach(&self, definition: &Definition) -> bool {
        self.reaches_others || definition.action.agent() == Some(&self.agent.name)
    }

    /// So that agents cannot breed.
    fn check(self) -> Result<MadeBy, Refusal> {
        let Maker { agent, run, beside, may_add, .. } = self;
        if let Some(AtWork { id, run, schedule }) = run {
            if !may_add {
                return Err(Refusal::NotByRuns);
            }
            if !matches!(run.state, run::State::Running { .. }) {
                return Err(Refusal::NotAtWork(id.clone()));
            }
            if schedule.is_some_and(|schedule| schedule.made_by.is_some()) {
                return Err(Refusal::MadeByMade(run.schedule.clone()));
            }
            if MADE_BY_RUN_MAX <= run.schedules_made + beside {
                return Err(Refusal::MadeByRun);
            }
        }
        if MADE_BY_AGENT_MAX <= agent.schedules_made + beside {
            return Err(Refusal::MadeByAgent(agent.name.clone()));
        }
        Ok(MadeBy { run: run.map(|run| run.id.clone()), agent: agent.name.clone() })
    }
}

fn chain(ids: &[ScheduleId]) -> String {
    let names: Vec<&str> = ids.iter().map(ScheduleId::as_str).collect();
    names.join(" follows ")
}

/// Whether it makes others stand elsewhere than they are written.
fn is_reordering(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Definition {
    /// Whether something that held the other is gone.
    fn is_looser_than(&self, other: &Definition) -> bool {
        fn is_raised<T: PartialOrd>(new: Option<T>, old: Option<T>) -> bool {
            old.is_some_and(|old| new.is_none_or(|new| old < new))
        }
        let (new, old) = (&self.terms, &other.terms);
        let pauses = |terms: &Terms| Some(terms.pause_after).filter(|after| *after != 0);
        let words = (other.action.words(), self.action.words());
        let is_opened = words.0.is_sealed()
            && (!words.1.is_sealed() || self.action.agent() != other.action.agent());
        self.tier < other.tier
            || is_opened
            || is_raised(new.per_day, old.per_day)
            || is_raised(new.tokens_per_day, old.tokens_per_day)
            || is_raised(new.money_per_day, old.money_per_day)
            || is_raised(new.max_fires, old.max_fires)
            || is_raised(new.end_at, old.end_at)
            || is_raised(pauses(new), pauses(old))
    }

    fn check(&self, agent: Option<&Agent>) -> Result<(), Refusal> {
        let invalid = |what, hint| Err(Refusal::invalid(what, hint));
        let terms = &self.terms;
        if self.name.is_empty() || NAME_CHARS_MAX < self.name.chars().count() {
            return invalid(
                "the name of a schedule has 1 to 120 characters",
                "say what it is for in a few words, with `--name TEXT`",
            );
        }
        if self.name.chars().any(|c| c.is_control() || is_reordering(c)) {
            return invalid(
                "the name of a schedule is one line of printable text",
                "leave out line breaks, and characters that nobody sees",
            );
        }
        if PRIORITY_MAX < terms.priority {
            return invalid(
                "a priority is from 0 to 9",
                "5 is the default, and each step is worth a minute of waiting",
            );
        }
        if !(1..=ATTEMPTS_MAX).contains(&terms.retry.attempts) {
            return invalid("a run is tried 1 to 100 times", "`--attempts 1` tries it once");
        }
        if !(1..=BACKOFF_FACTOR_MAX).contains(&terms.retry.factor) {
            return invalid(
                "the factor of a backoff is from 1 to 10",
                "it is the middle one, as in `--backoff 1s:2:5m`",
            );
        }
        if terms.retry.cap < terms.retry.initial || BACKOFF_CAP_MAX < terms.retry.cap {
            return invalid(
                "the cap of a backoff is from its first delay to a day",
                "it is the last one, as in `--backoff 1s:2:5m`",
            );
        }
        if KEYS_MAX < terms.keys.len() {
            return invalid(
                "a schedule has at most 8 concurrency keys",
                "use one key for all that must not go on at once",
            );
        }
        if terms.per_day == Some(0) {
            return invalid(
                "a schedule runs at least once a day",
                "leave `--per-day N` out for a limit that follows from the trigger, or stop it with `midwatch schedule pause`",
            );
        }
        if terms.tokens_per_day == Some(0) || terms.money_per_day == Some(Money::ZERO) {
            return invalid(
                "a schedule that may use nothing never runs",
                "leave the limit out, or stop it with `midwatch schedule pause`",
            );
        }
        if terms.max_fires == Some(0) {
            return invalid(
                "a schedule fires at least once",
                "leave `--max-fires N` out for no limit",
            );
        }
        if let (Some(start), Some(end)) = (terms.start_at, terms.end_at)
            && end < start
        {
            return invalid(
                "a schedule ends after it starts",
                "give a later `--end-at T`, or an earlier `--start-at T`",
            );
        }
        self.action.check_words()?;
        match &self.action {
            Action::Prompt { agent: name, prompt } => {
                let agent = agent.ok_or_else(|| Refusal::UnknownAgent(name.clone()))?;
                if prompt.is_sealed() && agent.backend.shows_prompts() {
                    return Err(Refusal::Shown(name.clone()));
                }
                if self.tier.is_some_and(|tier| tier < agent.tier) {
                    return Err(Refusal::TierTooLow { agent: name.clone(), min: agent.tier });
                }
            }
            Action::Tool { tool, .. } => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                if !(1..=128).contains(&tool.len()) || !tool.chars().all(is_plain) {
                    return invalid(
                        "the name of a tool has 1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `-`",
                        "docs/mcp-tools.md lists the tools",
                    );
                }
            }
        }
        self.calendar(None).map(drop)
    }
}

/// Whether another run may be live.
pub(crate) fn check_room(terms: &Terms, progress: &Progress) -> Result<(), Refusal> {
    match progress.live.first() {
        Some(live) if terms.overlap.live_max() <= progress.live.len() => {
            Err(Refusal::Live(live.clone()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if NOTE_BYTES_MAX < note.len() => {
            Err(Refusal::invalid("a note has at most 1024 bytes", "say it in fewer words"))
        }
        _ => Ok(()),
    }
}
