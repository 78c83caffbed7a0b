//! A scrape: all metrics as text. Gauges are computed here, from memory, counters of the store and short lists, so that
//! a scrape costs the same however many runs there are.

use api::{Error, LIVE_COUNTED_MAX};
use kernel::approval::{self, OPEN};
use kernel::authority::LeaseState;
use kernel::backend::Tier;
use kernel::{Counter, Noun, Timestamp, budget, run};
use metrics::Exposition;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::{BEFORE_ALL_DUE, Due, Item, Newest};

use crate::engine::Engine;
use crate::engine::event_metrics::tier_name;
use crate::errors;

/// Due times up to this are not those of a slot: the schedule has a buffered slot that may run now.
const NO_SLOT: (i64, &str) = (1, "");
const TIERS: [Option<Tier>; 3] =
    [Some(Tier::ReadOnly), Some(Tier::LocalWrite), Some(Tier::External)];

/// What a gauge needs of a listed run; the rest of its row is not decoded.
#[derive(Deserialize)]
struct LiveRun {
    state: run::State,
}

/// What a gauge needs of a listed approval.
#[derive(Deserialize)]
struct OpenApproval {
    state: approval::State,
    #[serde(rename = "asked_at")]
    requested_at: Timestamp,
    plan: PlanTier,
}

#[derive(Deserialize)]
struct PlanTier {
    tier: Tier,
}

