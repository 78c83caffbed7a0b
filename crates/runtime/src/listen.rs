//! Watching one run: what is committed about it, and what it says meanwhile.

use std::time::Duration;

use agents::Said;
use api::{Error, RunSeen, RunWatch, RunWatched};
use futures::future::pending;
use kernel::run::State;
use kernel::{Noun, RunId};
use tokio::select;
use tokio::time::timeout;

use crate::errors;
use crate::log::WAIT_MS_MAX;
use crate::runs::{run_id, wire_in};
use crate::watch::Engine;

impl Engine {
    pub(crate) async fn run_watch(&self, asked: RunWatch) -> Result<RunWatched, Error> {
        let id = run_id(&asked.id)?;
        let seen = asked.seen.unwrap_or_default();
        // Held here, it can be heard to its end also when the work is over.
        let mut said = self.desk().said(&id);
        let wait = Duration::from_millis(asked.wait_ms.min(WAIT_MS_MAX).into());
        let news = timeout(wait, async {
            loop {
                let size = self.store().head().await.map_err(errors::store)?.size();
                let bytes = said.as_ref().map_or(0, Said::bytes);
                let found = self.look(&id, &seen, said.as_ref()).await?;
                if found.seen != seen || found.ended {
                    return Ok(found);
                }
                select! {
                    () = self.store().grown_past(size) => {}
                    () = more(said.as_ref(), bytes) => {}
                }
                said = self.desk().said(&id).or(said);
            }
        });
        match news.await {
            Ok(found) => found,
            // Nothing within the time is an answer too.
            Err(_) => self.look(&id, &seen, None).await,
        }
    }

    async fn look(
        &self,
        id: &RunId,
        seen: &RunSeen,
        said: Option<&Said>,
    ) -> Result<RunWatched, Error> {
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let run = wire_in(&rows, id)?;
        let (epoch, ended) =
            rows.run(id).map_or((0, true), |run| (run.epoch, matches!(run.state, State::Ended(_))));
        let version = rows.row(Noun::Run, id.as_str()).map_or(0, |row| row.version);
        // Another try begins anew.
        let heard = if seen.epoch == epoch { seen.bytes } else { 0 };
        let (said, bytes) = said.map_or_else(|| (String::new(), heard), |it| it.after(heard));
        Ok(RunWatched { run, said, ended, seen: RunSeen { version, epoch, bytes } })
    }
}

/// Returns when more is said; never, if nobody speaks.
async fn more(said: Option<&Said>, bytes: u64) {
    match said {
        Some(said) => said.more_than(bytes).await,
        None => pending().await,
    }
}
