//! The status of the installation.

use api::{
    Budget, BudgetLimit, Capability, Error, Health, HealthShow, LIVE_COUNTED_MAX, LedgerStatus,
    LiveRuns, NextDue, Serve, Status, StatusShow,
};
use kernel::agent::SILENCED;
use kernel::approval::OPEN;
use kernel::backend::BackendKind;
use kernel::posture::{DisabledBy, is_opt_in};
use kernel::progress::PAUSED_BY_SYSTEM;
use kernel::run::{Run, State};
use kernel::{Counter, Noun, Timestamp};
use store::{BEFORE_ALL_DUE, Due, Newest};

use crate::authorize::scope::RunnerScope;
use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::engine::Engine;
use crate::engine::clock_monitor::clock_problem;
use crate::errors;
use crate::handlers::approvals;
use crate::timestamps::rfc3339;
use crate::wire;

/// The status, cut down to what the caller may see: an agent learns nothing about other agents.
impl Serve<StatusShow> for Engine {
    async fn serve(&self, caller: &Caller, _: StatusShow) -> Result<Status, Error> {
        let (actor, status) = (&caller.actor, self.status().await?);
        let scope = match actor.is_assistant() {
            true => None,
            false => self.scope.runner_scope(actor, "schedule.read", None).await?,
        };
        let Some(RunnerScope { agent, may_manage_others: false, .. }) = scope else {
            return Ok(status);
        };
        let is_own = |limit: &BudgetLimit| limit.name.as_deref() == Some(agent.as_str());
        let used_up = status.budget.used_up.into_iter().filter(is_own).collect();
        Ok(Status {
            budget: Budget { used_up, ..status.budget },
            runs: LiveRuns { running: Vec::new(), ..status.runs },
            next: None,
            unknown: Vec::new(),
            approvals: Vec::new(),
            paused: Vec::new(),
            silenced: Vec::new(),
            notices: Vec::new(),
            ..status
        })
    }
}

impl Serve<HealthShow> for Engine {
    async fn serve(&self, _: &Caller, _: HealthShow) -> Result<Health, Error> {
        let chain = self.store.head().await.map_err(errors::store)?;
        let stopped = self.write_guard.stopped_writing().map(|reason| reason.to_string());
        Ok(Health { daemon: self.wire_engine(), entries: chain.size(), stopped })
    }
}

impl Engine {
    fn wire_engine(&self) -> api::DaemonStatus {
        let settings = &self.installation.settings;
        let running = self.lifecycle.running();
        api::DaemonStatus {
            running: running.is_some(),
            pid: running.as_ref().map(|_| std::process::id()),
            since: running.as_ref().map(|running| rfc3339(running.since)),
            version: settings.version.clone(),
            data: settings.data.display().to_string(),
            posture: wire::posture(self.installation.posture),
            policy: self.config.active().rules.version().to_owned(),
            warnings: running.map(|running| running.warnings).unwrap_or_default(),
        }
    }

    async fn status(&self) -> Result<Status, Error> {
        let store = &*self.store;
        let chain = store.head().await.map_err(errors::store)?;
        let checkpoint = store.last_checkpoint().await.map_err(errors::store)?;
        let (mut queued, mut waiting, mut running, mut unknown) = (0, 0, Vec::new(), Vec::new());
        let live = store
            .list_due(Due {
                noun: Noun::Run.name(),
                after: BEFORE_ALL_DUE,
                until_us: i64::MAX,
                limit: LIVE_COUNTED_MAX,
            })
            .await;
        for item in live.map_err(errors::store)? {
            let (id, run) = codec::decode_listed::<Run>(&item)?;
            match run.state {
                State::Queued { .. } => queued += 1,
                State::Parked => waiting += 1,
                State::Running { .. } => running.push(id.to_string()),
                State::Ended(_) => unknown.push(id.to_string()),
            }
        }
        Ok(Status {
            daemon: self.wire_engine(),
            ledger: LedgerStatus {
                instance: self.installation.instance.to_owned(),
                key: self.installation.signing_key.verifying_key().to_text(),
                entries: chain.size(),
                head: chain.head().to_string(),
                checkpoint: checkpoint.map_or(0, |checkpoint| checkpoint.chain.size()),
                stopped: self.write_guard.stopped_writing().map(|reason| reason.to_string()),
                check: self.integrity.result(),
                clock: clock_problem(&self.time),
            },
            authority: self.authority.to_wire(&self.authority.load().await?),
            budget: self.budgets.status().await?,
            agents: self.budgets.count(&Counter::Objects(Noun::Agent)).await?,
            schedules: self.budgets.count(&Counter::Objects(Noun::Schedule)).await?,
            runs: LiveRuns { queued, running, waiting },
            next: self.next_due().await?,
            unknown,
            approvals: self.open_approvals().await?,
            paused: self.paused_by_system().await?,
            silenced: self.silenced().await?,
            notices: self.notifier.deliveries.list(),
            capabilities: self.capabilities(),
        })
    }

