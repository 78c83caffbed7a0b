//! The dispatcher: which runs wait, and which are running in this process.
//!
//! It holds no state of record. It is filled from the store when the daemon starts, and learns of every commit.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agents::LiveOutput;
use kernel::agent::{Agent, AgentName};
use kernel::authority::Authority;
use kernel::backend::BackendKind;
use kernel::run::Run;
use kernel::schedule::Definition;
use kernel::{RunId, ScheduleId, Timestamp};
use tokio::sync::Notify;

use crate::dispatch::queues::{AgentLimits, Position, QueueKey, Queues};
pub(crate) use crate::dispatch::queues::{Cancellation, Claim, WaitingRuns};

#[derive(Debug, Default)]
pub(crate) struct Dispatcher {
    queues: Mutex<Queues>,
    changed: Notify,
}

impl Dispatcher {
    /// From now on runs are queued.
    pub(crate) fn open(&self) {
        self.queues().is_open = true;
    }

    /// Claims no more runs while the installation is frozen.
    pub(crate) fn apply_freeze(&self, authority: &Authority) {
        self.queues().is_frozen = authority.frozen.is_some();
        self.changed.notify_one();
    }

    /// Claims no more runs, whatever the ledger says, until [`Dispatcher::end_stop`].
    pub(crate) fn stop(&self) {
        self.queues().is_stopped = true;
    }

    pub(crate) fn end_stop(&self) {
        self.queues().is_stopped = false;
        self.changed.notify_one();
    }

    /// Whether no run may be claimed or started.
    pub(crate) fn is_stopped(&self) -> bool {
        self.queues().is_stopped
    }

    /// Claims no more runs while the clock is not trusted.
    pub(crate) fn apply_clock(&self, is_wrong: bool) {
        self.queues().is_clock_wrong = is_wrong;
    }

