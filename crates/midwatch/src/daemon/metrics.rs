//! `/metrics` of the daemon: who may read the metrics, and the metrics.

use std::sync::Arc;

use api::Error;
use api::wire::Secret;
use futures::future::{BoxFuture, FutureExt};
use gateway::{Authenticated, ConnectionAddresses, MetricsSource, PeerFinder};
use kernel::Role;
use runtime::{Clock, Credentials, Engine, SystemClock};

use super::peer::{PeerScanner, credentials_of};

/// The metrics of the engine.
pub(super) struct EngineMetrics {
    engine: Engine,
    peers: Arc<PeerScanner>,
}

impl EngineMetrics {
    pub(super) fn new(engine: Engine, peers: Arc<PeerScanner>) -> EngineMetrics {
        EngineMetrics { engine, peers }
    }
}

impl MetricsSource for EngineMetrics {
    /// The token of an observer counts alone, as a scraper keeps it in a file. That of an operator counts only from a process
    /// that no run started. A scrape does not renew the lease.
    fn authenticate(
        &self,
        token: Secret,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        async move {
            let alone = Credentials { token: Some(&token), ..Credentials::unknown() };
            let mut actor = self.engine.authenticate_metrics_reader(alone).await?;
            if actor.role != Role::Observer {
                let peer = self.peers.find_peer(addresses).await;
                let credentials = Credentials { token: Some(&token), ..credentials_of(&peer) };
                actor = self.engine.authenticate_metrics_reader(credentials).await?;
            }
            let name = actor.name().to_owned();
            let handle = Arc::new(self.engine.handle(actor));
            Ok(Authenticated { name, handle, now_us: SystemClock.now().as_micros() })
        }
        .boxed()
    }

    fn read(&self) -> BoxFuture<'_, Result<String, Error>> {
        self.engine.metrics().boxed()
    }
}
