//! Every rule about runs: what people may ask of one, and what becomes of its tries.

use super::decision::{Task, circumstances, judged};
use super::event::{Ended, Event, Requeued, Retried, Settled, Started};
use super::{CANCELLED, Cancel, Cause, Lack, OUTPUT_BYTES_MAX, Outcome, Output, Run, State};
use crate::actor::{Actor, Role};
use crate::agent::Agent;
use crate::approval::{
    self, APPROVE_WITHIN_US, Approval, Asked, Consumed, Decision, Footing, Hashes, Lapse, Lapsed,
    Looked, Plan, Uncovered,
};
use crate::authority::{Authority, Lease, Step};
use crate::backend::Tier;
use crate::budget::{Charge, Hold, Limits, Spent, Usage, charge, day, expected};
use crate::event::Body;
use crate::id::{ApprovalId, RunId};
use crate::posture::Trust;
use crate::progress::{Progress, Status};
use crate::ruling::{Circumstances, Details, Request, Ruling, Verdict};
use crate::schedule::trigger::Since;
use crate::schedule::{self, Action, Definition, Moved, MovedWhy, check_note, check_room};
use crate::tables::Counter;
use crate::tick::Tick;
use crate::time::Timestamp;
use crate::tool::Called;

/// Who does what nobody asked for.
pub(crate) const WATCH: &str = "midwatch";
const REPLACED: &str = "a newer slot takes its place";
/// However long somebody asks us to wait.
pub const WAIT_US_MAX: i64 = 60 * 60 * 1_000_000;
/// How long after it began a call of a tool may be repeated: the answer to its key is kept for a week, and
/// without it nobody can tell any more whether it took effect.
const CALLED_AGAIN_US_MAX: i64 = 6 * 86_400 * 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Cancel { note: Option<String> },
    Retry,
    Settle { outcome: Outcome, note: Option<String> },
}

/// How a try ended, as the one who worked on it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub result: Result<(), Failure>,
    pub output: Option<Output>,
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    pub kind: Kind,
}

/// What is known of a try that failed, and so what another one can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing came of it, and another may help, after so long at the earliest.
    Passing { wait_us: i64 },
    /// Another cannot help.
    Permanent,
    /// Nobody pays for it any more: neither another try nor the next run can help.
    Unpaid,
    /// It took effect and failed nevertheless: another would take effect again.
    Delivered,
    /// Whether it took effect is not known.
    Doubtful,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    #[error("run `{id}` is {state}, and only a run that {needed} can be {done}")]
    Wrong { id: RunId, state: &'static str, needed: &'static str, done: &'static str },
    #[error("run `{0}` is another's by now")]
    Stale(RunId),
    #[error(transparent)]
    Schedule(#[from] schedule::Refusal),
}

/// A run and what belongs to it, when something about it is decided.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub id: &'a RunId,
    pub run: &'a Run,
    pub definition: Option<&'a Definition>,
    pub progress: Option<&'a Progress>,
    pub now: Timestamp,
}

/// What the standing orders are, when a run is to begin.
#[expect(missing_debug_implementations, reason = "it is mostly functions")]
pub struct Orders<'a> {
    /// Of the watch.
    pub instance: &'a str,
    /// Of its data directory, if the log is there.
    pub place: Option<&'a str>,
    pub authority: &'a Authority,
    pub lease: Lease,
    /// What the clock shows, which the log may be ahead of.
    pub clock: Timestamp,
    pub judge: &'a dyn Fn(&Request) -> Ruling,
    pub hash: &'a dyn Fn(&Plan) -> Hashes,
    /// The one that the run names.
    pub approval: Option<&'a Approval>,
    /// Whether what was said to it carries a signature that holds now.
    pub is_signed: &'a dyn Fn(&Decision) -> bool,
    pub new_approval: &'a dyn Fn() -> ApprovalId,
    /// Who wrote the schedule.
    pub authors: &'a [String],
    pub limits: &'a Limits,
    /// What the schedule's call of a tool comes to now, or why it cannot be made; nothing where it prompts.
    pub called: Option<&'a Result<Called, Cause>>,
    /// What counters of budgets show, as far as somebody has looked.
    pub used: &'a [(Counter, i64)],
    /// What posture and flags leave.
    pub trust: Trust,
    /// What rules can narrow their view to, of an agent.
    pub details: &'a dyn Fn(&Agent) -> Details,
    /// What was seen of the machine, if somebody has looked. Nobody is asked, and no answer is used, before.
    pub looked: Option<&'a Looked>,
    /// Other questions about runs of the schedule.
    pub questions: &'a [(&'a ApprovalId, &'a Approval)],
}

