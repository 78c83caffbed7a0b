//! Memory for the large frames of the socket: limited for each process and for all of them, with a share for people.
//!
//! Frames below [`FREE_BYTES_MAX`] need none of it, so a stop never depends on what others send.

use api::wire::{FRAME_BYTES_MAX, Hello};
use api::{Code, Error};
use gateway::{ByteBudget, Reservation};
use kernel::{Actor, Role};

use super::peer::Peer;
use super::process_tree::Ancestry;

/// Memory for the frames of people.
const PEOPLE_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// Memory for the frames of all others: runs, agents, assistants, observers, and clients that have presented a token which
/// is not checked yet.
const OTHERS_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// Memory for the frames of one process, of either share.
const PROCESS_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;

#[derive(Debug)]
pub(super) struct FrameMemory {
    people: ByteBudget,
    others: ByteBudget,
}

impl Default for FrameMemory {
    fn default() -> FrameMemory {
        FrameMemory {
            people: ByteBudget::new(PEOPLE_BYTES_MAX, PROCESS_BYTES_MAX),
            others: ByteBudget::new(OTHERS_BYTES_MAX, PROCESS_BYTES_MAX),
        }
    }
}

impl FrameMemory {
    /// For the first request of a connection. The user of the machine needs no token, and is known by that.
    pub(super) fn for_first_request(&self, peer: &Peer, hello: &Hello) -> Reservation {
        let Hello { run, token, assistant, .. } = hello;
        let claims_nothing = run.is_none() && token.is_none() && !assistant;
        self.reserve(claims_nothing && peer.ancestry == Ancestry::External, peer)
    }

    /// For a later request of the caller.
    pub(super) fn for_caller(&self, peer: &Peer, actor: &Actor) -> Reservation {
        self.reserve(Role::Operator <= actor.role, peer)
    }

    fn reserve(&self, is_person: bool, peer: &Peer) -> Reservation {
        let budget = if is_person { &self.people } else { &self.others };
        // Processes that the operating system does not identify share one limit.
        budget.reserve(peer.pid.unwrap_or_default().to_string())
    }
}

/// The refusal of a frame for which there is no room.
pub(super) fn too_much_memory(what: &str) -> Error {
    let what = format!("there is no room for the {what}: others hold too much memory");
    Error::new(Code::LimitReached, what)
        .hint("try again; `midwatch freeze` and `midwatch run cancel` always have room")
}
