//! What the requests of one connection share: its addresses, and whether it is busy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OnceCell;

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionAddresses {
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// The connection that a request came from. Every request carries it as an extension.
#[derive(Clone, Debug)]
pub(crate) struct RequestConnection {
    pub(crate) addresses: ConnectionAddresses,
    pub(crate) busy: BusyFlag,
    /// Set once the process at the other end was found to belong to no run.
    pub(crate) checked_peer: Arc<OnceCell<()>>,
}

impl RequestConnection {
    pub(crate) fn new(addresses: ConnectionAddresses, busy: BusyFlag) -> RequestConnection {
        RequestConnection { addresses, busy, checked_peer: Arc::default() }
    }
}

/// Whether an authenticated caller waits for a response on a connection. A connection that is not busy is idle, and may
/// be closed to make room for another.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyFlag(Arc<AtomicBool>);

/// Marks a connection as busy until this is dropped.
pub(crate) struct BusyGuard(BusyFlag);

impl BusyFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) -> BusyGuard {
        self.0.store(true, Ordering::Relaxed);
        BusyGuard(self.clone())
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}