/// Every rule about what people ask of a run. Nothing happens when it is so already.
pub fn decide(ground: Ground<'_>, actor: &Actor, command: Command) -> Result<Vec<Body>, Refusal> {
    let is_for_people = matches!(command, Command::Settle { .. });
    if actor.role < Role::Operator && (is_for_people || !actor.is_assistant()) {
        let needed = Role::Operator;
        return Err(schedule::Refusal::RoleTooLow { actor: actor.clone(), needed }.into());
    }
    let Ground { id, run, now, .. } = ground;
    let wrong = |needed, done| {
        Err(Refusal::Wrong { id: id.clone(), state: run.state.name(), needed, done })
    };
    let by = actor.name.clone();
    match (command, &run.state) {
        (Command::Cancel { note }, State::Queued { .. } | State::Parked) => {
            check_note(note.as_deref())?;
            let cause = cancelled_by(&by, note.as_deref());
            Ok(ground.ended(Outcome::Cancelled, Some(cause), Left::default()))
        }
        (Command::Cancel { note }, State::Running { .. }) => {
            check_note(note.as_deref())?;
            let cancel = Cancel { by, note, at: now };
            let is_new = run.cancel.is_none();
            Ok(is_new.then(|| ground.body(Event::CancelAsked(cancel))).into_iter().collect())
        }
        (Command::Cancel { .. }, State::Ended(Outcome::Cancelled)) => Ok(Vec::new()),
        (Command::Cancel { .. }, State::Ended(_)) => wrong("has not ended", "cancelled"),
        (Command::Retry, State::Ended(Outcome::Failed | Outcome::Cancelled)) => {
            let Some(definition) = ground.definition else {
                return Err(schedule::Refusal::Unknown(run.schedule.clone()).into());
            };
            if let Some(progress) = ground.progress {
                check_room(&definition.terms, progress)?;
            }
            let (schedule, by_runner) = (run.schedule.clone(), actor.role < Role::Operator);
            let requeued = Requeued { schedule, by, by_runner, attempts: run.attempt, at: now };
            Ok(vec![ground.body(Event::Requeued(requeued))])
        }
        (Command::Retry, _) => wrong("has failed or was cancelled", "tried again"),
        (Command::Settle { outcome: Outcome::Unknown, .. }, _) => {
            let said = "a run is settled as done, failed or cancelled";
            Err(schedule::Refusal::invalid(said, "look at what it was to do, and say what you see")
                .into())
        }
        (Command::Settle { outcome, note }, State::Ended(Outcome::Unknown)) => {
            check_note(note.as_deref())?;
            let doubt = run.cause.as_ref().map_or(run.state.name(), |cause| &cause.code);
            let doubt = Some(doubt.to_owned());
            Ok(vec![ground.body(Event::Settled(Settled { outcome, by, note, doubt, at: now }))])
        }
        (Command::Settle { outcome, .. }, State::Ended(ended))
            if run.settled_by.is_some() && outcome == *ended =>
        {
            Ok(Vec::new())
        }
        (Command::Settle { .. }, _) => wrong("ended unknown", "settled"),
    }
}

