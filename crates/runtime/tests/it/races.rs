//! Requests that race with the start of an approved run, on several threads.
//!
//! The seed fixes which requests are made and in which order their tasks begin; the threads decide the rest. What must
//! hold is checked for every race, and in the ledger afterwards.

use std::collections::HashSet;
use std::sync::Arc;

use api::{
    Approval, ApprovalDecide, ApprovalShow, Code, Decision, Error, Freeze, LedgerTail, Run,
    RunCancel, RunWatch, ScheduleAdd, Terms, Thaw, send,
};
use kernel::budget::Limits;
use kernel::{Actor, Role};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, yield_now};

use crate::steps::*;
use crate::world::{World, builtin, run_engine};

const RACES: usize = 1_000;
const SEED: u64 = 22;
/// How long a request waits for a change, in milliseconds.
const WAIT_MS: u32 = 10_000;

/// A request of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entrant {
    Approve,
    Revoke,
    Freeze,
}

use Entrant::{Approve, Revoke};

/// What an entrant got: whether it changed something, or a refusal.
type Outcome = (Entrant, Result<bool, Error>);

struct Race {
    run: String,
    approval: Approval,
    outcomes: Vec<Outcome>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A world with a schedule of tier 2, and no limits on its runs.
async fn world_to_race_in() -> (World, String) {
    let mut world = World::new().await;
    world.limits = Limits { runs: 0, runs_per_agent: 0, asks_per_agent: 0, ..Limits::default() };
    world.reopen().await.unwrap();
    world.send(of_tier(2, builtin("ada"))).await.unwrap();
    let overlap = Some("allow:100".to_owned());
    let terms = Terms { per_day: Some(1_000_000), overlap, ..Terms::default() };
    let schedule = add(&world, ScheduleAdd { terms, ..every("1000h", "hello") }).await;
    (world, schedule)
}

/// Waits until the run is as wanted.
async fn wait_for_run(world: &World, id: &str, is_wanted: impl Fn(&Run) -> bool) -> Run {
    let mut seen = None;
    loop {
        let watch = RunWatch { id: id.to_owned(), seen, wait_ms: WAIT_MS };
        let watched = world.send(watch).await.unwrap();
        if is_wanted(&watched.run) {
            return watched.run;
        }
        assert!(!watched.ended, "{:?}", watched.run);
        seen = Some(watched.seen);
    }
}

/// Starts a run and lets the entrants race for its approval.
async fn race(
    world: &World,
    schedule: &str,
    mut entrants: Vec<Entrant>,
    random: &mut Random,
) -> Race {
    let run = fire(world, schedule).await.id;
    let parked = wait_for_run(world, &run, |run| run.approval_id.is_some()).await;
    let show = ApprovalShow { id: parked.approval_id.unwrap() };
    let approval = world.send(show).await.unwrap().approval;
    for index in (1..entrants.len()).rev() {
        entrants.swap(index, random.below(index + 1));
    }
    let barrier = Arc::new(Barrier::new(entrants.len()));
    let mut tasks = JoinSet::new();
    for entrant in entrants {
        let (delays, barrier) = (random.below(4), barrier.clone());
        let olga = Actor::token_holder("olga".parse().unwrap(), Role::Maintainer);
        let (handle, approval) = (world.engine.handle(olga), approval.clone());
        tasks.spawn(async move {
            let decide = |decision| ApprovalDecide {
                plan_hash: Some(approval.plan_hash.clone()),
                ..ApprovalDecide::new(&approval.id, decision)
            };
            barrier.wait().await;
            for _ in 0..delays {
                yield_now().await;
            }
            let outcome = match entrant {
                Approve => send(&handle, decide(Decision::Approve)).await.map(|it| it.changed),
                Revoke => send(&handle, decide(Decision::Revoke)).await.map(|it| it.changed),
                Entrant::Freeze => send(&handle, Freeze { note: None }).await.map(|it| it.changed),
            };
            (entrant, outcome)
        });
    }
    let outcomes = tasks.join_all().await;
    Race { run, approval, outcomes }
}

impl Race {
    /// How many entrants of this kind changed something.
    fn changed(&self, entrant: Entrant) -> usize {
        let of = self.outcomes.iter().filter(|(it, _)| *it == entrant);
        of.filter(|(_, outcome)| matches!(outcome, Ok(true))).count()
    }

    fn refusals(&self, entrant: Entrant) -> Vec<Code> {
        let of = self.outcomes.iter().filter(|(it, _)| *it == entrant);
        of.filter_map(|(_, outcome)| Some(outcome.as_ref().err()?.code)).collect()
    }

