//! The process at the other end of a connection, as far as the operating system tells.

use std::io;
use std::os::fd::AsFd;

use futures::future::{BoxFuture, FutureExt};
use gateway::{ConnectionAddresses, PeerFinder, PeerProcess};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use runtime::{Credentials, ProcessOrigin, UNKNOWN_UID};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::process_tree::{self, Ancestry};
use super::tcp_sockets;

/// Finds the process at the other end of a TCP connection.
#[derive(Debug)]
pub(super) struct PeerScanner {
    /// Allows one scan of all processes at a time.
    permit: Semaphore,
}

impl PeerScanner {
    pub(super) fn new() -> PeerScanner {
        PeerScanner { permit: Semaphore::new(1) }
    }
}

impl PeerFinder for PeerScanner {
    fn find_peer(&self, addresses: ConnectionAddresses) -> BoxFuture<'_, PeerProcess> {
        async move {
            let permit = self.permit.acquire().await;
            let peer = spawn_blocking(move || Peer::of_tcp_connection(addresses)).await;
            drop(permit);
            peer.map_or(PeerProcess::Unknown, Peer::into_process)
        }
        .boxed()
    }
}

/// The credentials of a process at the other end of a TCP connection, before it has sent any.
pub(super) fn credentials_of(peer: &PeerProcess) -> Credentials<'_> {
    let unknown = Credentials::unknown();
    let (uid, origin) = match peer {
        PeerProcess::External { uid } => (*uid, ProcessOrigin::External),
        PeerProcess::Run(run) => (unknown.uid, ProcessOrigin::Run(run)),
        PeerProcess::Unknown => (unknown.uid, ProcessOrigin::Unknown),
    };
    Credentials { uid, origin, ..unknown }
}

#[derive(Debug)]
pub(super) struct Peer {
    uid: u32,
    /// The process that connected, if the operating system tells.
    pub(super) pid: Option<i32>,
    pub(super) ancestry: Ancestry,
    /// The run whose program it descends from.
    run: Option<String>,
}

impl Peer {
    /// The peer of a connection to the daemon's socket. Returns `None` for users other than the daemon's own and root.
    pub(super) fn of_unix_stream(stream: &UnixStream) -> io::Result<Option<Peer>> {
        let peer = stream.peer_cred()?;
        let (uid, ours) = (peer.uid(), rustix::process::getuid().as_raw());
        let ancestry = ancestry_of_peer(stream, peer.pid());
        let new = || Peer { pid: peer.pid(), ..Peer::new(uid, ancestry) };
        Ok((uid == ours || uid == 0).then(new))
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
        Peer { uid, pid: None, ancestry, run }
    }

    /// The process as the HTTP API knows it.
    pub(super) fn into_process(self) -> PeerProcess {
        match (self.ancestry, self.run) {
            (Ancestry::External, _) => PeerProcess::External { uid: self.uid },
            (_, Some(run)) => PeerProcess::Run(run),
            (Ancestry::Descendant(_) | Ancestry::Unknown, None) => PeerProcess::Unknown,
        }
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

/// The ancestry of the process that connected. A process id can be used again once its process has exited; a pidfd
/// stands for one process for ever, so what was read belongs to it if the pidfd still has that id afterwards.
fn ancestry_of_peer(stream: &UnixStream, pid: Option<i32>) -> Ancestry {
    let Some(pid) = pid else { return Ancestry::Unknown };
    let pidfd = match getsockopt(stream, sockopt::PeerPidfd) {
        Ok(pidfd) => pidfd,
        // Kernels before 6.5 do not have it.
        Err(Errno::ENOPROTOOPT) => return process_tree::ancestry_of(pid),
        // The process has exited.
        Err(_) => return Ancestry::Unknown,
    };
    let ancestry = process_tree::ancestry_of(pid);
    match process_tree::pid_of(pidfd.as_fd()) {
        Some(still) if still == pid => ancestry,
        _ => Ancestry::Unknown,
    }
}