/// Begins a try: from here on its effect may happen. A run that has nothing to do any more ends.
/// Nothing, if it is not to be begun. The clock may be behind the log, by which the rest is decided.
pub fn start(
    ground: Ground<'_>,
    agent: Option<&Agent>,
    holder: &str,
    orders: &Orders<'_>,
    clock: Timestamp,
) -> Vec<Body> {
    let Ground { run, now, .. } = ground;
    match run.state {
        // Nobody waits for a time again that a clock has shown already.
        State::Queued { from } if from <= now || clock < run.waits_since() => {}
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            return Vec::new();
        }
    }
    if orders.authority.frozen.is_some() {
        return Vec::new();
    }
    let Some(definition) = ground.definition else {
        let cause = Cause::new("schedule_removed", "its schedule was removed before it began");
        return ground.ended(Outcome::Cancelled, Some(cause), Left::default());
    };
    // A run is begun with the agent that it was queued for, or not at all.
    let agent = agent.filter(|agent| run.agent.as_ref() == Some(&agent.name));
    let task = match Task::of(&run.schedule, definition, agent, orders) {
        Ok(task) => task,
        Err(cause) => return ground.failed(cause, Left::default()),
    };
    let (agent, tier) = (task.agent(), task.tier);
    let name = agent.map(|agent| &agent.name);
    let facts = orders.facts(run, definition, &task, now);
    let ruling = judged(&task.request, facts.lease, orders.judge);
    let circumstances = Some(Box::new(circumstances(&task.request, facts.clone())));
    let ruled = |ruling| Some(Ruled { ruling, tier, circumstances: circumstances.clone() });
    if facts.lease == Step::Paused {
        return ground.without_lease(ruled(ruling));
    }
    let plan = |ruling: &Ruling, footing: &Option<Footing>| Plan {
        instance: orders.instance.to_owned(),
        place: orders.place.map(str::to_owned),
        run: ground.id.clone(),
        schedule: run.schedule.clone(),
        revision: ground.progress.map_or(run.revision, |progress| progress.revision),
        attempt: run.attempt + 1,
        agent: name.cloned(),
        backend: agent.map(|agent| agent.backend.clone()),
        credential: agent.and_then(|agent| agent.credential.clone()),
        tool: task.planned_tool(),
        prompt: task.words.clone(),
        tier,
        policy: ruling.policy.clone(),
        footing: footing.clone(),
    };
    let started = |ruling: Ruling| {
        ground.body(Event::Started(Started {
            epoch: run.epoch + 1,
            attempt: run.attempt + 1,
            holder: holder.to_owned(),
            repeatable: task.is_repeatable(),
            tier,
            ruling: Some(ruling),
            circumstances: circumstances.clone(),
            charge: charge(name, tier, now),
            hold: agent.and_then(|agent| ground.hold(definition, agent, orders.limits)),
            price: agent.map(|agent| agent.price).unwrap_or_default(),
            at: now,
        }))
    };
    let looked = match (ruling.verdict, orders.looked) {
        (Verdict::Ask, None) => return Vec::new(),
        (_, looked) => looked.unwrap_or(&Ok(None)),
    };
    match (ruling.verdict, &run.approval) {
        (Verdict::Deny, _) => {
            let by = ruling.rules.first().map(|rule| format!(": `{rule}`")).unwrap_or_default();
            let cause = Cause::new("refused", &format!("the standing orders do not allow it{by}"));
            ground.refused(cause, ruled(ruling), Some(Lapse::RunEnded))
        }
        (Verdict::Allow, None) => vec![started(ruling)],
        (Verdict::Allow, Some(_)) => {
            ground.lapse(Lapse::NotNeeded).into_iter().chain([started(ruling)]).collect()
        }
        (Verdict::Ask, None) => {
            // Nobody is asked about what cannot be done.
            let footing = match looked {
                Ok(footing) => footing,
                Err(cause) => return ground.failed(cause.clone(), Left::default()),
            };
            let plan = plan(&ruling, footing);
            let hashes = (orders.hash)(&plan);
            if let Some(agent) = agent.filter(|it| it.is_silenced() && !run.is_by_hand()) {
                let what =
                    format!("the last {} questions about agent `{}`", agent.denials, agent.name);
                let cause = Cause::new("denied_often", &format!("{what} were denied"));
                return ground.refused(cause, ruled(ruling), None);
            }
            if ground.was_denied(&hashes.action, orders.limits.denied_for_us) {
                let cause = Cause::new("denied_before", "a human has denied the same before");
                return ground.refused(cause, ruled(ruling), None);
            }
            if let Some(cause) = orders.asked_already(&hashes.action, now) {
                return ground.refused(cause, ruled(ruling), None);
            }
            let asked = Asked {
                plan,
                plan_hash: hashes.plan,
                action_hash: Some(hashes.action),
                request: task.request.clone(),
                facts: Some(facts),
                ruling,
                authors: orders.authors.to_vec(),
                charge: name.map(|name| Charge { agent: Some(name.clone()), day: day(now) }),
                approve_by: now.after_us(APPROVE_WITHIN_US),
                at: now,
            };
            vec![Body::Approval((orders.new_approval)(), approval::Event::Asked(Box::new(asked)))]
        }
        (Verdict::Ask, Some(id)) => {
            let covered = match (orders.approval, looked) {
                (Some(approval), Ok(footing)) => {
                    let plan = plan(&ruling, footing);
                    let hash = (orders.hash)(&plan).plan;
                    approval.covers((&plan, &hash), orders.is_signed, now)
                }
                (Some(_), Err(cause)) => Err(Uncovered::impossible(cause)),
                (None, _) => Err(Uncovered {
                    why: Lapse::RunEnded,
                    cause: Cause::new("refused", "there is no such approval"),
                    changed: Vec::new(),
                }),
            };
            match covered {
                Ok(()) => {
                    let (run, epoch) = (ground.id.clone(), run.epoch + 1);
                    let consumed = approval::Event::Consumed(Consumed { run, epoch, at: now });
                    vec![Body::Approval(id.clone(), consumed), started(ruling)]
                }
                Err(Uncovered { why, cause, changed }) => {
                    let lapsed = ground.lapse_by(why, changed);
                    let ended = ground.refused(cause, ruled(ruling), None);
                    lapsed.into_iter().chain(ended).collect()
                }
            }
        }
    }
}

