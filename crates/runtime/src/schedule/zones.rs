//! When the time zone database has changed, or a clock that was ahead is corrected, the next slot of every schedule is
//! recomputed once.
//!
//! Decided slots stay as they are. This runs beside the timer, which recomputes a schedule that becomes due first.

use std::sync::Arc;

use api::Error;
use calendar::tzdata_version;
use futures::future::{join_all, pending};
use kernel::installation::{Event as InstallationEvent, TzChanged};
use kernel::progress::{Progress, Status};
use kernel::tick::{Tick, correct_clock, rebase};
use kernel::{EventBody, Noun, ScheduleId};
use store::{Item, Store};
use tracing::{error, info};

use crate::clock::Time;
use crate::commit::codec::decode_item;
use crate::commit::identity::{commit_identity, identity};
use crate::commit::transaction::Transactions;
use crate::errors::{self, internal};
use crate::installation::Installation;
use crate::schedule::compiled::Schedules;

/// Schedules recomputed at a time.
const PAGE: usize = 1_024;

/// Decides whether the next slot of a schedule moves.
type DecideMove = fn(Tick<'_>, &Progress) -> Option<EventBody>;

#[derive(Debug)]
pub(crate) struct Zones {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) schedules: Arc<Schedules>,
    pub(crate) installation: Arc<Installation>,
}

impl Zones {
    pub(crate) async fn run(&self) {
        if let Err(failed) = self.rebase_all(tzdata_version()).await {
            // The next start tries again.
            error!(%failed, "failed to recompute all schedules by the new time zone rules");
        }
        pending().await
    }

    /// Does nothing if the rules are those that were used last.
    async fn rebase_all(&self, to: &str) -> Result<(), Error> {
        let from = identity(&*self.store).await?.and_then(|identity| identity.tzdata);
        if from.as_deref() == Some(to) {
            return Ok(());
        }
        let moved = self.move_all(rebase).await?;
        info!(?from, to, moved, "recomputed schedules by new time zone rules");
        let changed = InstallationEvent::TzChanged(TzChanged { from, to: to.to_owned(), moved });
        let body = EventBody::Installation(self.installation.instance.to_owned(), changed);
        commit_identity(&*self.store, self.time.now(), body).await
    }

    /// Lets schedules whose slots were decided by a clock that was ahead go on from now.
    pub(crate) async fn correct_clock(&self) -> Result<(), Error> {
        let moved = self.move_all(correct_clock).await?;
        info!(moved, "recomputed schedules by the accepted clock");
        Ok(())
    }

    /// Decides for each schedule whether its next slot moves. Returns how many did.
    async fn move_all(&self, decide: DecideMove) -> Result<u64, Error> {
        let (mut moved, mut after) = (0, String::new());
        loop {
            let page = self.store.list(Noun::Progress.name(), &after, PAGE).await;
            let page = page.map_err(errors::store)?;
            let Some(last) = page.last() else { return Ok(moved) };
            after.clone_from(&last.id);
            for is_moved in join_all(page.iter().map(|item| self.move_one(item, decide))).await {
                moved += u64::from(is_moved?);
            }
        }
    }

    /// Returns whether the next slot of a schedule moved.
    async fn move_one(&self, item: &Item, decide: DecideMove) -> Result<bool, Error> {
        let id: ScheduleId = item.id.parse().map_err(internal)?;
        let found = decode_item::<Progress>(item)?;
        let Some(found) = found.filter(|it| it.status != Status::Removed) else {
            return Ok(false);
        };
        let compiled = self.schedules.compiled(&id, found.revision).await?;
        let Some(compiled) = compiled else { return Ok(false) };
        let wall = self.schedules.decided_wall(&id, &found).await?;
        let rows = vec![(Noun::Progress, item.id.clone())];
        let moved = self
            .transactions
            .commit_own(rows, vec![], |rows, now| {
                let Some(progress) = rows.get::<Progress>(&id) else { return Ok(Vec::new()) };
                // An edit has recomputed it meanwhile.
                if progress.revision != compiled.schedule.revision {
                    return Ok(Vec::new());
                }
                let calendar = compiled.calendar(progress)?;
                let tick = Tick::new(&id, &compiled.schedule, &calendar, now);
                let tick = Tick { decided_wall: wall.as_deref(), ..tick };
                Ok(decide(tick, progress).into_iter().collect())
            })
            .await?;
        Ok(moved.is_some())
    }
}
