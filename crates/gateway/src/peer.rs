//! The process at the other end of a connection.

use futures::future::BoxFuture;

use crate::connection::ConnectionAddresses;

/// The process at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerProcess {
    /// Midwatch did not start it.
    External { uid: u32 },
    /// It descends from this run.
    Run(String),
    /// Midwatch started it for some run, or its origin cannot be determined.
    Unknown,
}

/// Looks for the process at the other end of a connection. That takes long, so it is done once per connection.
pub trait PeerFinder: Send + Sync {
    fn find_peer(&self, addresses: ConnectionAddresses) -> BoxFuture<'_, PeerProcess>;
}