    /// Running runs, in a fixed order so that a simulation can repeat it.
    pub(crate) fn claimed(&self) -> Vec<(RunId, ScheduleId)> {
        let queues = self.queues();
        let running = queues.positions.iter().filter_map(|(id, position)| match position {
            Position::Claimed { schedule, .. } => Some((id.clone(), schedule.clone())),
            Position::Delayed(..) | Position::Queued(_) => None,
        });
        running.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// Follows a change of a run: a queued run waits for its permits, any other leaves its queue.
    pub(crate) fn update(&self, id: &RunId, run: &Run) {
        self.queues().update(id, run);
        self.changed.notify_one();
    }

    /// Claims all runs that can start.
    pub(crate) fn claim_ready(&self, now: Timestamp) -> Vec<Claim> {
        self.queues().claim_ready(now)
    }

    /// Claims a run that is about to be queued, if its permits are free and no run waits before it.
    pub(crate) fn try_claim(
        &self,
        id: RunId,
        schedule: &ScheduleId,
        definition: &Definition,
        now: Timestamp,
    ) -> Option<Claim> {
        let (agent, keys) = (definition.action.agent().cloned(), definition.terms.keys.clone());
        self.queues().try_claim(id, schedule, QueueKey { agent, keys }, now)
    }

    /// When the next delayed run may start.
    pub(crate) fn next_ready_at(&self) -> Option<Timestamp> {
        let queues = self.queues();
        queues.delayed.first().map(|(at, _)| *at).filter(|_| queues.may_claim())
    }

    /// Returns when there may be a run to claim that was not there before.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the permits of a claimed run.
    pub(crate) fn release(&self, id: &RunId) {
        self.queues().release(id);
        self.changed.notify_one();
    }

    /// Takes over the concurrency limits of an agent.
    pub(crate) fn set_agent(&self, agent: &Agent) {
        let concurrency_max = agent.backend.kind().concurrency_max();
        let conversation = agent.backend.conversation().map(str::to_owned);
        let backend = Some(agent.backend.kind());
        let limits = AgentLimits { concurrency_max, conversation, backend };
        if self.queues().set_agent(&agent.name, Some(limits)) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn remove_agent(&self, agent: &AgentName) {
        self.queues().set_agent(agent, None);
    }

    /// The backend of an agent that is known here.
    pub(crate) fn backend_of(&self, agent: &AgentName) -> Option<BackendKind> {
        self.queues().backend_of(agent)
    }

    /// The runs that wait for a permit: those of agents, and those that call a tool.
    pub(crate) fn waiting(&self) -> [WaitingRuns; 2] {
        self.queues().waiting()
    }

    /// The output so far of a run that is running in this process.
    pub(crate) fn live_output(&self, id: &RunId) -> Option<LiveOutput> {
        match self.queues().positions.get(id) {
            Some(Position::Claimed { live_output, .. }) => Some(live_output.clone()),
            Some(Position::Delayed(..) | Position::Queued(_)) | None => None,
        }
    }

    /// Cancels a run, if it is running in this process.
    pub(crate) fn cancel(&self, id: &RunId) {
        if let Some(Position::Claimed { cancel, .. }) = self.queues().positions.get(id) {
            cancel.cancel();
        }
    }

    /// Cancels a run though the cancellation could not be recorded; the executor records it later. Returns whether the run
    /// is running in this process.
    pub(crate) fn cancel_unrecorded(&self, id: &RunId, cancellation: Cancellation) -> bool {
        match self.queues().positions.get(id) {
            Some(Position::Claimed { cancel, pending_cancel, .. }) => {
                // The first one counts.
                let _ = pending_cancel.set(cancellation);
                cancel.cancel();
                true
            }
            Some(Position::Delayed(..) | Position::Queued(_)) | None => false,
        }
    }

    /// Cancels all running runs, in a fixed order so that a simulation can repeat it.
    pub(crate) fn cancel_all(&self) {
        for (id, _) in self.claimed() {
            self.cancel(&id);
        }
    }

    /// Cancels all running runs though that is not recorded yet; the executor records it later.
    pub(crate) fn cancel_all_unrecorded(&self, cancellation: &Cancellation) {
        for (id, _) in self.claimed() {
            self.cancel_unrecorded(&id, cancellation.clone());
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kernel::run::{Outcome, State};

    use super::*;
    use crate::dispatch::queues::CLAIMED_MAX;

    fn run(agent: &str, priority: u8, from_s: i64) -> Run {
        let from = Timestamp::from_micros(from_s * 1_000_000);
        let queued = serde_json::json!({
            "schedule": "sch_00000000", "revision": 1, "origin": "manual", "agent": agent,
            "priority": priority, "queued_at": from, "state": {"queued": {"from": from}},
        });
        serde_json::from_value(queued).unwrap()
    }

    fn set_limit(dispatcher: &Dispatcher, agent: &str, concurrency_max: usize) {
        let limits = AgentLimits { concurrency_max, conversation: None, backend: None };
        dispatcher.queues().set_agent(&agent.parse().unwrap(), Some(limits));
    }

    fn set_conversation(dispatcher: &Dispatcher, agent: &str, conversation: &str) {
        let limits = AgentLimits {
            concurrency_max: 9,
            conversation: Some(conversation.to_owned()),
            backend: None,
        };
        dispatcher.queues().set_agent(&agent.parse().unwrap(), Some(limits));
    }

    fn claimed(dispatcher: &Dispatcher, now_s: i64) -> Vec<u128> {
        let claimed = dispatcher.claim_ready(Timestamp::from_micros(now_s * 1_000_000));
        let number = |run: &Claim| u128::from_str_radix(&run.id.as_str()[4..], 16).unwrap();
        claimed.iter().map(number).collect()
    }

    #[test]
    fn an_agent_at_its_limit_does_not_hold_up_others() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        for id in 0..100 {
            dispatcher.update(&RunId::of(id), &run("busy", 5, 1));
        }
        dispatcher.update(&RunId::of(1_000), &run("idle", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), [0, 1_000]);
        set_limit(&dispatcher, "busy", 4);
        assert_eq!(claimed(&dispatcher, 1), [1, 2, 3]);
        assert_eq!(claimed(&dispatcher, 1), []);
        dispatcher.release(&RunId::of(3));
        assert_eq!(claimed(&dispatcher, 1), [4]);
    }

    #[test]
    fn runs_with_the_same_key_respect_its_limit_across_agents() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        let keyed = |agent: &str, keys: &[&str]| Run {
            keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
            ..run(agent, 5, 1)
        };
        for agent in ["ada", "bob", "eve"] {
            set_limit(&dispatcher, agent, 9);
        }
        dispatcher.update(&RunId::of(1), &keyed("ada", &["deploy", "mail:2"]));
        dispatcher.update(&RunId::of(2), &keyed("bob", &["deploy"]));
        dispatcher.update(&RunId::of(3), &keyed("bob", &["mail:2"]));
        dispatcher.update(&RunId::of(4), &keyed("eve", &["mail:2"]));
        dispatcher.update(&RunId::of(5), &run("eve", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), [1, 3, 5]);
        assert_eq!(claimed(&dispatcher, 1), []);
        // Its permits are free for both.
        dispatcher.release(&RunId::of(1));
        let mut now = claimed(&dispatcher, 1);
        now.sort();
        assert_eq!(now, [2, 4]);
        for id in 2..=5 {
            dispatcher.release(&RunId::of(id));
        }
        let queues = dispatcher.queues();
        assert!(
            queues.queues.is_empty()
                && queues.queues_by_resource.is_empty()
                && queues.in_use.is_empty()
        );
    }

    #[test]
    fn agents_in_one_conversation_run_one_at_a_time() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        for (agent, conversation) in [("ada", "c-1"), ("bob", "c-1"), ("eve", "c-2")] {
            set_conversation(&dispatcher, agent, conversation);
        }
        for (id, agent) in [(1, "ada"), (2, "ada"), (3, "bob"), (4, "eve")] {
            dispatcher.update(&RunId::of(id), &run(agent, 5, 1));
        }
        assert_eq!(claimed(&dispatcher, 1), [1, 4]);
        dispatcher.release(&RunId::of(1));
        assert_eq!(claimed(&dispatcher, 1), [2]);
        dispatcher.release(&RunId::of(2));
        assert_eq!(claimed(&dispatcher, 1), [3]);
        // A run returns the permit it got, though its agent has another conversation by then.
        set_conversation(&dispatcher, "bob", "c-3");
        dispatcher.update(&RunId::of(5), &run("ada", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), []);
        dispatcher.release(&RunId::of(3));
        assert_eq!(claimed(&dispatcher, 1), [5]);
        dispatcher.remove_agent(&"bob".parse().unwrap());
        dispatcher.release(&RunId::of(4));
        dispatcher.release(&RunId::of(5));
        let queues = dispatcher.queues();
        assert!(
            queues.in_use.is_empty()
                && queues.queues.is_empty()
                && queues.queues_by_resource.is_empty()
        );
        assert_eq!(queues.agents_by_conversation.len(), 2);
    }

    #[test]
    fn one_step_of_priority_counts_as_one_minute_of_waiting() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        set_limit(&dispatcher, "ada", 9);
        for (id, priority, from_s) in [(1, 5, 120), (2, 6, 181), (3, 6, 179), (4, 9, 500)] {
            let queued_at = Timestamp::from_micros(0);
            dispatcher.update(&RunId::of(id), &Run { queued_at, ..run("ada", priority, from_s) });
        }
        assert_eq!(claimed(&dispatcher, 200), [3, 1, 2]);
        assert_eq!(dispatcher.next_ready_at(), Some(Timestamp::from_micros(500_000_000)));
    }

