//! The queues of runs, and the permits that they share.
//!
//! Runs of one agent with the same concurrency keys form a queue. A run starts once it gets a permit of everything it needs, or
//! none: of its agent, which has a concurrency limit; of each of its keys, which has a limit of its own; and of its agent's
//! conversation, which one run uses at a time. Within a queue, the run that has waited longest is first, and one step of
//! priority counts as one minute of waiting.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use agents::LiveOutput;
use kernel::agent::AgentName;
use kernel::backend::BackendKind;
use kernel::run::{Run, State};
use kernel::schedule::terms::Key;
use kernel::{Actor, ApprovalId, RunId, ScheduleId, Timestamp};
use tokio_util::sync::CancellationToken;

/// The concurrency limit of an agent that is not known yet.
const CONCURRENCY_DEFAULT: usize = 1;
/// Runs that run at a time, of all agents.
pub(super) const CLAIMED_MAX: usize = 256;
/// Waiting time that one step of priority is worth.
const PRIORITY_STEP_US: i64 = 60_000_000;

/// A run with permits of everything it needs.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub id: RunId,
    pub schedule: ScheduleId,
    pub agent: Option<AgentName>,
    /// The approval that lets it start, if it needs one.
    pub approval: Option<ApprovalId>,
    pub cancel: CancellationToken,
    pub live_output: LiveOutput,
    pub pending_cancel: PendingCancel,
}

/// A request to cancel a run.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation {
    pub by: Actor,
    pub note: Option<String>,
}

/// A cancellation that is not recorded yet. Clones belong to the same run.
pub(crate) type PendingCancel = Arc<OnceLock<Cancellation>>;

#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Runs are queued only once recovery has begun.
    pub(super) is_open: bool,
    /// The ledger says that the installation is frozen.
    pub(super) is_frozen: bool,
    /// This process is stopped, and the ledger may not say so yet.
    pub(super) is_stopped: bool,
    /// The clock is not trusted.
    pub(super) is_clock_wrong: bool,
    /// The one position of each run.
    pub(super) positions: HashMap<RunId, Position>,
    /// By the time at which they may start.
    pub(super) delayed: BTreeSet<(Timestamp, RunId)>,
    /// The latest time at which one of them was queued.
    delayed_since: Option<Timestamp>,
    pub(super) queues: HashMap<Arc<QueueKey>, Queue>,
    pub(super) queues_by_resource: HashMap<Resource, BTreeSet<Arc<QueueKey>>>,
    agents: HashMap<AgentName, AgentLimits>,
    pub(super) agents_by_conversation: HashMap<String, BTreeSet<AgentName>>,
    /// Permits in use.
    pub(super) in_use: HashMap<Resource, usize>,
    /// Queues with a run that can start, each in turn.
    ready: VecDeque<Arc<QueueKey>>,
    pub(super) claimed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentLimits {
    pub(super) concurrency_max: usize,
    /// The conversation that the agent continues, in which one run speaks at a time.
    pub(super) conversation: Option<String>,
    pub(super) backend: Option<BackendKind>,
}

/// What the runs of a queue need.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueKey {
    pub(super) agent: Option<AgentName>,
    pub(super) keys: Vec<Key>,
}

/// Something of which runs need a permit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    Agent(Option<AgentName>),
    Key(String),
    Conversation(String),
}

