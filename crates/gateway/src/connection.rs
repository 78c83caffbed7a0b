//! What the requests of one connection share: its addresses, and whether it is busy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OnceCell;

use crate::peer::{PeerFinder, PeerProcess};

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionAddresses {
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// The connection that a request came from. Every request carries it as an extension.
#[derive(Clone)]
pub(crate) struct RequestConnection {
    pub(crate) addresses: ConnectionAddresses,
    pub(crate) busy: BusyFlag,
    peers: Arc<dyn PeerFinder>,
    /// The process at the other end, once a request needed to know it.
    peer: Arc<OnceCell<PeerProcess>>,
}

impl RequestConnection {
    pub(crate) fn new(
        addresses: ConnectionAddresses,
        busy: BusyFlag,
        peers: Arc<dyn PeerFinder>,
    ) -> RequestConnection {
        RequestConnection { addresses, busy, peers, peer: Arc::default() }
    }

    /// The process at the other end.
    pub(crate) async fn peer(&self) -> PeerProcess {
        self.peer.get_or_init(|| self.peers.find_peer(self.addresses)).await.clone()
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