impl Engine {
    /// All metrics, in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, Error> {
        let mut out = Exposition::default();
        self.metrics.write(&mut out);
        if let Some(batches) = self.store.batches() {
            batches.write(&mut out);
        }
        self.write_waiting(&mut out).await?;
        self.write_runs(&mut out).await?;
        self.write_approvals(&mut out).await?;
        self.write_budgets(&mut out).await?;
        self.write_authority(&mut out).await?;
        self.write_ledger(&mut out).await?;
        let labels =
            [self.installation.settings.version.as_str(), self.installation.posture.name()];
        out.write(&metrics::BUILD_INFO, [(labels, 1.0)]);
        Ok(out.into_text())
    }

    async fn write_waiting(&self, out: &mut Exposition) -> Result<(), Error> {
        let now = self.time.now();
        let noun = Noun::Progress.name();
        let due = Due { noun, after: NO_SLOT, until_us: now.as_micros(), limit: 1 };
        let overdue = self.store.list_due(due).await.map_err(errors::store)?;
        let since = overdue.first().and_then(|item| item.due_us).map(Timestamp::from_micros);
        out.write(&metrics::SLOT_OVERDUE_OLDEST, [([], age(since, now))]);
        let [agents, tools] = self.dispatcher.waiting();
        let queues = [(["agent"], agents), (["tool"], tools)];
        out.write(&metrics::QUEUE_DEPTH, queues.map(|(kind, runs)| (kind, number(runs.count))));
        let oldest = queues.map(|(kind, runs)| (kind, age(runs.since, now)));
        out.write(&metrics::QUEUE_OLDEST, oldest);
        Ok(())
    }

    async fn write_runs(&self, out: &mut Exposition) -> Result<(), Error> {
        let (noun, limit) = (Noun::Run.name(), LIVE_COUNTED_MAX);
        let live = Due { noun, after: BEFORE_ALL_DUE, until_us: i64::MAX, limit };
        let live = self.store.list_due(live).await.map_err(errors::store)?;
        let states = live.iter().map(|item| Ok(decode::<LiveRun>(item)?.state.name()));
        let states: Vec<&str> = states.collect::<Result<_, Error>>()?;
        let count = |state| states.iter().filter(|it| **it == state).count();
        let samples = metrics::STATE.values.iter().map(|state| ([*state], number(count(*state))));
        out.write(&metrics::RUNS_LIVE, samples);
        Ok(())
    }

    async fn write_approvals(&self, out: &mut Exposition) -> Result<(), Error> {
        let (noun, index_key) = (Noun::Approval.name(), Some(OPEN));
        let open = Newest { noun, index_key, before: "", limit: LIVE_COUNTED_MAX };
        let mut pending = Vec::new();
        for item in self.store.list_newest(open).await.map_err(errors::store)? {
            let approval: OpenApproval = decode(&item)?;
            if matches!(approval.state, approval::State::Pending { .. }) {
                pending.push((approval.plan.tier, approval.requested_at));
            }
        }
        let now = self.time.now();
        let of = |tier| pending.iter().filter(move |(its, _)| Some(*its) == tier);
        let counts = TIERS.map(|tier| ([tier_name(tier)], number(of(tier).count())));
        out.write(&metrics::APPROVALS_PENDING, counts);
        let oldest = |tier| age(of(tier).map(|(_, at)| *at).min(), now);
        out.write(&metrics::APPROVAL_OLDEST, TIERS.map(|tier| ([tier_name(tier)], oldest(tier))));
        Ok(())
    }

    async fn write_budgets(&self, out: &mut Exposition) -> Result<(), Error> {
        let day = budget::day(self.time.monotonic_now().latest);
        let limits = self.config.active().limits;
        let budgets = [
            ("runs", Counter::Runs(day), limits.runs),
            ("tokens", Counter::TokensSpent(day), limits.tokens),
            ("money", Counter::Cost(day), limits.money.as_micros()),
        ];
        let mut samples = Vec::new();
        for (unit, counter, max) in budgets {
            if 0 < max {
                let used = self.budgets.count(&counter).await?;
                samples.push((["installation", unit], used as f64 / max as f64));
            }
        }
        out.write(&metrics::BUDGET_USED, samples);
        Ok(())
    }

    async fn write_authority(&self, out: &mut Exposition) -> Result<(), Error> {
        let authority = self.authority.load().await?;
        let (lease, now) = (self.config.active().lease, self.time.now());
        let steps = [LeaseState::Ask, LeaseState::Paused];
        let steps = steps.map(|state| authority.lease_state_starts_at(lease, state));
        let left = |at: &Timestamp| seconds(at.as_micros().saturating_sub(now.as_micros()));
        let steps: Vec<f64> = steps.iter().flatten().map(left).collect();
        let next = steps.iter().copied().filter(|left| 0.0 < *left).reduce(f64::min);
        let next = next.or(steps.first().map(|_| 0.0));
        out.write(&metrics::LEASE_NEXT_STEP, next.map(|left| ([], left)));
        out.write(&metrics::FROZEN, [([], flag(authority.frozen.is_some()))]);
        Ok(())
    }

    async fn write_ledger(&self, out: &mut Exposition) -> Result<(), Error> {
        let now = self.time.now();
        let head = self.store.head().await.map_err(errors::store)?;
        out.write(&metrics::LOG_ENTRIES, [([], head.size() as f64)]);
        let is_sound = self.write_guard.stopped_writing().is_none() && !self.integrity.has_failed();
        out.write(&metrics::LOG_CHECK, [([], flag(is_sound))]);
        let last = self.store.last_checkpoint().await.map_err(errors::store)?;
        let covered = last.map(|last| Timestamp::from_micros(last.chain.ts_us()));
        let covered = covered.map(|at| ([], age(Some(at), now)));
        out.write(&metrics::CHECKPOINT_AGE, covered);
        let copied = self.checkpoints.is_copied().map(|is_copied| ([], flag(is_copied)));
        out.write(&metrics::CHECKPOINT_COPY, copied);
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(item: &Item) -> Result<T, Error> {
    serde_json::from_slice(item.body.as_deref().unwrap_or_default()).map_err(errors::internal)
}

/// The seconds since a time; 0 if there is none, or if it has not come.
fn age(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(0.0, |since| seconds(now.as_micros().saturating_sub(since.as_micros()).max(0)))
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1_000_000.0
}

fn number(count: usize) -> f64 {
    count as f64
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
