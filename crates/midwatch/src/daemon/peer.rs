//! The process at the other end of a connection, as far as the operating system tells.

use std::io;

use gateway::ConnectionAddresses;
use runtime::{Credentials, ProcessOrigin, UNKNOWN_UID};
use tokio::net::UnixStream;

use super::process_tree::{self, Ancestry};
use super::tcp_sockets;

#[derive(Debug)]
pub(super) struct Peer {
    uid: u32,
    pub(super) ancestry: Ancestry,
    /// The run whose program it descends from.
    run: Option<String>,
}

impl Peer {
    /// The peer of a connection to the daemon's socket. Returns `None` for users other than the daemon's own and root.
    pub(super) fn of_unix_stream(stream: &UnixStream) -> io::Result<Option<Peer>> {
        let peer = stream.peer_cred()?;
        let (uid, ours) = (peer.uid(), rustix::process::getuid().as_raw());
        let ancestry = peer.pid().map_or(Ancestry::Unknown, process_tree::ancestry_of);
        Ok((uid == ours || uid == 0).then(|| Peer::new(uid, ancestry)))
    }

    /// The peer of a TCP connection. TCP carries no credentials, but `/proc` shows which processes own the peer's
    /// socket.
    pub(super) fn of_tcp_connection(addresses: ConnectionAddresses) -> Peer {
        match tcp_sockets::find_peer_socket(addresses.peer, addresses.local) {
            Some(socket) => Peer::new(socket.uid, process_tree::ancestry_of_owner(&socket)),
            None if process_tree::is_available() => Peer::new(UNKNOWN_UID, Ancestry::Unknown),
            None => Peer::new(UNKNOWN_UID, Ancestry::External),
        }
    }

    fn new(uid: u32, ancestry: Ancestry) -> Peer {
        let run = match ancestry {
            Ancestry::Descendant(pid) => agents::run_of_process(pid),
            Ancestry::External | Ancestry::Unknown => None,
        };
        Peer { uid, ancestry, run }
    }

    /// The credentials of the process before it has sent any.
    pub(super) fn credentials(&self) -> Credentials<'_> {
        let origin = match (&self.ancestry, &self.run) {
            (Ancestry::External, _) => ProcessOrigin::External,
            (_, Some(run)) => ProcessOrigin::Run(run),
            (Ancestry::Descendant(_) | Ancestry::Unknown, None) => ProcessOrigin::Unknown,
        };
        Credentials { uid: self.uid, origin, ..Credentials::unknown() }
    }
}
