//! What the HTTP API needs of the daemon.

use api::Error;
use api::wire::Secret;
use futures::future::BoxFuture;

use crate::authenticate::Authenticated;
use crate::peer::PeerProcess;

/// The daemon, as the HTTP API uses it.
pub trait ApiService: Send + Sync {
    /// Authenticates the holder of a token alone. `None` if the token is one of a person who can approve: it counts only
    /// together with the process that sends it.
    fn authenticate_holder(
        &self,
        token: Secret,
    ) -> BoxFuture<'_, Result<Option<Authenticated>, Error>>;

    /// Authenticates a person by a token and by the process that sends it. A process of a run is refused.
    fn authenticate_operator(
        &self,
        token: Secret,
        peer: PeerProcess,
    ) -> BoxFuture<'_, Result<Authenticated, Error>>;

    /// The ledger and its end.
    fn ledger_position(&self) -> BoxFuture<'_, Result<LedgerPosition, Error>>;

    /// Fails if the ledger cannot be written.
    fn check_ready(&self) -> BoxFuture<'_, Result<(), Error>>;
}

/// The end of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPosition {
    /// The id of the installation whose ledger it is.
    pub log: String,
    /// Number of entries.
    pub entries: u64,
}
