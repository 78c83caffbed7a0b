//! New rules of time zones: the next slot of every schedule is computed anew, once, by them.
//!
//! What is decided stays decided. This goes on beside the timer, which does the same for a schedule
//! whose turn comes first.

use api::Error;
use calendar::tzdata_version;
use futures::future::{join_all, pending};
use kernel::progress::Status;
use kernel::tick::{Tick, rebase};
use kernel::watch::{Event as WatchEvent, TzChanged};
use kernel::{Body, Noun, ScheduleId};
use store::Item;
use tracing::{error, info};

use crate::errors::{self, internal};
use crate::timer::progress;
use crate::watch::{Engine, commit_row, identity};

/// Schedules that are looked at in one go.
const PAGE: usize = 1_024;

impl Engine {
    pub(crate) async fn follow_zones(&self) {
        if let Err(failed) = self.rebase_all(tzdata_version()).await {
            // The next start tries again.
            error!(%failed, "not every schedule goes by the new rules of time zones");
        }
        pending().await
    }

    /// Nothing, if these are the rules that were used last.
    async fn rebase_all(&self, to: &str) -> Result<(), Error> {
        let from = identity(self.store()).await?.and_then(|identity| identity.tzdata);
        if from.as_deref() == Some(to) {
            return Ok(());
        }
        let (mut moved, mut after) = (0, String::new());
        loop {
            let page = self.store().list(Noun::Progress.name(), &after, PAGE).await;
            let page = page.map_err(errors::store)?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            for is_moved in join_all(page.iter().map(|item| self.rebase(item))).await {
                moved += u64::from(is_moved?);
            }
        }
        info!(?from, to, moved, "the rules of time zones have changed");
        let changed = WatchEvent::TzChanged(TzChanged { from, to: to.to_owned(), moved });
        let body = Body::Watch(self.instance().to_owned(), changed);
        commit_row(self.store(), self.clock(), body).await
    }

    /// Whether the next slot of a schedule is another one now.
    async fn rebase(&self, item: &Item) -> Result<bool, Error> {
        let id: ScheduleId = item.id.parse().map_err(internal)?;
        let Some(found) = progress(item)?.filter(|it| it.status != Status::Removed) else {
            return Ok(false);
        };
        let Some(ready) = self.ready(&id, found.revision).await? else { return Ok(false) };
        let wall = self.decided_wall(&id, &found).await?;
        let rows = vec![(Noun::Progress, item.id.clone())];
        let moved = self
            .act(rows, vec![], |rows, now| {
                let Some(progress) = rows.progress(&id) else { return Ok(Vec::new()) };
                // An edit has put it right meanwhile.
                if progress.revision != ready.schedule.revision {
                    return Ok(Vec::new());
                }
                let calendar = ready.calendar(progress)?;
                let tick = Tick::new(&id, &ready.schedule, &calendar, now);
                let tick = Tick { decided_wall: wall.as_deref(), ..tick };
                Ok(rebase(tick, progress).into_iter().collect())
            })
            .await?;
        Ok(moved.is_some())
    }
}