#[derive(Debug)]
pub(super) enum Position {
    /// Not before this time.
    Delayed(Timestamp, QueuedRun),
    Queued(QueuedRun),
    Claimed {
        schedule: ScheduleId,
        permits: Vec<Resource>,
        cancel: CancellationToken,
        live_output: LiveOutput,
        pending_cancel: PendingCancel,
        /// Queued again as soon as it is released.
        requeued: Option<(Timestamp, QueuedRun)>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct QueuedRun {
    schedule: ScheduleId,
    requirements: Arc<QueueKey>,
    /// The lowest starts first.
    rank: i64,
    /// When it was queued.
    since: Timestamp,
    approval: Option<ApprovalId>,
}

/// How many runs of a kind wait, and since when the oldest at the front of a queue does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingRuns {
    pub count: usize,
    pub since: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// By rank.
    waiting: BTreeSet<(i64, RunId)>,
    is_ready: bool,
}

impl Queues {
    pub(super) fn update(&mut self, id: &RunId, run: &Run) {
        let queued = match run.state {
            State::Queued { from } => {
                let rank = from.as_micros() - i64::from(run.priority) * PRIORITY_STEP_US;
                let requirements = QueueKey { agent: run.agent.clone(), keys: run.keys.clone() };
                let (schedule, requirements) = (run.schedule.clone(), Arc::new(requirements));
                let (since, approval) = (run.waiting_since(), run.approval.clone());
                Some((from, QueuedRun { schedule, requirements, rank, since, approval }))
            }
            State::Parked | State::Running { .. } | State::Ended(_) => None,
        };
        if let Some(Position::Claimed { requeued, cancel, .. }) = self.positions.get_mut(id) {
            // The run has ended, so nothing more of it counts.
            if matches!(run.state, State::Ended(_)) {
                cancel.cancel();
            }
            *requeued = queued;
            return;
        }
        self.remove(id);
        if let Some((from, waiting)) = queued.filter(|_| self.is_open) {
            self.delay(id, from, waiting);
        }
    }

    /// Returns whether anything changed. `None` removes the agent.
    pub(super) fn set_agent(&mut self, agent: &AgentName, limits: Option<AgentLimits>) -> bool {
        if self.agents.get(agent) == limits.as_ref() {
            return false;
        }
        let conversation_of = |limits: &AgentLimits| limits.conversation.clone();
        if let Some(conversation) = limits.as_ref().and_then(conversation_of) {
            self.agents_by_conversation.entry(conversation).or_default().insert(agent.clone());
        }
        let before = match limits {
            Some(limits) => self.agents.insert(agent.clone(), limits),
            None => self.agents.remove(agent),
        };
        let now = self.agents.get(agent).and_then(conversation_of);
        let left =
            before.as_ref().and_then(conversation_of).filter(|left| Some(left) != now.as_ref());
        if let Some(left) = left
            && let Some(others) = self.agents_by_conversation.get_mut(&left)
        {
            others.remove(agent);
            if others.is_empty() {
                self.agents_by_conversation.remove(&left);
            }
        }
        self.wake(&Resource::Agent(Some(agent.clone())));
        true
    }

    pub(super) fn backend_of(&self, agent: &AgentName) -> Option<BackendKind> {
        self.agents.get(agent)?.backend
    }

    /// Those of agents, and those that call a tool. It looks only at the front of each queue, however many runs wait.
    pub(super) fn waiting(&self) -> [WaitingRuns; 2] {
        let (mut agents, mut tools) = (WaitingRuns::default(), WaitingRuns::default());
        for (requirements, queue) in &self.queues {
            let runs = if requirements.agent.is_some() { &mut agents } else { &mut tools };
            runs.count += queue.waiting.len();
            let first = queue.waiting.first().and_then(|(_, id)| self.positions.get(id));
            let since = match first {
                Some(Position::Queued(run)) => Some(run.since),
                Some(Position::Delayed(..) | Position::Claimed { .. }) | None => None,
            };
            runs.since = [runs.since, since].into_iter().flatten().min();
        }
        [agents, tools]
    }

    fn delay(&mut self, id: &RunId, from: Timestamp, waiting: QueuedRun) {
        self.delayed_since = self.delayed_since.max(Some(waiting.since));
        self.delayed.insert((from, id.clone()));
        self.positions.insert(id.clone(), Position::Delayed(from, waiting));
    }

    /// Removes a run that waits.
    fn remove(&mut self, id: &RunId) {
        match self.positions.remove(id) {
            Some(Position::Delayed(from, _)) => drop(self.delayed.remove(&(from, id.clone()))),
            Some(Position::Queued(waiting)) => {
                if let Some(queue) = self.queues.get_mut(&waiting.requirements) {
                    queue.waiting.remove(&(waiting.rank, id.clone()));
                }
            }
            Some(Position::Claimed { .. }) | None => {}
        }
    }

