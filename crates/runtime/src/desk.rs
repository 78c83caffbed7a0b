//! The desk: which queued runs wait for whom, and which are at work. It forgets everything when the
//! process ends; what is true is in the store, and the desk is filled from there.
//!
//! Runs of one agent with the same concurrency keys are a lane. An agent has as many hands as it bears,
//! and a key lets as many runs work at a time as it says; a run holds all its keys or none. Agents that
//! lead to the same conversation speak there one after the other. Among those
//! that wait in a lane, the one comes first that has waited longest, and a step of priority is worth a
//! minute of waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agents::Said;
use kernel::agent::{Agent, AgentName};
use kernel::run::{Run, State};
use kernel::schedule::Definition;
use kernel::schedule::terms::Key;
use kernel::{Actor, ApprovalId, RunId, ScheduleId, Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Runs of an agent that are at work at a time before it is known how many it bears.
const LANE_HANDS: usize = 1;
/// Runs that are at work at a time.
const HANDS: usize = 256;
/// What a step of priority is worth.
const PRIORITY_STEP_US: i64 = 60_000_000;

#[derive(Debug, Default)]
pub(crate) struct Desk {
    runs: Mutex<Runs>,
    changed: Notify,
}

/// A run that is taken from the desk to be worked on.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub id: RunId,
    pub schedule: ScheduleId,
    pub agent: Option<AgentName>,
    /// The answer that lets it begin, if it needs one.
    pub approval: Option<ApprovalId>,
    pub stop: CancellationToken,
    pub said: Said,
    pub wish: Wish,
}

/// That a run at work be cancelled, which could not be written down when somebody asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Cancel {
    pub by: Actor,
    pub note: Option<String>,
}

/// All clones are of the same run.
pub(crate) type Wish = Arc<OnceLock<Cancel>>;

#[derive(Debug, Default)]
struct Runs {
    /// Nobody takes runs from a desk that is closed, so none are put there.
    is_open: bool,
    /// Nothing is taken for now.
    is_held: bool,
    /// Where each run is: one place for each.
    places: HashMap<RunId, Place>,
    /// By the instant from which they may begin.
    later: BTreeSet<(Timestamp, RunId)>,
    /// When the last of them began to wait.
    later_since: Option<Timestamp>,
    lanes: HashMap<Arc<Needs>, Lane>,
    /// Which lanes need an agent or a key.
    needed: HashMap<Resource, BTreeSet<Arc<Needs>>>,
    agents: HashMap<AgentName, Known>,
    /// Those who speak in the same conversation.
    speakers: HashMap<String, BTreeSet<AgentName>>,
    /// Runs at work that hold an agent or a key.
    held: HashMap<Resource, usize>,
    /// Lanes with somebody waiting and nothing in the way; each in turn.
    ready: VecDeque<Arc<Needs>>,
    at_work: usize,
}

/// What is known of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// How many runs it bears at a time.
    hands: usize,
    /// What it leads to, where one speaks at a time.
    conversation: Option<String>,
}

/// What the runs of a lane need.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Needs {
    agent: Option<AgentName>,
    keys: Vec<Key>,
}

/// What runs share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Resource {
    Agent(Option<AgentName>),
    Key(String),
    Conversation(String),
}

#[derive(Debug)]
enum Place {
    Later(Timestamp, Waiting),
    InLane(Waiting),
    AtWork {
        schedule: ScheduleId,
        /// What it holds until it is over.
        holds: Vec<Resource>,
        stop: CancellationToken,
        said: Said,
        wish: Wish,
        /// It shall be worked on again once this is over.
        again: Option<(Timestamp, Waiting)>,
    },
}

#[derive(Clone, Debug)]
struct Waiting {
    schedule: ScheduleId,
    needs: Arc<Needs>,
    /// The smaller, the sooner.
    turn: i64,
    /// When it began to wait.
    since: Timestamp,
    approval: Option<ApprovalId>,
}

#[derive(Debug, Default)]
struct Lane {
    /// By their turn.
    waiting: BTreeSet<(i64, RunId)>,
    is_ready: bool,
}

impl Desk {
    pub(crate) fn open(&self) {
        self.runs().is_open = true;
    }

