//! The status of the installation.

use api::{
    Budget, BudgetLimit, Capability, Error, Failures, Health, HealthShow, LIVE_COUNTED_MAX,
    LedgerStatus, LiveRuns, NextDue, PausedSchedule, Serve, Status, StatusShow, UPCOMING_MAX,
    WaitingRun,
};
use kernel::agent::SILENCED;
use kernel::approval::{self, Approval, OPEN};
use kernel::backend::BackendKind;
use kernel::posture::{DisabledBy, is_opt_in};
use kernel::progress::PAUSED_BY_SYSTEM;
use kernel::run::{Run, State};
use kernel::{Actor, Counter, Noun, Timestamp};
use store::{BEFORE_ALL_DUE, Due, Newest};

use crate::authorize::scope::RunnerScope;
use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::engine::Engine;
use crate::engine::clock_monitor::clock_problem;
use crate::errors;
use crate::handlers::seen::status_run;
use crate::timestamps::rfc3339;
use crate::wire;

/// The file of an embedded store, in the data directory.
const DATABASE_FILE: &str = "midwatch.db";

/// The status, cut down to what the caller may see: an agent learns nothing about other agents.
impl Serve<StatusShow> for Engine {
    async fn serve(&self, caller: &Caller, _: StatusShow) -> Result<Status, Error> {
        let (actor, status) = (&caller.actor, self.status(&caller.actor).await?);
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
            failures: Failures { runs: Vec::new(), ..status.failures },
            waiting: Vec::new(),
            running: Vec::new(),
            upcoming: Vec::new(),
            runs: LiveRuns { running: Vec::new(), ..status.runs },
            next: None,
            unknown: Vec::new(),
            unknown_runs: Vec::new(),
            approvals: Vec::new(),
            paused: Vec::new(),
            paused_schedules: Vec::new(),
            silenced: Vec::new(),
            notices: Vec::new(),
            disk: None,
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
            store: self.describe_store(),
            posture: wire::posture(self.installation.posture),
            policy: self.config.active().rules.version().to_owned(),
            warnings: running.map(|running| running.warnings).unwrap_or_default(),
        }
    }

    /// The database with the store, which several daemons may share. `None` if it is the data directory's own file.
    pub(super) fn database_url(&self) -> Option<String> {
        let config = self.config.active();
        let url = config.keys.iter().find(|it| it.key == "store.url")?;
        Some(url.value.trim_matches('"').to_owned()).filter(|url| !url.is_empty())
    }

    /// The kind of the store and where it is. A file that is no longer used is easily mistaken for it.
    fn describe_store(&self) -> String {
        match self.database_url() {
            None => format!("SQLite ({DATABASE_FILE})"),
            Some(url) if self.installation.settings.data.join(DATABASE_FILE).exists() => {
                format!("PostgreSQL ({url}); `{DATABASE_FILE}` beside it is not used")
            }
            Some(url) => format!("PostgreSQL ({url})"),
        }
    }

    async fn status(&self, actor: &Actor) -> Result<Status, Error> {
        let store = &*self.store;
        // A failure after this instant is new to a person who has seen this status.
        let now = self.time.now();
        let chain = store.head().await.map_err(errors::store)?;
        let checkpoint = store.last_checkpoint().await.map_err(errors::store)?;
        let (mut queued, mut parked, mut running, mut unknown) = (0, 0, Vec::new(), Vec::new());
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
                State::Parked => parked += 1,
                State::Running { .. } => running.push(status_run(&id, &run, run.started_at)),
                State::Ended(_) => unknown.push(status_run(&id, &run, run.finished_at)),
            }
        }
        let waiting = self.waiting_runs().await?;
        let upcoming = self.upcoming().await?;
        let paused = self.paused_by_system().await?;
        let paused_schedules = paused
            .iter()
            .map(|id| PausedSchedule { schedule_id: id.clone(), schedule_name: None })
            .collect();
        unknown.sort_by(|one, other| other.at.cmp(&one.at));
        let live = running.iter().map(|run| run.run_id.clone()).collect();
        // A command without a daemon has nothing better to do than to measure.
        let disk = match self.lifecycle.running() {
            Some(running) => running.disk,
            None => Some(self.disk_use_at_once().await?),
        };
        let mut status = Status {
            at: rfc3339(now),
            daemon: self.wire_engine(),
            failures: self.failures(actor, now).await?,
            ledger: LedgerStatus {
                instance: self.installation.instance.to_owned(),
                key: self.installation.signing_key.verifying_key().to_text(),
                entries: chain.size(),
                head: chain.head().to_string(),
                checkpoint: checkpoint.map_or(0, |checkpoint| checkpoint.chain.size()),
                stopped: self.write_guard.stopped_writing().map(|reason| reason.to_string()),
                failing: self.write_guard.failing(),
                check: self.integrity.result(),
                clock: clock_problem(&self.time),
            },
            authority: self.authority.to_wire(&self.authority.load().await?),
            budget: self.budgets.status().await?,
            agents: self.budgets.count(&Counter::Objects(Noun::Agent)).await?,
            schedules: self.budgets.count(&Counter::Objects(Noun::Schedule)).await?,
            runs: LiveRuns { queued, running: live, waiting: parked },
            next: upcoming.first().cloned(),
            upcoming,
            running,
            unknown: unknown.iter().map(|run| run.run_id.clone()).collect(),
            unknown_runs: unknown,
            approvals: waiting.iter().map(|run| run.approval_id.clone()).collect(),
            waiting,
            paused,
            paused_schedules,
            silenced: self.silenced().await?,
            notices: self.notifier.deliveries.list(),
            disk,
            capabilities: self.capabilities(),
        };
        self.name_schedules(&mut status).await?;
        Ok(status)
    }

    /// Adds the names of all schedules that a status mentions.
    async fn name_schedules(&self, status: &mut Status) -> Result<(), Error> {
        let ended = status.failures.runs.iter_mut().chain(&mut status.unknown_runs);
        let runs = ended.chain(&mut status.running);
        let runs = runs.map(|it| (&it.schedule_id, &mut it.schedule_name));
        let waiting = status.waiting.iter_mut().map(|it| (&it.schedule_id, &mut it.schedule_name));
        let next = status.upcoming.iter_mut().chain(&mut status.next);
        let next = next.map(|it| (&it.schedule_id, &mut it.schedule_name));
        let paused = status.paused_schedules.iter_mut();
        let paused = paused.map(|it| (&it.schedule_id, &mut it.schedule_name));
        let limits = status.budget.used_up.iter_mut();
        let limits = limits.filter_map(|it| Some((it.name.as_ref()?, &mut it.schedule_name)));
        let mentioned: Vec<(&String, &mut Option<String>)> =
            runs.chain(waiting).chain(next).chain(paused).chain(limits).collect();
        let names = self.schedule_names(mentioned.iter().map(|(id, _)| id.as_str())).await?;
        for (id, name) in mentioned {
            *name = names.get(id).cloned();
        }
        Ok(())
    }

    /// What this version supports, from the same tables that the code uses.
    fn capabilities(&self) -> Vec<Capability> {
        let backends = BackendKind::ALL.into_iter().map(|kind| {
            let supported = agents::supports(kind);
            let why = (!supported).then(|| "not available in this version".into());
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
                    Some(format!("`feature_flags.{flag}` turns it on"))
                }
                Some(DisabledBy::Flag(flag)) => {
                    Some(format!("`feature_flags.{flag}` turns it off"))
                }
                None => None,
            };
            let (enabled, opt_in) = (why.is_none(), is_opt_in(name));
            let name = name.to_owned();
            Capability { name, supported: true, enabled, why, opt_in, containment: None }
        });
        backends.chain(switches).collect()
    }

    /// Pending approvals; the first to expire comes first.
    async fn waiting_runs(&self) -> Result<Vec<WaitingRun>, Error> {
        let (noun, index_key) = (Noun::Approval.name(), Some(OPEN));
        let found = self
            .store
            .list_newest(Newest { noun, index_key, before: "", limit: LIVE_COUNTED_MAX })
            .await;
        let mut found = found.map_err(errors::store)?;
        found.sort_by_key(|item| item.due_us);
        let mut waiting = Vec::new();
        for item in found {
            let (id, approval) = codec::decode_listed::<Approval>(&item)?;
            // Approved ones wait for a permit.
            let approval::State::Pending { approve_by } = approval.state else { continue };
            let plan = approval.plan;
            waiting.push(WaitingRun {
                approval_id: id.to_string(),
                run_id: plan.run.to_string(),
                schedule_id: plan.schedule.to_string(),
                schedule_name: None,
                agent: plan.agent.as_ref().map(ToString::to_string),
                approve_by: rfc3339(approve_by),
            });
        }
        Ok(waiting)
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

    /// The next schedules that are due, and when.
    async fn upcoming(&self) -> Result<Vec<NextDue>, Error> {
        let due = self
            .store
            .list_due(Due {
                noun: Noun::Progress.name(),
                after: BEFORE_ALL_DUE,
                until_us: i64::MAX,
                limit: UPCOMING_MAX,
            })
            .await;
        let next = due.map_err(errors::store)?.into_iter().filter_map(|item| {
            let at = rfc3339(Timestamp::from_micros(item.due_us?));
            Some(NextDue { schedule_id: item.id, schedule_name: None, at })
        });
        Ok(next.collect())
    }
}
