//! How things stand.

use api::{Capability, Error, Health, LIVE_COUNTED_MAX, LiveRuns, Log, NextDue, Status};
use kernel::agent::SILENCED;
use kernel::approval::OPEN;
use kernel::backend::BackendKind;
use kernel::posture::Off;
use kernel::progress::PAUSED_BY_WATCH;
use kernel::run::State;
use kernel::{Counter, Noun, Timestamp};
use store::FIRST_DUE;

use crate::anomaly;
use crate::approvals;
use crate::errors;
use crate::runs;
use crate::times::rfc3339;
use crate::watch::Engine;

impl Engine {
    pub(crate) async fn health(&self) -> Result<Health, Error> {
        let chain = self.store().head().await.map_err(errors::store)?;
        let stopped = self.stopped_writing().map(|reason| reason.to_string());
        Ok(Health { watch: self.itself(), entries: chain.size(), stopped })
    }

    fn itself(&self) -> api::Watch {
        let (settings, since) = (self.settings(), self.kept_since().get());
        api::Watch {
            kept: since.is_some(),
            pid: since.map(|_| std::process::id()),
            since: since.map(|at| rfc3339(*at)),
            version: settings.version.clone(),
            data: settings.data.display().to_string(),
            posture: self.posture().name().to_owned(),
            policy: self.in_force().rules.version().to_owned(),
            warnings: self.warnings(),
        }
    }

    pub(crate) async fn status(&self) -> Result<Status, Error> {
        let store = self.store();
        let chain = store.head().await.map_err(errors::store)?;
        let checkpoint = store.last_checkpoint().await.map_err(errors::store)?;
        let (mut queued, mut waiting, mut running, mut unknown) = (0, 0, Vec::new(), Vec::new());
        let live = store.due(Noun::Run.name(), FIRST_DUE, i64::MAX, LIVE_COUNTED_MAX).await;
        for item in live.map_err(errors::store)? {
            let (id, run) = runs::run_in(&item)?;
            match run.state {
                State::Queued { .. } => queued += 1,
                State::Parked => waiting += 1,
                State::Running { .. } => running.push(id.to_string()),
                State::Ended(_) => unknown.push(id.to_string()),
            }
        }
        Ok(Status {
            watch: self.itself(),
            log: Log {
                instance: self.instance().to_owned(),
                key: self.key().verifying_key().to_text(),
                entries: chain.size(),
                head: chain.head().to_string(),
                checkpoint: checkpoint.map_or(0, |checkpoint| checkpoint.chain.size()),
                stopped: self.stopped_writing().map(|reason| reason.to_string()),
                check: self.check_found(),
                clock: anomaly::behind(self.by_log()),
            },
            authority: self.authority_wire(&self.authority().await?),
            budget: self.budget().await?,
            agents: store.counter(&Counter::Agents.name()).await.map_err(errors::store)?,
            schedules: store.counter(&Counter::Schedules.name()).await.map_err(errors::store)?,
            runs: LiveRuns { queued, running, waiting },
            next: self.next_due().await?,
            unknown,
            approvals: self.open_approvals().await?,
            paused: self.paused_by_watch().await?,
            silenced: self.silenced().await?,
            notices: self.channels().shown(),
            capabilities: self.capabilities(),
        })
    }

    /// What this version can do, from where it is looked up when it is done.
    fn capabilities(&self) -> Vec<Capability> {
        let backends = BackendKind::ALL.into_iter().map(|kind| {
            let supported = agents::supports(kind);
            let why = (!supported).then(|| "this version cannot prompt such an agent yet".into());
            Capability { name: format!("agent.{kind}"), supported, enabled: supported, why }
        });
        let posture = self.posture();
        let switches = self.in_force().trust.switches(posture).map(|(name, off)| {
            let why = match off {
                Some(Off::ByPosture) => Some(format!("the posture {posture} does not allow it")),
                Some(Off::ByFlag(flag)) => Some(format!("`feature_flags.{flag}` switches it off")),
                None => None,
            };
            Capability { name: name.to_owned(), supported: true, enabled: why.is_none(), why }
        });
        backends.chain(switches).collect()
    }

    async fn open_approvals(&self) -> Result<Vec<String>, Error> {
        let (noun, under) = (Noun::Approval.name(), Some(OPEN));
        let found = self.store().newest(noun, under, "", LIVE_COUNTED_MAX).await;
        let mut found = found.map_err(errors::store)?;
        // Those that are answered wait for a hand. The one that gives up first comes first.
        found.sort_by_key(|item| item.due_us);
        let mut pending = Vec::new();
        for item in found {
            if approvals::is_pending(&item)? {
                pending.push(item.id);
            }
        }
        Ok(pending)
    }

    async fn paused_by_watch(&self) -> Result<Vec<String>, Error> {
        let (noun, under) = (Noun::Progress.name(), Some(PAUSED_BY_WATCH));
        let found = self.store().newest(noun, under, "", LIVE_COUNTED_MAX).await;
        Ok(found.map_err(errors::store)?.into_iter().map(|item| item.id).collect())
    }

    /// The agents about whom nobody is asked any more.
    async fn silenced(&self) -> Result<Vec<String>, Error> {
        let (noun, under) = (Noun::Agent.name(), Some(SILENCED));
        let found = self.store().newest(noun, under, "", LIVE_COUNTED_MAX).await;
        Ok(found.map_err(errors::store)?.into_iter().map(|item| item.id).collect())
    }

    /// The schedule that is due next, and when.
    async fn next_due(&self) -> Result<Option<NextDue>, Error> {
        let due = self.store().due(Noun::Progress.name(), FIRST_DUE, i64::MAX, 1).await;
        let first = due.map_err(errors::store)?.into_iter().next();
        Ok(first.and_then(|item| {
            let at = rfc3339(Timestamp::from_micros(item.due_us?));
            Some(NextDue { schedule_id: item.id, at })
        }))
    }
}