    pub(super) fn claim_ready(&mut self, now: Timestamp) -> Vec<Claim> {
        if self.delayed_since.is_some_and(|since| now < since) {
            self.handle_clock_set_back(now);
        }
        while let Some((from, id)) = self.delayed.first().filter(|(from, _)| *from <= now).cloned()
        {
            self.delayed.remove(&(from, id.clone()));
            let Some(Position::Delayed(_, waiting)) = self.positions.remove(&id) else { continue };
            let queue = self.queues.entry(Arc::clone(&waiting.requirements)).or_default();
            queue.waiting.insert((waiting.rank, id.clone()));
            for resource in waiting.requirements.resources() {
                self.queues_by_resource
                    .entry(resource)
                    .or_default()
                    .insert(Arc::clone(&waiting.requirements));
            }
            self.mark_ready(&waiting.requirements);
            self.positions.insert(id, Position::Queued(waiting));
        }
        let mut claims = Vec::new();
        while self.may_claim()
            && self.claimed < CLAIMED_MAX
            && let Some(requirements) = self.ready.pop_front()
        {
            claims.extend(self.claim_from(&requirements));
            // At the end, so that a long queue does not keep the others waiting.
            self.mark_ready(&requirements);
        }
        claims
    }

    /// A run that was queued at a time that is now in the future does not wait for it again.
    fn handle_clock_set_back(&mut self, now: Timestamp) {
        let delayed = std::mem::take(&mut self.delayed);
        self.delayed_since = None;
        for (mut from, id) in delayed {
            if let Some(Position::Delayed(ready_at, waiting)) = self.positions.get_mut(&id)
                && now < waiting.since
            {
                (from, *ready_at, waiting.since) = (now, now, now);
            }
            if let Some(Position::Delayed(_, waiting)) = self.positions.get(&id) {
                self.delayed_since = self.delayed_since.max(Some(waiting.since));
            }
            self.delayed.insert((from, id));
        }
    }

    fn claim_from(&mut self, requirements: &Arc<QueueKey>) -> Option<Claim> {
        let can_start = self.can_start(requirements);
        let queue = self.queues.get_mut(requirements)?;
        queue.is_ready = false;
        // Another queue may have taken the permit since.
        let (_, id) = can_start.then(|| queue.waiting.pop_first()).flatten()?;
        let Some(Position::Queued(waiting)) = self.positions.remove(&id) else { return None };
        let QueuedRun { schedule, approval, .. } = waiting;
        Some(self.claim(id, schedule, requirements, approval))
    }

    pub(super) fn may_claim(&self) -> bool {
        !self.is_frozen && !self.is_stopped && !self.is_clock_wrong
    }

    pub(super) fn try_claim(
        &mut self,
        id: RunId,
        schedule: &ScheduleId,
        requirements: QueueKey,
        now: Timestamp,
    ) -> Option<Claim> {
        let is_due = self.delayed.first().is_some_and(|(from, _)| *from <= now);
        let is_contended =
            requirements.resources().any(|it| self.queues_by_resource.contains_key(&it));
        let another_waits = is_due || is_contended || !self.ready.is_empty();
        let has_permit = self.is_open && self.may_claim() && self.claimed < CLAIMED_MAX;
        let may_start = has_permit && !another_waits && self.can_start(&requirements);
        may_start.then(|| self.claim(id, schedule.clone(), &requirements, None))
    }

