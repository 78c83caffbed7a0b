//! Watches a run: its committed state and its live output.

use std::time::Duration;

use agents::LiveOutput;
use api::{Error, RunWatch, RunWatched, Serve, WatchCursor};
use futures::future::pending;
use kernel::run::{Run, State};
use kernel::{Noun, RunId};
use tokio::select;
use tokio::time::timeout;

use crate::commit::caller::Caller;
use crate::commit::ids::run_id;
use crate::engine::Engine;
use crate::errors;
use crate::handlers::runs::wire_in;
use crate::ledger::feed::WAIT_MS_MAX;

impl Serve<RunWatch> for Engine {
    async fn serve(&self, _: &Caller, request: RunWatch) -> Result<RunWatched, Error> {
        let id = run_id(&request.id)?;
        let seen = request.seen.unwrap_or_default();
        // Kept here, the live output can be read to its end even after the attempt has ended.
        let mut output = self.dispatcher.live_output(&id);
        let wait = Duration::from_millis(request.wait_ms.min(WAIT_MS_MAX).into());
        let changed = timeout(wait, async {
            loop {
                let size = self.store.head().await.map_err(errors::store)?.size();
                let bytes = output.as_ref().map_or(0, LiveOutput::bytes);
                let found = self.read_run(&id, &seen, output.as_ref()).await?;
                if found.seen != seen || found.ended {
                    return Ok(found);
                }
                select! {
                    () = self.store.wait_for_entries_after(size) => {}
                    () = wait_for_output(output.as_ref(), bytes) => {}
                }
                output = self.dispatcher.live_output(&id).or(output);
            }
        });
        match changed.await {
            Ok(found) => found,
            // Nothing changed within the time.
            Err(_) => self.read_run(&id, &seen, None).await,
        }
    }
}

impl Engine {
    async fn read_run(
        &self,
        id: &RunId,
        seen: &WatchCursor,
        output: Option<&LiveOutput>,
    ) -> Result<RunWatched, Error> {
        // Past the cache: the store wakes this request before the commit has updated the cache, and nothing wakes it again.
        let rows = self.transactions.load_stored(&[(Noun::Run, id.to_string())]).await?;
        let run = wire_in(&rows, id)?;
        let (epoch, ended) = rows
            .get::<Run>(id)
            .map_or((0, true), |run| (run.epoch, matches!(run.state, State::Ended(_))));
        let version = rows.row(Noun::Run, id.as_str()).map_or(0, |row| row.version);
        // A new attempt starts with empty output.
        let read = if seen.epoch == epoch { seen.bytes } else { 0 };
        let (text, bytes) = output.map_or_else(|| (String::new(), read), |it| it.read_after(read));
        Ok(RunWatched { run, output: text, ended, seen: WatchCursor { version, epoch, bytes } })
    }
}

/// Returns when there is more output. Never returns for a run without live output.
async fn wait_for_output(output: Option<&LiveOutput>, bytes: u64) {
    match output {
        Some(output) => output.wait_past(bytes).await,
        None => pending().await,
    }
}
