//! Who is at the other end of a connection, as far as the machine tells.

use std::io;

use gateway::Ends;
use runtime::{Descent, UNSEEN, Visitor};
use tokio::net::UnixStream;

use super::descent::{self, Parentage};
use super::sockets;

#[derive(Debug)]
pub(super) struct Peer {
    uid: u32,
    pub(super) parentage: Parentage,
    /// The run whose program it descends from.
    run: Option<String>,
}

impl Peer {
    /// On the socket only the user of this watch is let in, and the one who may do anything here anyway.
    pub(super) fn of(stream: &UnixStream) -> io::Result<Option<Peer>> {
        let peer = stream.peer_cred()?;
        let (uid, ours) = (peer.uid(), rustix::process::getuid().as_raw());
        let parentage = peer.pid().map_or(Parentage::Unknown, descent::of);
        Ok((uid == ours || uid == 0).then(|| Peer::new(uid, parentage)))
    }

    /// Over TCP nobody says who they are, but the machine knows which of our own have hold of the other end.
    pub(super) fn at(ends: Ends) -> Peer {
        match sockets::other_end(ends.theirs, ends.ours) {
            Some(socket) => Peer::new(socket.uid, descent::of_holder(&socket)),
            None if descent::can_tell() => Peer::new(UNSEEN, Parentage::Unknown),
            None => Peer::new(UNSEEN, Parentage::Stranger),
        }
    }

    fn new(uid: u32, parentage: Parentage) -> Peer {
        let run = match parentage {
            Parentage::Child(pid) => agents::run_of(pid),
            Parentage::Stranger | Parentage::Unknown => None,
        };
        Peer { uid, parentage, run }
    }

    /// Who has said nothing yet.
    pub(super) fn visitor(&self) -> Visitor<'_> {
        let descent = match (&self.parentage, &self.run) {
            (Parentage::Stranger, _) => Descent::Stranger,
            (_, Some(run)) => Descent::Run(run),
            (Parentage::Child(_) | Parentage::Unknown, None) => Descent::Unknown,
        };
        Visitor { uid: self.uid, descent, ..Visitor::unseen() }
    }
}