    /// Gives a run all its permits.
    fn claim(
        &mut self,
        id: RunId,
        schedule: ScheduleId,
        requirements: &QueueKey,
        approval: Option<ApprovalId>,
    ) -> Claim {
        let permits: Vec<Resource> =
            requirements.resources().chain(self.conversation(requirements)).collect();
        for resource in &permits {
            *self.in_use.entry(resource.clone()).or_default() += 1;
        }
        self.claimed += 1;
        let cancel = CancellationToken::new();
        let (live_output, pending_cancel) = (LiveOutput::default(), PendingCancel::default());
        let position = Position::Claimed {
            schedule: schedule.clone(),
            permits,
            cancel: cancel.clone(),
            live_output: live_output.clone(),
            pending_cancel: Arc::clone(&pending_cancel),
            requeued: None,
        };
        self.positions.insert(id.clone(), position);
        Claim {
            id,
            schedule,
            agent: requirements.agent.clone(),
            approval,
            cancel,
            live_output,
            pending_cancel,
        }
    }

    pub(super) fn release(&mut self, id: &RunId) {
        let Some(Position::Claimed { permits, requeued, .. }) = self.positions.remove(id) else {
            return;
        };
        self.claimed = self.claimed.saturating_sub(1);
        for resource in permits {
            if let Some(in_use) = self.in_use.get_mut(&resource) {
                *in_use = in_use.saturating_sub(1);
                if *in_use == 0 {
                    self.in_use.remove(&resource);
                }
            }
            self.wake(&resource);
        }
        if let Some((from, waiting)) = requeued {
            self.delay(id, from, waiting);
        }
    }

    /// A permit of a resource may have become free.
    fn wake(&mut self, resource: &Resource) {
        if let Resource::Conversation(conversation) = resource {
            let agents = self.agents_by_conversation.get(conversation).cloned();
            let agents = agents.unwrap_or_default().into_iter();
            agents.for_each(|agent| self.wake(&Resource::Agent(Some(agent))));
            return;
        }
        let queues =
            self.queues_by_resource.get(resource).map(|queues| queues.iter().cloned().collect());
        let queues: Vec<Arc<QueueKey>> = queues.unwrap_or_default();
        queues.iter().for_each(|requirements| self.mark_ready(requirements));
    }

    /// Marks a queue as ready if a run waits in it and could start. Removes an empty queue.
    fn mark_ready(&mut self, requirements: &Arc<QueueKey>) {
        let can_start = self.can_start(requirements);
        let Some(queue) = self.queues.get_mut(requirements) else { return };
        if queue.waiting.is_empty() && !queue.is_ready {
            self.queues.remove(requirements);
            for resource in requirements.resources() {
                if let Some(queues) = self.queues_by_resource.get_mut(&resource) {
                    queues.remove(requirements);
                    if queues.is_empty() {
                        self.queues_by_resource.remove(&resource);
                    }
                }
            }
        } else if !queue.is_ready && !queue.waiting.is_empty() && can_start {
            queue.is_ready = true;
            self.ready.push_back(Arc::clone(requirements));
        }
    }

    fn conversation(&self, requirements: &QueueKey) -> Option<Resource> {
        let limits = self.agents.get(requirements.agent.as_ref()?)?;
        limits.conversation.clone().map(Resource::Conversation)
    }

    /// Whether all permits for one more run are free.
    fn can_start(&self, requirements: &QueueKey) -> bool {
        let in_use = |resource: &Resource| self.in_use.get(resource).copied().unwrap_or_default();
        let limits = requirements.agent.as_ref().and_then(|agent| self.agents.get(agent));
        let concurrency_max = limits.map_or(CONCURRENCY_DEFAULT, |limits| limits.concurrency_max);
        let has_permit = in_use(&Resource::Agent(requirements.agent.clone())) < concurrency_max;
        let is_alone = self.conversation(requirements).is_none_or(|it| in_use(&it) == 0);
        let mut keys = requirements.keys.iter();
        has_permit
            && is_alone
            && keys.all(|key| in_use(&Resource::Key(key.name().to_owned())) < key.limit() as usize)
    }
}

impl QueueKey {
    /// What the run needs permits of, except for the conversation of its agent.
    fn resources(&self) -> impl Iterator<Item = Resource> {
        let keys = self.keys.iter().map(|key| Resource::Key(key.name().to_owned()));
        [Resource::Agent(self.agent.clone())].into_iter().chain(keys)
    }
}