    fn attempts(&self, world: &World) -> usize {
        let started = world.backend.started.lock().unwrap();
        started.iter().filter(|attempt| attempt.run == self.run).count()
    }

    async fn state(&self, world: &World) -> &'static str {
        let show = ApprovalShow { id: self.approval.id.clone() };
        world.send(show).await.unwrap().approval.state.as_str()
    }
}

/// Checks the order of the entries: no run starts while frozen, and none starts twice. Returns how many approvals were
/// consumed and how often it was frozen.
async fn check_order(world: &World) -> (usize, usize) {
    let (mut after, mut is_frozen, mut freezes) = (Some(0), false, 0);
    let mut consumed = HashSet::new();
    loop {
        let tail = LedgerTail { after, limit: Some(1_000), ..LedgerTail::default() };
        let events = world.send(tail).await.unwrap().events;
        let Some(last) = events.last() else { break };
        after = Some(last.seq);
        for event in events {
            match event.kind.as_str() {
                "authority.frozen" => (is_frozen, freezes) = (true, freezes + 1),
                "authority.thawed" => is_frozen = false,
                "run.started" => assert!(!is_frozen, "{event:?}"),
                "approval.consumed" => assert!(consumed.insert(event.id.clone()), "{event:?}"),
                _ => {}
            }
        }
    }
    verify_ledger(world).await;
    (consumed.len(), freezes)
}

/// Attack A2.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hundred_approvals_at_once_start_one_attempt() {
    let (world, schedule) = world_to_race_in().await;
    run_engine(&world, async {
        let mut random = Random(SEED);
        for number in 0..RACES {
            let race = race(&world, &schedule, vec![Approve; 100], &mut random).await;
            assert_eq!(race.changed(Approve), 1, "race {number}: {:?}", race.outcomes);
            assert_eq!(race.refusals(Approve), [], "race {number}");
            wait_for_run(&world, &race.run, |run| run.finished_at.is_some()).await;
            assert_eq!((race.attempts(&world), race.state(&world).await), (1, "consumed"));
        }
    })
    .await;
    assert_eq!(check_order(&world).await, (RACES, 0));
}

/// Attack A11.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revocation_and_start_of_a_run_exclude_each_other() {
    let (world, schedule) = world_to_race_in().await;
    run_engine(&world, async {
        let mut random = Random(SEED);
        let mut ends = [0, 0];
        for number in 0..RACES {
            let entrants = vec![Approve, Approve, Revoke, Revoke];
            let race = race(&world, &schedule, entrants, &mut random).await;
            wait_for_run(&world, &race.run, |run| run.finished_at.is_some()).await;
            let end = (race.changed(Revoke), race.attempts(&world), race.state(&world).await);
            match end {
                (1, 0, "revoked") => ends[0] += 1,
                (0, 1, "consumed") => {
                    assert_eq!(race.refusals(Revoke), [Code::NotNow; 2], "race {number}");
                    ends[1] += 1;
                }
                _ => panic!("race {number}: {end:?}, {:?}", race.outcomes),
            }
        }
        assert!(ends.iter().all(|count| 0 < *count), "one side always wins: {ends:?}");
    })
    .await;
    assert_eq!(check_order(&world).await.1, 0);
}

/// Attacks A2 and A11 with a freeze in place of the revocation.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_run_starts_after_a_freeze_that_races_with_its_approval() {
    let (world, schedule) = world_to_race_in().await;
    run_engine(&world, async {
        let mut random = Random(SEED);
        for number in 0..RACES {
            let entrants = vec![Approve, Approve, Approve, Entrant::Freeze];
            let race = race(&world, &schedule, entrants, &mut random).await;
            assert_eq!(race.changed(Entrant::Freeze), 1, "race {number}: {:?}", race.outcomes);
            assert!(race.changed(Approve) <= 1, "race {number}: {:?}", race.outcomes);
            let cancel = RunCancel { id: race.run.clone(), note: None };
            // It may have ended: by itself, or by the freeze.
            let cancelled = world.send(cancel).await;
            assert!(cancelled.is_ok() || race.attempts(&world) == 1, "race {number}");
            wait_for_run(&world, &race.run, |run| run.finished_at.is_some()).await;
            assert!(race.attempts(&world) <= 1, "race {number}");
            world.send_as(Role::Maintainer, Thaw { note: None }).await.unwrap();
        }
    })
    .await;
    assert_eq!(check_order(&world).await.1, RACES);
}
