//! Applies the limits of `[retention]` at once.

use api::{CleanedUp, Cleanup, Error, Serve};

use crate::commit::caller::Caller;
use crate::engine::Engine;

impl Serve<Cleanup> for Engine {
    async fn serve(&self, caller: &Caller, request: Cleanup) -> Result<CleanedUp, Error> {
        self.clean_up(&caller.actor, request.dry_run).await
    }
}
