//! Reads, checkpoints, exports and rebuilds the ledger.

use api::{
    Changes, CheckpointMade, Error, Events, Exported, LedgerCheckpoint, LedgerExport,
    LedgerRebuild, LedgerTail, RunEventList, RunEvents, Serve, TablesRebuilt, WaitForChanges,
};

use crate::commit::caller::Caller;
use crate::engine::Engine;

impl Serve<LedgerTail> for Engine {
    async fn serve(&self, _: &Caller, request: LedgerTail) -> Result<Events, Error> {
        self.feed.tail(request).await
    }
}

impl Serve<WaitForChanges> for Engine {
    async fn serve(&self, _: &Caller, request: WaitForChanges) -> Result<Changes, Error> {
        self.feed.wait_for_changes(request).await
    }
}

impl Serve<RunEvents> for Engine {
    async fn serve(&self, _: &Caller, request: RunEvents) -> Result<RunEventList, Error> {
        self.feed.run_events(request).await
    }
}

impl Serve<LedgerCheckpoint> for Engine {
    async fn serve(&self, _: &Caller, _: LedgerCheckpoint) -> Result<CheckpointMade, Error> {
        self.checkpoints.create().await
    }
}

impl Serve<LedgerExport> for Engine {
    async fn serve(&self, caller: &Caller, request: LedgerExport) -> Result<Exported, Error> {
        // Boxed, because the future is large and rare.
        Box::pin(self.exports.export(request, &caller.progress)).await
    }
}

impl Serve<LedgerRebuild> for Engine {
    async fn serve(&self, caller: &Caller, _: LedgerRebuild) -> Result<TablesRebuilt, Error> {
        self.write_guard.check()?;
        let rebuild = self.integrity.rebuild(&caller.actor, "requested", &caller.progress);
        // Boxed, because the future is large and rare.
        Ok(TablesRebuilt { rebuilt: Box::pin(rebuild).await? })
    }
}