/// Ends a run that could not begin because as many have begun today as may.
pub fn starve(ground: Ground<'_>, what: &str) -> Vec<Body> {
    match ground.run.state {
        State::Queued { .. } => {
            let ended = ground.not_begun(Cause::new("budget_used_up", what), None);
            let ended = Ended { lacking: Some(Lack::Budget), ..ended };
            ground.over(Some(Lapse::RunEnded), ended)
        }
        State::Parked | State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a run that may not ask a human, as its agent has asked too much.
pub fn hush(ground: Ground<'_>, what: &str) -> Vec<Body> {
    match ground.run.state {
        State::Queued { .. } => {
            ground.refused(Cause::new("asked_too_much", what), None, Some(Lapse::RunEnded))
        }
        State::Parked | State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a run that a human has denied, and remembers what that was.
pub(crate) fn deny(ground: Ground<'_>, cause: Cause, action: Option<String>) -> Vec<Body> {
    match ground.run.state {
        State::Parked | State::Queued { .. } => {
            let ended = ground.not_begun(cause, None);
            ground.over(None, Ended { denied: action, ..ended })
        }
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a run that waits for an approval which it does not get.
pub(crate) fn refuse(ground: Ground<'_>, cause: Cause) -> Vec<Body> {
    match ground.run.state {
        State::Parked | State::Queued { .. } => ground.refused(cause, None, None),
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// What a report leads to. `epoch` is that of the try which it is about.
pub fn finish(
    ground: Ground<'_>,
    epoch: u32,
    report: Report,
    random: u64,
) -> Result<Vec<Body>, Refusal> {
    let Ground { run, now, .. } = ground;
    ground.check_held(epoch)?;
    let Report { result, output, usage } = report.within_limits();
    let is_known = match &result {
        Ok(()) => true,
        Err(Failure { kind: Kind::Passing { .. } | Kind::Permanent | Kind::Unpaid, .. }) => {
            run.cancel.is_none()
        }
        Err(Failure { kind: Kind::Delivered | Kind::Doubtful, .. }) => false,
    };
    let left = match is_known || usage.is_some() {
        true => Left { output, spent: ground.spent(usage), frees: run.hold.clone(), refund: None },
        false => Left { output, ..Left::default() },
    };
    // Cancel wins unless the end was committed first.
    if let Some(cancel) = &run.cancel {
        let cause = cancel.cause();
        return Ok(ground.ended(Outcome::Cancelled, Some(cause), left));
    }
    let Failure { cause, kind } = match result {
        Ok(()) => return Ok(ground.ended(Outcome::Done, None, left)),
        Err(failure) => failure,
    };
    let may_repeat = matches!(run.state, State::Running { repeatable: true, .. });
    let wait_us = match kind {
        Kind::Passing { wait_us } => Some(wait_us.clamp(0, WAIT_US_MAX)),
        Kind::Delivered | Kind::Doubtful if may_repeat => Some(0),
        Kind::Doubtful => return Ok(ground.ended(Outcome::Unknown, Some(cause), left)),
        Kind::Delivered | Kind::Permanent => None,
        Kind::Unpaid => return Ok(ground.unpaid(cause, left)),
    };
    let retry = ground.definition.map(|definition| definition.terms.retry);
    match retry.filter(|retry| run.tries() < retry.attempts).zip(wait_us) {
        Some((retry, wait_us)) => Ok(vec![ground.body(Event::Retried(Retried {
            epoch,
            cause,
            output: left.output,
            uncounted: false,
            refund: None,
            spent: left.spent,
            frees: left.frees,
            from: now.after_us(retry.delay_us(run.tries(), random).max(wait_us)),
            at: now,
        }))]),
        None => Ok(ground.failed(cause, left)),
    }
}

/// Puts back a run that its holder has begun and then done nothing about.
pub fn give_back(ground: Ground<'_>, holder: &str) -> Vec<Body> {
    let run = ground.run;
    match &run.state {
        State::Running { holder: held_by, .. } if held_by == holder && run.cancel.is_some() => {
            let (refund, frees) = (run.charge.clone(), run.hold.clone());
            let left = Left { refund, frees, ..Left::default() };
            ground.ended(Outcome::Cancelled, run.cancel.as_ref().map(Cancel::cause), left)
        }
        State::Running { holder: held_by, .. } if held_by == holder => {
            let cause = Cause::new("not_begun", "it was given back before anything was done");
            vec![ground.again(cause, run.charge.clone(), run.hold.clone())]
        }
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            Vec::new()
        }
    }
}

/// What becomes of a try that its own process had to break off.
pub fn interrupt(ground: Ground<'_>, epoch: u32) -> Result<Vec<Body>, Refusal> {
    ground.check_held(epoch)?;
    Ok(match ground.run.state {
        State::Running { repeatable: true, .. } if ground.run.cancel.is_none() => {
            let cause = Cause::new("stopped", "the watch stopped, and it may be done twice");
            vec![ground.again(cause, None, None)]
        }
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            recover(ground)
        }
    })
}

/// What becomes of a run that a process has left behind. Nothing, if it was not at work on it.
pub fn recover(ground: Ground<'_>) -> Vec<Body> {
    let Ground { run, now, .. } = ground;
    let State::Running { repeatable, .. } = run.state else { return Vec::new() };
    if !repeatable || ground.was_called_long_ago() {
        let cause = Cause::new(
            "interrupted",
            "it was cut off after it had begun; whether it took effect is not known",
        );
        return ground.ended(Outcome::Unknown, Some(cause), Left::default());
    }
    if let Some(cancel) = &run.cancel {
        let cause = cancel.cause();
        return ground.ended(Outcome::Cancelled, Some(cause), Left::default());
    }
    // It may be what brings the watch down.
    let retry = ground.definition.map(|definition| definition.terms.retry);
    if retry.is_some_and(|retry| retry.attempts <= run.tries()) {
        let cause = Cause::new("interrupted", "it was cut off as often as it may be tried");
        return ground.failed(cause, Left::default());
    }
    let cause = Cause::new("interrupted", "it was cut off, and may be done twice");
    let retried = Retried {
        epoch: run.epoch,
        cause,
        output: None,
        uncounted: false,
        refund: None,
        spent: None,
        frees: None,
        from: now,
        at: now,
    };
    vec![ground.body(Event::Retried(retried))]
}

/// Asks a live run to make room for a newer slot.
pub(crate) fn replace(ground: Ground<'_>) -> Vec<Body> {
    match ground.run.state {
        State::Queued { .. } | State::Parked => {
            ground.ended(Outcome::Cancelled, Some(replaced()), Left::default())
        }
        State::Running { .. } if ground.run.cancel.is_none() => {
            let (by, note) = (WATCH.to_owned(), Some(REPLACED.to_owned()));
            vec![ground.body(Event::CancelAsked(Cancel { by, note, at: ground.now }))]
        }
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Takes a live run from whoever works on it; what they say about it does not count any more.
pub(crate) fn terminate(ground: Ground<'_>) -> Vec<Body> {
    match ground.run.state {
        State::Running { repeatable: false, .. } => {
            let cause = Cause::new(
                "terminated",
                "a newer slot took its place after it had begun; whether it took effect is not known",
            );
            ground.ended(Outcome::Unknown, Some(cause), Left::default())
        }
        State::Queued { .. } | State::Parked | State::Running { .. } => {
            ground.ended(Outcome::Cancelled, Some(replaced()), Left::default())
        }
        State::Ended(_) => Vec::new(),
    }
}

impl Report {
    /// Whoever works on a run may say too much.
    fn within_limits(self) -> Report {
        let shorten = |cause: Cause| Cause::new(&cause.code, &cause.message);
        let result =
            self.result.map_err(|failure| Failure { cause: shorten(failure.cause), ..failure });
        let output = self.output.map(|mut output| {
            output.text.cut(OUTPUT_BYTES_MAX);
            output
        });
        Report { result, output, usage: self.usage }
    }
}

/// What a try leaves behind, however it ended. What it does not free is held back for good.
#[derive(Debug, Default)]
struct Left {
    output: Option<Output>,
    spent: Option<Spent>,
    frees: Option<Hold>,
    /// What it is not counted for, as it did nothing.
    refund: Option<Charge>,
}

/// What the standing orders said of a run, and what they were told.
#[derive(Debug)]
struct Ruled {
    ruling: Ruling,
    tier: Tier,
    circumstances: Option<Box<Circumstances>>,
}

impl Orders<'_> {
    /// Why nobody is asked about an action, if somebody has the same question before them.
    fn asked_already(&self, action: &str, now: Timestamp) -> Option<Cause> {
        let mut questions = self.questions.iter();
        let (id, _) = questions.find(|(_, question)| question.asks(action, now))?;
        let what = format!("approval `{id}` asks the same, and nobody has answered it yet");
        Some(Cause::new("asked_already", &what))
    }
}

impl Ground<'_> {
    /// Refuses what is said of another try than the one at work.
    fn check_held(&self, epoch: u32) -> Result<(), Refusal> {
        let is_at_work = matches!(self.run.state, State::Running { .. });
        match is_at_work && self.run.epoch == epoch {
            true => Ok(()),
            false => Err(Refusal::Stale(self.id.clone())),
        }
    }

    /// Whether its work is a call whose answer may be forgotten by now.
    fn was_called_long_ago(&self) -> bool {
        let is_call = self.definition.is_some_and(|it| matches!(it.action, Action::Tool { .. }));
        let since =
            self.run.started_at.map(|at| self.now.as_micros().saturating_sub(at.as_micros()));
        is_call && since.is_some_and(|since| CALLED_AGAIN_US_MAX < since)
    }

    fn body(&self, event: Event) -> Body {
        Body::Run(self.id.clone(), event)
    }

    /// Another try at once, for which this one does not count.
    fn again(&self, cause: Cause, refund: Option<Charge>, frees: Option<Hold>) -> Body {
        self.body(Event::Retried(Retried {
            epoch: self.run.epoch,
            cause,
            output: None,
            uncounted: true,
            refund,
            spent: None,
            frees,
            from: self.now,
            at: self.now,
        }))
    }

    fn ended(&self, outcome: Outcome, cause: Option<Cause>, left: Left) -> Vec<Body> {
        let ended = Ended {
            schedule: self.run.schedule.clone(),
            outcome,
            cause,
            output: left.output,
            no_room: self.leaves_no_room(),
            ruling: None,
            tier: None,
            circumstances: None,
            refused: false,
            lacking: None,
            denied: None,
            refund: left.refund,
            spent: left.spent,
            frees: left.frees,
            at: self.now,
        };
        self.over(Some(Lapse::RunEnded), ended)
    }

    /// What a try is expected to use that begins now, if that is something.
    fn hold(&self, definition: &Definition, agent: &Agent, limits: &Limits) -> Option<Hold> {
        let last = self.progress.and_then(|progress| progress.usage);
        let (tokens, money) = expected(last, agent, &definition.terms, limits);
        let (agent, schedule) = (agent.name.clone(), self.run.schedule.clone());
        let hold = Hold { agent, schedule, day: day(self.now), tokens, money };
        (0 < tokens || !money.is_zero()).then_some(hold)
    }

    /// What was used and what it costs, as far as that is something, and what that is counted for.
    fn spent(&self, usage: Option<Usage>) -> Option<Spent> {
        let agent = self.run.agent.clone()?;
        let cost = self.run.price.cost(usage.unwrap_or_default());
        let schedule = Some(self.run.schedule.clone());
        let spent = Spent { agent, schedule, day: day(self.now), usage, cost };
        (usage.is_some() || !cost.is_zero()).then_some(spent)
    }

    /// It was not let begin. `lapse` is why its approval is not open any more, unless that is known.
    fn refused(&self, cause: Cause, ruled: Option<Ruled>, lapse: Option<Lapse>) -> Vec<Body> {
        self.over(lapse, self.not_begun(cause, ruled))
    }

    fn without_lease(&self, ruled: Option<Ruled>) -> Vec<Body> {
        let what = "no human has renewed the lease of the watch for too long";
        let ended = self.not_begun(Cause::new("lease_ended", what), ruled);
        self.over(Some(Lapse::RunEnded), Ended { lacking: Some(Lack::Lease), ..ended })
    }

    fn not_begun(&self, cause: Cause, ruled: Option<Ruled>) -> Ended {
        let (ruling, tier, circumstances) = match ruled {
            Some(Ruled { ruling, tier, circumstances }) => {
                (Some(ruling), Some(tier), circumstances)
            }
            None => (None, None, None),
        };
        Ended {
            schedule: self.run.schedule.clone(),
            outcome: Outcome::Cancelled,
            cause: Some(cause),
            output: None,
            no_room: self.leaves_no_room(),
            ruling,
            tier,
            circumstances,
            refused: true,
            lacking: None,
            denied: None,
            refund: None,
            spent: None,
            frees: None,
            at: self.now,
        }
    }

    /// Whether a human has denied the same not long ago. Somebody who starts it by hand, or again, wants
    /// to be asked.
    fn was_denied(&self, action: &str, within_us: i64) -> bool {
        let denied = self.progress.and_then(|progress| progress.denied.as_ref());
        let is_same = |at: Timestamp| self.now < at.after_us(within_us);
        !self.run.is_by_hand() && denied.is_some_and(|it| it.action == action && is_same(it.at))
    }

    fn over(&self, lapse: Option<Lapse>, ended: Ended) -> Vec<Body> {
        let lapsed = lapse.and_then(|why| self.lapse(why));
        let ended = [self.body(Event::Ended(ended))].into_iter().chain(self.next_after_this());
        lapsed.into_iter().chain(ended).collect()
    }

    fn leaves_no_room(&self) -> bool {
        self.definition.zip(self.progress).is_some_and(|(definition, progress)| {
            let others = progress.live.iter().filter(|live| *live != self.id).count();
            definition.terms.overlap.live_max() <= others
        })
    }

    /// Nobody waits for the approval any more, if there is one.
    fn lapse(&self, why: Lapse) -> Option<Body> {
        self.lapse_by(why, Vec::new())
    }

    /// The same, because of parts of its footing if there are any.
    fn lapse_by(&self, why: Lapse, changed: Vec<String>) -> Option<Body> {
        let (run, frees) = (self.id.clone(), self.run.asking.clone());
        let lapsed = Lapsed { run, why, by: None, frees, changed, at: self.now };
        let id = self.run.approval.clone()?;
        Some(Body::Approval(id, approval::Event::Lapsed(lapsed)))
    }

    /// A schedule that goes by the end of its own last run has its next slot now.
    fn next_after_this(&self) -> Option<Body> {
        let (definition, progress) = self.definition.zip(self.progress)?;
        definition.again().filter(|(_, since)| *since == Since::Finish)?;
        let is_last = progress.live.iter().all(|live| live == self.id);
        let is_idle = progress.ahead.next.is_none() && progress.waiting.is_empty();
        let calendar = definition.calendar(None).ok()?;
        let (id, revision, now) = (&self.run.schedule, progress.revision, self.now);
        let tick = Tick {
            id,
            definition,
            revision,
            calendar: &calendar,
            live: &[],
            decided_wall: None,
            filled: None,
            now,
        };
        let ahead = tick.ahead(now.max(progress.decided_until).as_micros(), progress.taken(), 0);
        let moved = Moved { why: MovedWhy::Finished, at: now, ahead };
        (is_last && is_idle && ahead.next.is_some())
            .then(|| Body::Schedule(id.clone(), schedule::Event::Moved(moved)))
    }

    /// It has failed for good, and with it perhaps the schedule.
    fn failed(&self, cause: Cause, left: Left) -> Vec<Body> {
        let ended = self.ended(Outcome::Failed, Some(cause), left);
        ended.into_iter().chain(self.pause_after_failures()).collect()
    }

    /// It has failed, and so will all that follow until somebody pays.
    fn unpaid(&self, cause: Cause, left: Left) -> Vec<Body> {
        let ended = self.ended(Outcome::Failed, Some(cause), left);
        let note = "nobody pays for its agent any more: resume it when somebody does";
        let paused = self.may_pause().map(|_| self.paused(note.to_owned()));
        ended.into_iter().chain(paused).collect()
    }

    /// Stops a schedule that only burns money.
    fn pause_after_failures(&self) -> Option<Body> {
        let (limit, progress) = self.may_pause()?;
        let failures = progress.failures + 1;
        (limit <= failures).then(|| {
            self.paused(match failures {
                1 => "the last run failed".to_owned(),
                _ => format!("the last {failures} runs failed"),
            })
        })
    }

    /// After how many failures its schedule is paused, if it is one that ever is and goes on now.
    fn may_pause(&self) -> Option<(u32, &Progress)> {
        let limit = self.definition?.terms.pause_after;
        let progress = self.progress.filter(|progress| progress.status == Status::Active)?;
        (0 < limit).then_some((limit, progress))
    }

    fn paused(&self, note: String) -> Body {
        let paused = schedule::Paused { by: WATCH.to_owned(), note: Some(note), at: self.now };
        Body::Schedule(self.run.schedule.clone(), schedule::Event::Paused(paused))
    }
}

impl Cancel {
    fn cause(&self) -> Cause {
        cancelled_by(&self.by, self.note.as_deref())
    }
}

fn replaced() -> Cause {
    cancelled_by(WATCH, Some(REPLACED))
}

fn cancelled_by(by: &str, note: Option<&str>) -> Cause {
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    Cause::new(CANCELLED, &format!("{by} cancelled it{note}"))
}
