//! What the watch may do: frozen and thawed, and the lease that people renew.

use std::time::Duration;

use agents::AgentBackend;
use api::{Answer, AuthorityChanged, Error, Freeze, LeaseRenew, Thaw};
use kernel::authority::{self, Authority, Command, Said, Step};
use kernel::run::{self, State};
use kernel::watch::{Event as WatchEvent, Started};
use kernel::{Actor, Body, Noun, Now, RunId, ScheduleId, Timestamp};
use tokio::select;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::errors;
use crate::rows::{RowKey, Rows};
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;
use crate::work::{defined_by, ground, rows_of};

/// How often to look where another process may freeze the watch: the kill switch works within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often to look whether the runs of a frozen watch have stopped.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// The longest sleep: clocks are set.
const SLEEP: Duration = Duration::from_secs(60);

impl Engine {
    pub(crate) async fn freeze(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: Freeze,
    ) -> Result<Answer, Error> {
        let command = Command::Freeze { note: asked.note };
        self.authorise(actor, key, command, Answer::Freeze).await
    }

    pub(crate) async fn thaw(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: Thaw,
    ) -> Result<Answer, Error> {
        let command = Command::Thaw { note: asked.note };
        self.authorise(actor, key, command, Answer::Thaw).await
    }

    pub(crate) async fn lease_renew(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: LeaseRenew,
    ) -> Result<Answer, Error> {
        let command = Command::Renew { note: asked.note };
        self.authorise(actor, key, command, Answer::LeaseRenew).await
    }