    #[test]
    fn no_run_waits_again_after_the_clock_is_set_back() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        set_limit(&dispatcher, "ada", 9);
        dispatcher.update(&RunId::of(1), &run("ada", 5, 1_000));
        let retried = Run {
            state: State::Queued { from: Timestamp::from_micros(1_060_000_000) },
            queued_again_at: Some(Timestamp::from_micros(1_000_000_000)),
            ..run("ada", 5, 900)
        };
        dispatcher.update(&RunId::of(2), &retried);
        let waits = Run { queued_at: Timestamp::from_micros(0), ..run("ada", 5, 500) };
        dispatcher.update(&RunId::of(3), &waits);
        assert_eq!(claimed(&dispatcher, 400), [1, 2]);
        assert_eq!(claimed(&dispatcher, 500), [3]);
    }

    #[test]
    fn claimed_runs_have_a_total_limit() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        for agent in 0..100 {
            set_limit(&dispatcher, &format!("agent-{agent}"), 9);
        }
        for id in 0..1_000 {
            dispatcher.update(&RunId::of(id), &run(&format!("agent-{}", id % 100), 5, 1));
        }
        assert_eq!(claimed(&dispatcher, 1).len(), CLAIMED_MAX);
        assert_eq!(claimed(&dispatcher, 1).len(), 0);
        dispatcher.release(&RunId::of(0));
        assert_eq!(claimed(&dispatcher, 1).len(), 1);
    }

    #[test]
    fn a_run_has_one_position_and_none_before_the_dispatcher_opens() {
        let dispatcher = Dispatcher::default();
        dispatcher.update(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), []);
        dispatcher.open();
        dispatcher.update(&RunId::of(1), &run("ada", 5, 1));
        dispatcher.update(
            &RunId::of(1),
            &Run { queued_at: Timestamp::from_micros(0), ..run("ada", 5, 2) },
        );
        assert_eq!(claimed(&dispatcher, 1), []);
        assert_eq!(claimed(&dispatcher, 2), [1]);
    }

    #[test]
    fn a_run_that_is_requeued_while_running_waits_for_its_release() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        dispatcher.update(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), [1]);
        dispatcher.update(&RunId::of(1), &run("ada", 5, 3));
        assert_eq!(claimed(&dispatcher, 9), []);
        dispatcher.release(&RunId::of(1));
        assert_eq!(dispatcher.next_ready_at(), Some(Timestamp::from_micros(3_000_000)));
        assert_eq!(claimed(&dispatcher, 3), [1]);
        dispatcher.release(&RunId::of(1));
        assert_eq!(claimed(&dispatcher, 9), []);
    }

    #[test]
    fn a_run_that_ended_while_queued_is_not_claimed() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        let ended = Run { state: State::Ended(Outcome::Cancelled), ..run("ada", 5, 1) };
        for now_s in [0, 1] {
            dispatcher.update(&RunId::of(1), &run("ada", 5, 1));
            dispatcher.claim_ready(Timestamp::from_micros(now_s));
            dispatcher.update(&RunId::of(1), &ended);
            assert_eq!(claimed(&dispatcher, 1), []);
        }
    }

    fn try_claim(
        dispatcher: &Dispatcher,
        id: u128,
        requirements: (&str, &[&str]),
        now_s: i64,
    ) -> bool {
        let agent = Some(requirements.0.parse().unwrap());
        let keys = requirements.1.iter().map(|key| key.parse().unwrap()).collect();
        let now = Timestamp::from_micros(now_s * 1_000_000);
        let schedule = "sch_00000000".parse().unwrap();
        dispatcher
            .queues()
            .try_claim(RunId::of(id), &schedule, QueueKey { agent, keys }, now)
            .is_some()
    }

    #[test]
    fn a_new_run_is_claimed_only_if_no_run_waits_before_it() {
        let dispatcher = Dispatcher::default();
        assert!(!try_claim(&dispatcher, 1, ("ada", &[]), 1), "not open");
        dispatcher.open();
        dispatcher.stop();
        assert!(!try_claim(&dispatcher, 1, ("ada", &[]), 1), "paused");
        dispatcher.end_stop();
        set_limit(&dispatcher, "ada", 2);
        assert!(try_claim(&dispatcher, 1, ("ada", &["deploy"]), 1));
        assert!(!try_claim(&dispatcher, 2, ("ada", &["deploy"]), 1), "the key is in use");
        assert!(try_claim(&dispatcher, 3, ("ada", &[]), 1));
        assert!(!try_claim(&dispatcher, 4, ("ada", &[]), 1), "no permit is free");

        dispatcher.update(&RunId::of(5), &run("ada", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), []);
        dispatcher.release(&RunId::of(3));
        assert!(!try_claim(&dispatcher, 6, ("ada", &[]), 1), "a queued run waits for that permit");
        assert!(
            !try_claim(&dispatcher, 6, ("bob", &[]), 1),
            "a ready queue comes before any new run"
        );
        assert_eq!(claimed(&dispatcher, 1), [5]);
        assert!(try_claim(&dispatcher, 6, ("bob", &[]), 1));
        dispatcher.update(&RunId::of(7), &run("eve", 5, 2));
        assert!(try_claim(&dispatcher, 8, ("zoe", &[]), 1), "the delayed run is not due");
        assert!(!try_claim(&dispatcher, 9, ("kim", &[]), 2));
    }

    #[test]
    fn a_new_run_that_could_not_start_is_queued_when_released() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        assert!(try_claim(&dispatcher, 1, ("ada", &[]), 1));
        dispatcher.update(&RunId::of(1), &run("ada", 5, 1));
        assert_eq!(claimed(&dispatcher, 1), []);
        dispatcher.release(&RunId::of(1));
        assert_eq!(claimed(&dispatcher, 1), [1]);
        dispatcher.release(&RunId::of(1));
        assert!(try_claim(&dispatcher, 2, ("ada", &[]), 1));
        dispatcher.release(&RunId::of(2));
        let queues = dispatcher.queues();
        assert!(queues.in_use.is_empty() && queues.positions.is_empty() && queues.claimed == 0);
    }

    #[test]
    fn long_queues_do_not_starve_other_agents() {
        let dispatcher = Dispatcher::default();
        dispatcher.open();
        for agent in 0..20 {
            set_limit(&dispatcher, &format!("agent-{agent:02}"), CLAIMED_MAX);
        }
        for id in 0..10_000 {
            dispatcher.update(&RunId::of(id), &run(&format!("agent-{:02}", id % 20), 5, 1));
        }
        let mut running = claimed(&dispatcher, 1);
        dispatcher.update(&RunId::of(77_777), &run("zoe", 0, 1));
        for _ in 0..CLAIMED_MAX {
            dispatcher.release(&RunId::of(running.remove(0)));
            running.extend(claimed(&dispatcher, 2));
            if running.contains(&77_777) {
                return;
            }
        }
        panic!("zoe waited for more runs than can run at once");
    }
}