    /// Nothing is taken any more until it is released.
    pub(crate) fn hold(&self) {
        self.runs().is_held = true;
    }

    pub(crate) fn release(&self) {
        self.runs().is_held = false;
        self.changed.notify_one();
    }

    /// The runs that are taken.
    pub(crate) fn at_work(&self) -> Vec<(RunId, ScheduleId)> {
        let runs = self.runs();
        let taken = runs.places.iter().filter_map(|(id, place)| match place {
            Place::AtWork { schedule, .. } => Some((id.clone(), schedule.clone())),
            Place::Later(..) | Place::InLane(_) => None,
        });
        // The order is not left to chance, so that a simulation can repeat it.
        taken.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// A run as it is now: one that is queued waits for its turn, any other does not wait any more.
    pub(crate) fn put(&self, id: &RunId, run: &Run) {
        self.runs().put(id, run);
        self.changed.notify_one();
    }

    /// The runs whose turn it is, as many as there are hands for.
    pub(crate) fn take(&self, now: Timestamp) -> Vec<Taken> {
        self.runs().take(now)
    }

    /// Takes a run that is not queued yet, if it may begin as soon as it is: nobody waits before it.
    pub(crate) fn take_new(
        &self,
        id: RunId,
        schedule: &ScheduleId,
        definition: &Definition,
        now: Timestamp,
    ) -> Option<Taken> {
        let (agent, keys) = (definition.action.agent().cloned(), definition.terms.keys.clone());
        self.runs().take_new(id, schedule, Needs { agent, keys }, now)
    }

    /// When the next run may begin that may not yet.
    pub(crate) fn next_from(&self) -> Option<Timestamp> {
        let runs = self.runs();
        runs.later.first().map(|(from, _)| *from).filter(|_| !runs.is_held)
    }

    /// Returns when there may be something to take that was not there before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The work on a run that was taken is over.
    pub(crate) fn done(&self, id: &RunId) {
        self.runs().done(id);
        self.changed.notify_one();
    }

    /// An agent as it is now: how many of its runs may be at work at a time, and with whom it shares.
    pub(crate) fn know(&self, agent: &Agent) {
        let hands = agent.backend.kind().at_once();
        let conversation = agent.backend.conversation().map(str::to_owned);
        if self.runs().know(&agent.name, Some(Known { hands, conversation })) {
            self.changed.notify_one();
        }
    }

    /// An agent is there no more.
    pub(crate) fn forget(&self, agent: &AgentName) {
        self.runs().know(agent, None);
    }

    /// What a run says that is at work here.
    pub(crate) fn said(&self, id: &RunId) -> Option<Said> {
        match self.runs().places.get(id) {
            Some(Place::AtWork { said, .. }) => Some(said.clone()),
            Some(Place::Later(..) | Place::InLane(_)) | None => None,
        }
    }

    /// Stops the work on a run, if it is at work here.
    pub(crate) fn stop(&self, id: &RunId) {
        if let Some(Place::AtWork { stop, .. }) = self.runs().places.get(id) {
            stop.cancel();
        }
    }

    /// Stops the work on a run though nobody could write down that it shall be cancelled; whoever works on it
    /// does so later. Whether it is at work here.
    pub(crate) fn stop_unwritten(&self, id: &RunId, cancel: Cancel) -> bool {
        match self.runs().places.get(id) {
            Some(Place::AtWork { stop, wish, .. }) => {
                // The first who asked is written down.
                let _ = wish.set(cancel);
                stop.cancel();
                true
            }
            Some(Place::Later(..) | Place::InLane(_)) | None => false,
        }
    }

    pub(crate) fn stop_all(&self) {
        let runs = self.runs();
        // The order is not left to chance, so that a simulation can repeat it.
        let at_work: BTreeMap<&RunId, &Place> = runs.places.iter().collect();
        for place in at_work.into_values() {
            if let Place::AtWork { stop, .. } = place {
                stop.cancel();
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    fn put(&mut self, id: &RunId, run: &Run) {
        let queued = match run.state {
            State::Queued { from } => {
                let turn = from.as_micros() - i64::from(run.priority) * PRIORITY_STEP_US;
                let needs = Needs { agent: run.agent.clone(), keys: run.keys.clone() };
                let (schedule, needs) = (run.schedule.clone(), Arc::new(needs));
                let (since, approval) = (run.waits_since(), run.approval.clone());
                Some((from, Waiting { schedule, needs, turn, since, approval }))
            }
            State::Parked | State::Running { .. } | State::Ended(_) => None,
        };
        if let Some(Place::AtWork { again, stop, .. }) = self.places.get_mut(id) {
            // Whoever is at work on a run that has ended works for nothing.
            if matches!(run.state, State::Ended(_)) {
                stop.cancel();
            }
            *again = queued;
            return;
        }
        self.forget(id);
        if let Some((from, waiting)) = queued.filter(|_| self.is_open) {
            self.wait(id, from, waiting);
        }
    }

    /// Whether that is news.
    fn know(&mut self, agent: &AgentName, known: Option<Known>) -> bool {
        if self.agents.get(agent) == known.as_ref() {
            return false;
        }
        let speaks_in = |known: &Known| known.conversation.clone();
        if let Some(conversation) = known.as_ref().and_then(speaks_in) {
            self.speakers.entry(conversation).or_default().insert(agent.clone());
        }
        let before = match known {
            Some(known) => self.agents.insert(agent.clone(), known),
            None => self.agents.remove(agent),
        };
        let now = self.agents.get(agent).and_then(speaks_in);
        let left = before.as_ref().and_then(speaks_in).filter(|left| Some(left) != now.as_ref());
        if let Some(left) = left
            && let Some(others) = self.speakers.get_mut(&left)
        {
            others.remove(agent);
            if others.is_empty() {
                self.speakers.remove(&left);
            }
        }
        self.wake(&Resource::Agent(Some(agent.clone())));
        true
    }

    fn wait(&mut self, id: &RunId, from: Timestamp, waiting: Waiting) {
        self.later_since = self.later_since.max(Some(waiting.since));
        self.later.insert((from, id.clone()));
        self.places.insert(id.clone(), Place::Later(from, waiting));
    }

    /// Takes a run out of the queues.
    fn forget(&mut self, id: &RunId) {
        match self.places.remove(id) {
            Some(Place::Later(from, _)) => drop(self.later.remove(&(from, id.clone()))),
            Some(Place::InLane(waiting)) => {
                if let Some(lane) = self.lanes.get_mut(&waiting.needs) {
                    lane.waiting.remove(&(waiting.turn, id.clone()));
                }
            }
            Some(Place::AtWork { .. }) | None => {}
        }
    }

    fn take(&mut self, now: Timestamp) -> Vec<Taken> {
        if self.later_since.is_some_and(|since| now < since) {
            self.clock_went_back(now);
        }
        while let Some((from, id)) = self.later.first().filter(|(from, _)| *from <= now).cloned() {
            self.later.remove(&(from, id.clone()));
            let Some(Place::Later(_, waiting)) = self.places.remove(&id) else { continue };
            let lane = self.lanes.entry(Arc::clone(&waiting.needs)).or_default();
            lane.waiting.insert((waiting.turn, id.clone()));
            for resource in waiting.needs.resources() {
                self.needed.entry(resource).or_default().insert(Arc::clone(&waiting.needs));
            }
            self.get_ready(&waiting.needs);
            self.places.insert(id, Place::InLane(waiting));
        }
        let mut taken = Vec::new();
        while !self.is_held
            && self.at_work < HANDS
            && let Some(needs) = self.ready.pop_front()
        {
            taken.extend(self.take_from(&needs));
            // Behind the others, so that a long queue does not keep them waiting.
            self.get_ready(&needs);
        }
        taken
    }

    /// Those that began to wait at a time that is yet to come do not wait for it again.
    fn clock_went_back(&mut self, now: Timestamp) {
        let later = std::mem::take(&mut self.later);
        self.later_since = None;
        for (mut from, id) in later {
            if let Some(Place::Later(waits_until, waiting)) = self.places.get_mut(&id)
                && now < waiting.since
            {
                (from, *waits_until, waiting.since) = (now, now, now);
            }
            if let Some(Place::Later(_, waiting)) = self.places.get(&id) {
                self.later_since = self.later_since.max(Some(waiting.since));
            }
            self.later.insert((from, id));
        }
    }

    fn take_from(&mut self, needs: &Arc<Needs>) -> Option<Taken> {
        let is_free = self.is_free(needs);
        let lane = self.lanes.get_mut(needs)?;
        lane.is_ready = false;
        // Another lane may have taken what this one needs.
        let (_, id) = is_free.then(|| lane.waiting.pop_first()).flatten()?;
        let Some(Place::InLane(waiting)) = self.places.remove(&id) else { return None };
        let Waiting { schedule, approval, .. } = waiting;
        Some(self.take_up(id, schedule, needs, approval))
    }

    fn take_new(
        &mut self,
        id: RunId,
        schedule: &ScheduleId,
        needs: Needs,
        now: Timestamp,
    ) -> Option<Taken> {
        let is_due = self.later.first().is_some_and(|(from, _)| *from <= now);
        let is_needed = needs.resources().any(|it| self.needed.contains_key(&it));
        let somebody_waits = is_due || is_needed || !self.ready.is_empty();
        let has_hand = self.is_open && !self.is_held && self.at_work < HANDS;
        let may_begin = has_hand && !somebody_waits && self.is_free(&needs);
        may_begin.then(|| self.take_up(id, schedule.clone(), &needs, None))
    }

    /// It is at work from now on, and holds all that it needs.
    fn take_up(
        &mut self,
        id: RunId,
        schedule: ScheduleId,
        needs: &Needs,
        approval: Option<ApprovalId>,
    ) -> Taken {
        let holds: Vec<Resource> = needs.resources().chain(self.conversation(needs)).collect();
        for resource in &holds {
            *self.held.entry(resource.clone()).or_default() += 1;
        }
        self.at_work += 1;
        let stop = CancellationToken::new();
        let (said, wish) = (Said::default(), Wish::default());
        let place = Place::AtWork {
            schedule: schedule.clone(),
            holds,
            stop: stop.clone(),
            said: said.clone(),
            wish: Arc::clone(&wish),
            again: None,
        };
        self.places.insert(id.clone(), place);
        Taken { id, schedule, agent: needs.agent.clone(), approval, stop, said, wish }
    }

    fn done(&mut self, id: &RunId) {
        let Some(Place::AtWork { holds, again, .. }) = self.places.remove(id) else { return };
        self.at_work = self.at_work.saturating_sub(1);
        for resource in holds {
            if let Some(held) = self.held.get_mut(&resource) {
                *held = held.saturating_sub(1);
                if *held == 0 {
                    self.held.remove(&resource);
                }
            }
            self.wake(&resource);
        }
        if let Some((from, waiting)) = again {
            self.wait(id, from, waiting);
        }
    }

    /// Something that runs share may be free again.
    fn wake(&mut self, resource: &Resource) {
        if let Resource::Conversation(conversation) = resource {
            let speakers = self.speakers.get(conversation).cloned().unwrap_or_default();
            speakers.into_iter().for_each(|agent| self.wake(&Resource::Agent(Some(agent))));
            return;
        }
        let lanes = self.needed.get(resource).map(|lanes| lanes.iter().cloned().collect());
        let lanes: Vec<Arc<Needs>> = lanes.unwrap_or_default();
        lanes.iter().for_each(|needs| self.get_ready(needs));
    }

    /// Puts a lane in the row if it has somebody waiting and nothing is in the way; an empty one is let
    /// go.
    fn get_ready(&mut self, needs: &Arc<Needs>) {
        let is_free = self.is_free(needs);
        let Some(lane) = self.lanes.get_mut(needs) else { return };
        if lane.waiting.is_empty() && !lane.is_ready {
            self.lanes.remove(needs);
            for resource in needs.resources() {
                if let Some(lanes) = self.needed.get_mut(&resource) {
                    lanes.remove(needs);
                    if lanes.is_empty() {
                        self.needed.remove(&resource);
                    }
                }
            }
        } else if !lane.is_ready && !lane.waiting.is_empty() && is_free {
            lane.is_ready = true;
            self.ready.push_back(Arc::clone(needs));
        }
    }

    fn conversation(&self, needs: &Needs) -> Option<Resource> {
        let known = self.agents.get(needs.agent.as_ref()?)?;
        known.conversation.clone().map(Resource::Conversation)
    }

    /// Whether one more run may hold all that it needs.
    fn is_free(&self, needs: &Needs) -> bool {
        let held = |resource: &Resource| self.held.get(resource).copied().unwrap_or_default();
        let known = needs.agent.as_ref().and_then(|agent| self.agents.get(agent));
        let hands = known.map_or(LANE_HANDS, |known| known.hands);
        let has_hand = held(&Resource::Agent(needs.agent.clone())) < hands;
        let is_silent = self.conversation(needs).is_none_or(|it| held(&it) == 0);
        let mut keys = needs.keys.iter();
        has_hand
            && is_silent
            && keys.all(|key| held(&Resource::Key(key.name().to_owned())) < key.limit() as usize)
    }
}

impl Needs {
    /// All that can be told from the run alone.
    fn resources(&self) -> impl Iterator<Item = Resource> {
        let keys = self.keys.iter().map(|key| Resource::Key(key.name().to_owned()));
        [Resource::Agent(self.agent.clone())].into_iter().chain(keys)
    }
}

#[cfg(test)]
mod tests {
    use kernel::run::Outcome;

    use super::*;

    fn run(agent: &str, priority: u8, from_s: i64) -> Run {
        let from = Timestamp::from_micros(from_s * 1_000_000);
        let queued = serde_json::json!({
            "schedule": "sch_00000000", "revision": 1, "origin": "manual", "agent": agent,
            "priority": priority, "queued_at": from, "state": {"queued": {"from": from}},
        });
        serde_json::from_value(queued).unwrap()
    }

    fn hands(desk: &Desk, agent: &str, hands: usize) {
        let known = Known { hands, conversation: None };
        desk.runs().know(&agent.parse().unwrap(), Some(known));
    }

    fn speaks(desk: &Desk, agent: &str, conversation: &str) {
        let known = Known { hands: 9, conversation: Some(conversation.to_owned()) };
        desk.runs().know(&agent.parse().unwrap(), Some(known));
    }

    fn taken(desk: &Desk, now_s: i64) -> Vec<u128> {
        let taken = desk.take(Timestamp::from_micros(now_s * 1_000_000));
        let number = |run: &Taken| u128::from_str_radix(&run.id.as_str()[4..], 16).unwrap();
        taken.iter().map(number).collect()
    }

    #[test]
    fn a_lane_has_so_many_hands_and_others_do_not_wait_for_it() {
        let desk = Desk::default();
        desk.open();
        for id in 0..100 {
            desk.put(&RunId::of(id), &run("busy", 5, 1));
        }
        desk.put(&RunId::of(1_000), &run("idle", 5, 1));
        assert_eq!(taken(&desk, 1), [0, 1_000]);
        hands(&desk, "busy", 4);
        assert_eq!(taken(&desk, 1), [1, 2, 3]);
        assert_eq!(taken(&desk, 1), []);
        desk.done(&RunId::of(3));
        assert_eq!(taken(&desk, 1), [4]);
    }

    #[test]
    fn runs_with_the_same_key_wait_for_one_another_whoever_does_them() {
        let desk = Desk::default();
        desk.open();
        let keyed = |agent: &str, keys: &[&str]| Run {
            keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
            ..run(agent, 5, 1)
        };
        for agent in ["ada", "bob", "eve"] {
            hands(&desk, agent, 9);
        }
        desk.put(&RunId::of(1), &keyed("ada", &["deploy", "mail:2"]));
        desk.put(&RunId::of(2), &keyed("bob", &["deploy"]));
        desk.put(&RunId::of(3), &keyed("bob", &["mail:2"]));
        desk.put(&RunId::of(4), &keyed("eve", &["mail:2"]));
        desk.put(&RunId::of(5), &run("eve", 5, 1));
        assert_eq!(taken(&desk, 1), [1, 3, 5]);
        assert_eq!(taken(&desk, 1), []);
        // What it held is free for both.
        desk.done(&RunId::of(1));
        let mut now = taken(&desk, 1);
        now.sort();
        assert_eq!(now, [2, 4]);
        for id in 2..=5 {
            desk.done(&RunId::of(id));
        }
        let runs = desk.runs();
        assert!(runs.lanes.is_empty() && runs.needed.is_empty() && runs.held.is_empty());
    }

    #[test]
    fn agents_that_lead_to_the_same_conversation_speak_one_after_the_other() {
        let desk = Desk::default();
        desk.open();
        for (agent, conversation) in [("ada", "c-1"), ("bob", "c-1"), ("eve", "c-2")] {
            speaks(&desk, agent, conversation);
        }
        for (id, agent) in [(1, "ada"), (2, "ada"), (3, "bob"), (4, "eve")] {
            desk.put(&RunId::of(id), &run(agent, 5, 1));
        }
        assert_eq!(taken(&desk, 1), [1, 4]);
        desk.done(&RunId::of(1));
        assert_eq!(taken(&desk, 1), [2]);
        desk.done(&RunId::of(2));
        assert_eq!(taken(&desk, 1), [3]);
        // What it holds it gives back, though it leads elsewhere by then.
        speaks(&desk, "bob", "c-3");
        desk.put(&RunId::of(5), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
        desk.done(&RunId::of(3));
        assert_eq!(taken(&desk, 1), [5]);
        desk.forget(&"bob".parse().unwrap());
        desk.done(&RunId::of(4));
        desk.done(&RunId::of(5));
        let runs = desk.runs();
        assert!(runs.held.is_empty() && runs.lanes.is_empty() && runs.needed.is_empty());
        assert_eq!(runs.speakers.len(), 2);
    }

    #[test]
    fn a_step_of_priority_is_worth_a_minute() {
        let desk = Desk::default();
        desk.open();
        hands(&desk, "ada", 9);
        for (id, priority, from_s) in [(1, 5, 120), (2, 6, 181), (3, 6, 179), (4, 9, 500)] {
            let queued_at = Timestamp::from_micros(0);
            desk.put(&RunId::of(id), &Run { queued_at, ..run("ada", priority, from_s) });
        }
        assert_eq!(taken(&desk, 200), [3, 1, 2]);
        assert_eq!(desk.next_from(), Some(Timestamp::from_micros(500_000_000)));
    }

    #[test]
    fn nobody_waits_for_a_clock_that_was_set_back() {
        let desk = Desk::default();
        desk.open();
        hands(&desk, "ada", 9);
        desk.put(&RunId::of(1), &run("ada", 5, 1_000));
        let retried = Run {
            state: State::Queued { from: Timestamp::from_micros(1_060_000_000) },
            queued_again_at: Some(Timestamp::from_micros(1_000_000_000)),
            ..run("ada", 5, 900)
        };
        desk.put(&RunId::of(2), &retried);
        let waits = Run { queued_at: Timestamp::from_micros(0), ..run("ada", 5, 500) };
        desk.put(&RunId::of(3), &waits);
        assert_eq!(taken(&desk, 400), [1, 2]);
        assert_eq!(taken(&desk, 500), [3]);
    }

    #[test]
    fn all_hands_together_have_a_limit() {
        let desk = Desk::default();
        desk.open();
        for agent in 0..100 {
            hands(&desk, &format!("agent-{agent}"), 9);
        }
        for id in 0..1_000 {
            desk.put(&RunId::of(id), &run(&format!("agent-{}", id % 100), 5, 1));
        }
        assert_eq!(taken(&desk, 1).len(), HANDS);
        assert_eq!(taken(&desk, 1).len(), 0);
        desk.done(&RunId::of(0));
        assert_eq!(taken(&desk, 1).len(), 1);
    }

    #[test]
    fn a_run_has_one_place_and_none_on_a_closed_desk() {
        let desk = Desk::default();
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
        desk.open();
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        desk.put(&RunId::of(1), &Run { queued_at: Timestamp::from_micros(0), ..run("ada", 5, 2) });
        assert_eq!(taken(&desk, 1), []);
        assert_eq!(taken(&desk, 2), [1]);
    }

    #[test]
    fn a_run_that_is_queued_again_while_at_work_waits_until_that_is_over() {
        let desk = Desk::default();
        desk.open();
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), [1]);
        desk.put(&RunId::of(1), &run("ada", 5, 3));
        assert_eq!(taken(&desk, 9), []);
        desk.done(&RunId::of(1));
        assert_eq!(desk.next_from(), Some(Timestamp::from_micros(3_000_000)));
        assert_eq!(taken(&desk, 3), [1]);
        desk.done(&RunId::of(1));
        assert_eq!(taken(&desk, 9), []);
    }

    #[test]
    fn a_run_that_ended_while_it_waited_is_not_taken() {
        let desk = Desk::default();
        desk.open();
        let ended = Run { state: State::Ended(Outcome::Cancelled), ..run("ada", 5, 1) };
        for now_s in [0, 1] {
            desk.put(&RunId::of(1), &run("ada", 5, 1));
            desk.take(Timestamp::from_micros(now_s));
            desk.put(&RunId::of(1), &ended);
            assert_eq!(taken(&desk, 1), []);
        }
    }

    fn new(desk: &Desk, id: u128, needs: (&str, &[&str]), now_s: i64) -> bool {
        let agent = Some(needs.0.parse().unwrap());
        let keys = needs.1.iter().map(|key| key.parse().unwrap()).collect();
        let now = Timestamp::from_micros(now_s * 1_000_000);
        let schedule = "sch_00000000".parse().unwrap();
        desk.runs().take_new(RunId::of(id), &schedule, Needs { agent, keys }, now).is_some()
    }

    #[test]
    fn a_run_that_is_not_queued_yet_is_taken_where_nobody_waits_before_it() {
        let desk = Desk::default();
        assert!(!new(&desk, 1, ("ada", &[]), 1), "the desk is closed");
        desk.open();
        desk.hold();
        assert!(!new(&desk, 1, ("ada", &[]), 1), "nothing is taken for now");
        desk.release();
        hands(&desk, "ada", 2);
        assert!(new(&desk, 1, ("ada", &["deploy"]), 1));
        assert!(!new(&desk, 2, ("ada", &["deploy"]), 1), "the key is held");
        assert!(new(&desk, 3, ("ada", &[]), 1));
        assert!(!new(&desk, 4, ("ada", &[]), 1), "no hand is left");

        desk.put(&RunId::of(5), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
        desk.done(&RunId::of(3));
        assert!(!new(&desk, 6, ("ada", &[]), 1), "another has waited for that hand");
        assert!(!new(&desk, 6, ("bob", &[]), 1), "and all have their turn before any new one");
        assert_eq!(taken(&desk, 1), [5]);
        assert!(new(&desk, 6, ("bob", &[]), 1));
        desk.put(&RunId::of(7), &run("eve", 5, 2));
        assert!(new(&desk, 8, ("zoe", &[]), 1), "that one is not due yet");
        assert!(!new(&desk, 9, ("kim", &[]), 2));
    }

    /// It was taken for a run that could not begin after all.
    #[test]
    fn a_new_run_that_was_queued_and_not_begun_waits_for_its_turn() {
        let desk = Desk::default();
        desk.open();
        assert!(new(&desk, 1, ("ada", &[]), 1));
        desk.put(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(taken(&desk, 1), []);
        desk.done(&RunId::of(1));
        assert_eq!(taken(&desk, 1), [1]);
        desk.done(&RunId::of(1));
        assert!(new(&desk, 2, ("ada", &[]), 1));
        desk.done(&RunId::of(2));
        let runs = desk.runs();
        assert!(runs.held.is_empty() && runs.places.is_empty() && runs.at_work == 0);
    }

    #[test]
    fn no_agent_starves_behind_those_with_long_queues() {
        let desk = Desk::default();
        desk.open();
        for agent in 0..20 {
            hands(&desk, &format!("agent-{agent:02}"), HANDS);
        }
        for id in 0..10_000 {
            desk.put(&RunId::of(id), &run(&format!("agent-{:02}", id % 20), 5, 1));
        }
        let mut at_work = taken(&desk, 1);
        desk.put(&RunId::of(77_777), &run("zoe", 0, 1));
        for _ in 0..HANDS {
            desk.done(&RunId::of(at_work.remove(0)));
            at_work.extend(taken(&desk, 2));
            if at_work.contains(&77_777) {
                return;
            }
        }
        panic!("zoe has waited for as many runs as there are hands");
    }
}