    /// What this version supports, from the same tables that the code uses.
    fn capabilities(&self) -> Vec<Capability> {
        let backends = BackendKind::ALL.into_iter().map(|kind| {
            let supported = agents::supports(kind);
            let why = (!supported).then(|| "this version does not support the backend yet".into());
            let name = format!("agent.{kind}");
            let containment = Some(wire::containment(kind.containment()));
            Capability { name, supported, enabled: supported, why, opt_in: false, containment }
        });
        let posture = self.installation.posture;
        let switches = self.config.active().trust.switches(posture).map(|(name, off)| {
            let why = match off {
                Some(DisabledBy::Posture) => {
                    Some(format!("the posture {posture} does not allow it"))
                }
                Some(DisabledBy::Flag(flag)) if is_opt_in(flag) => {
                    Some(format!("`feature_flags.{flag}` switches it on"))
                }
                Some(DisabledBy::Flag(flag)) => {
                    Some(format!("`feature_flags.{flag}` switches it off"))
                }
                None => None,
            };
            let (enabled, opt_in) = (why.is_none(), is_opt_in(name));
            let name = name.to_owned();
            Capability { name, supported: true, enabled, why, opt_in, containment: None }
        });
        backends.chain(switches).collect()
    }

    async fn open_approvals(&self) -> Result<Vec<String>, Error> {
        let (noun, index_key) = (Noun::Approval.name(), Some(OPEN));
        let found = self
            .store
            .list_newest(Newest { noun, index_key, before: "", limit: LIVE_COUNTED_MAX })
            .await;
        let mut found = found.map_err(errors::store)?;
        // The first to expire comes first. Approved ones, which wait for a permit, are left out below.
        found.sort_by_key(|item| item.due_us);
        let mut pending = Vec::new();
        for item in found {
            if approvals::is_pending(&item)? {
                pending.push(item.id);
            }
        }
        Ok(pending)
    }

    async fn paused_by_system(&self) -> Result<Vec<String>, Error> {
        let (noun, index_key) = (Noun::Progress.name(), Some(PAUSED_BY_SYSTEM));
        let found = self
            .store
            .list_newest(Newest { noun, index_key, before: "", limit: LIVE_COUNTED_MAX })
            .await;
        Ok(found.map_err(errors::store)?.into_iter().map(|item| item.id).collect())
    }

    /// Agents that request no more approvals after consecutive denials.
    async fn silenced(&self) -> Result<Vec<String>, Error> {
        let (noun, index_key) = (Noun::Agent.name(), Some(SILENCED));
        let found = self
            .store
            .list_newest(Newest { noun, index_key, before: "", limit: LIVE_COUNTED_MAX })
            .await;
        Ok(found.map_err(errors::store)?.into_iter().map(|item| item.id).collect())
    }

    /// The schedule that is due next, and when.
    async fn next_due(&self) -> Result<Option<NextDue>, Error> {
        let due = self
            .store
            .list_due(Due {
                noun: Noun::Progress.name(),
                after: BEFORE_ALL_DUE,
                until_us: i64::MAX,
                limit: 1,
            })
            .await;
        let first = due.map_err(errors::store)?.into_iter().next();
        Ok(first.and_then(|item| {
            let at = rfc3339(Timestamp::from_micros(item.due_us?));
            Some(NextDue { schedule_id: item.id, at })
        }))
    }
}