    async fn authorise(
        &self,
        actor: &Actor,
        key: Option<Key>,
        command: Command,
        answer: impl Fn(AuthorityChanged) -> Answer,
    ) -> Result<Answer, Error> {
        let change = Change { rows: vec![self.authority_row()], ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| self.decide_authority(rows, actor, &command, now);
        self.transact(change, decide, |before, after| {
            let (before, after) = (self.authority_in(before), self.authority_in(after));
            let changed = before != after;
            Ok(answer(AuthorityChanged { authority: self.authority_wire(&after), changed }))
        })
        .await
    }

    /// A human has decided something, and so is there.
    pub(crate) async fn attend(&self, actor: &Actor) {
        let change = Change { rows: vec![self.authority_row()], ..Change::by(actor, None) };
        let command = Command::Attend { lease: self.in_force().lease };
        let attended =
            self.act_for(change, |rows, now| self.decide_authority(rows, actor, &command, now));
        if let Err(failed) = attended.await {
            warn!(%failed, "the lease could not be renewed");
        }
    }

    fn decide_authority(
        &self,
        rows: &Rows,
        actor: &Actor,
        command: &Command,
        now: Timestamp,
    ) -> Result<Vec<Body>, Error> {
        let now = Now { clock: self.now(), latest: now };
        let events = authority::decide(&self.authority_in(rows), actor, command.clone(), now);
        Ok(self.bodies(events.map_err(errors::schedule)?))
    }

    /// Obeys what people say about the authority, here or elsewhere, and warns them before it decays.
    pub(crate) async fn follow_authority(&self, doer: &dyn AgentBackend) {
        loop {
            let wake = match self.look_at_authority(doer).await {
                Ok(wake) => wake,
                Err(failed) => {
                    error!(%failed, "what the watch may do could not be looked up");
                    self.after(LOOK_EVERY)
                }
            };
            select! {
                biased;
                () = self.reaches(wake) => {}
                () = self.authority_changed().notified() => {}
            }
        }
    }

    /// When to look again.
    async fn look_at_authority(&self, doer: &dyn AgentBackend) -> Result<Timestamp, Error> {
        let authority = self.authority().await?;
        self.obey(&authority);
        if let Some(said) = &authority.frozen {
            // Also those that come to light only when their parents have gone.
            doer.end_strays();
            if self.stop_runs(&said.by).await {
                return Ok(self.after(STOP_EVERY));
            }
        }
        let lease = self.in_force().lease;
        self.act(vec![self.authority_row()], vec![], |rows, now| {
            let now = Now { clock: self.now(), latest: now };
            Ok(self.bodies(authority::warn(&self.authority_in(rows), lease, now)))
        })
        .await?;
        let is_soon = authority.frozen.is_some() || self.store().is_shared();
        let latest = self.after(if is_soon { LOOK_EVERY } else { SLEEP });
        let warning = authority.next_warning(lease).map(|(at, _)| at);
        // What was to be said by now was said just now.
        let warning = warning.filter(|at| self.now() < *at);
        Ok(warning.map_or(latest, |at| at.min(latest)))
    }

    /// The watch is kept from here on.
    pub(crate) async fn note_start(&self, started: Started) -> Result<(), Error> {
        let noted = self.act(vec![self.authority_row()], vec![], |rows, now| {
            let Authority { renewed, posture, .. } = self.authority_in(rows);
            let started = Started {
                lease_from: renewed.is_none().then_some(now),
                is_other_posture: posture != Some(self.posture()),
                ..started.clone()
            };
            Ok(vec![Body::Watch(self.instance().to_owned(), WatchEvent::Started(started))])
        });
        noted.await.map(drop)
    }

    /// Stops what is at work here; whether anything was. One that cannot be stopped does not keep the
    /// others going.
    async fn stop_runs(&self, by: &str) -> bool {
        let at_work = self.desk().at_work();
        for (id, schedule) in &at_work {
            if let Err(failed) = self.stop_run(id, schedule, by).await {
                error!(%failed, %id, "a run could not be stopped yet");
            }
        }
        !at_work.is_empty()
    }

    async fn stop_run(&self, id: &RunId, schedule: &ScheduleId, by: &str) -> Result<(), Error> {
        let system = Actor::system();
        let stopped = self.act(rows_of(id, schedule), defined_by(schedule, None), |rows, now| {
            let Some(ground) = ground(rows, id, schedule, now) else { return Ok(vec![]) };
            // One that is only about to begin will not.
            if !matches!(ground.run.state, State::Running { .. }) {
                return Ok(vec![]);
            }
            let note = Some(format!("{by} has frozen the watch"));
            run::decide(ground, &system, run::Command::Cancel { note }).map_err(errors::run)
        });
        stopped.await.map(drop)
    }

    /// Returns when the watch is frozen, here or elsewhere.
    pub(crate) async fn until_frozen(&self) {
        while !self.authority().await.is_ok_and(|authority| authority.frozen.is_some()) {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Nothing is taken from the desk of a frozen watch.
    pub(crate) fn obey(&self, authority: &Authority) {
        match authority.frozen {
            Some(_) => self.desk().hold(),
            None => self.desk().release(),
        }
    }

    pub(crate) fn authority_row(&self) -> RowKey {
        (Noun::Authority, self.instance().to_owned())
    }

    pub(crate) async fn authority(&self) -> Result<Authority, Error> {
        Ok(self.authority_in(&self.load(&[self.authority_row()]).await?))
    }

    pub(crate) fn authority_in(&self, rows: &Rows) -> Authority {
        rows.authority(self.instance()).cloned().unwrap_or_default()
    }

    pub(crate) fn authority_wire(&self, authority: &Authority) -> api::Authority {
        let (lease, now) = (self.in_force().lease, self.by_log());
        let at = |step| authority.steps_at(lease, step).map(rfc3339);
        api::Authority {
            frozen: authority.frozen.as_ref().map(said),
            lease: api::Lease {
                step: authority.step(lease, now).name().to_owned(),
                renewed: authority.renewed.as_ref().map(said),
                asks_from: at(Step::Ask),
                pauses_from: at(Step::Paused),
            },
        }
    }

    fn bodies(&self, events: impl IntoIterator<Item = authority::Event>) -> Vec<Body> {
        let body = |event| Body::Authority(self.instance().to_owned(), event);
        events.into_iter().map(body).collect()
    }
}

fn said(said: &Said) -> api::Said {
    let Said { by, note, at, clock: _ } = said;
    api::Said { by: by.clone(), at: rfc3339(*at), note: note.clone() }
}
