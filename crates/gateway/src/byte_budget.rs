//! A limit on the bytes of requests and responses that are held in memory at once: in all, and for each owner.
//!
//! Small ones are free, so that a stop and most other requests never depend on what others hold. Nothing waits: a request
//! without room is refused, and its caller tries again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What each request and each response may hold without a reservation.
pub const FREE_BYTES_MAX: usize = 64 << 10;

/// Bytes that may be held. Clones share them.
#[derive(Clone, Debug)]
pub struct ByteBudget {
    bytes_max: usize,
    owner_bytes_max: usize,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    by_owner: HashMap<String, usize>,
}

/// The bytes that one request or response holds, until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: ByteBudget,
    owner: String,
    bytes: usize,
}

impl ByteBudget {
    /// At most `bytes_max` in all, and `owner_bytes_max` for each owner: a principal or a process.
    pub fn new(bytes_max: usize, owner_bytes_max: usize) -> ByteBudget {
        ByteBudget { bytes_max, owner_bytes_max, held: Arc::default() }
    }

    /// An empty reservation of an owner.
    pub fn reserve(&self, owner: String) -> Reservation {
        Reservation { budget: self.clone(), owner, bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Reserves room for this many bytes, if that is more than now. Returns whether there is room.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if bytes <= FREE_BYTES_MAX || more == 0 {
            return true;
        }
        let mut held = self.budget.held();
        let of_owner = held.by_owner.get(&self.owner).copied().unwrap_or_default();
        let fits = held.bytes + more <= self.budget.bytes_max
            && of_owner + more <= self.budget.owner_bytes_max;
        if fits {
            held.bytes += more;
            held.by_owner.insert(self.owner.clone(), of_owner + more);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.budget.held();
        held.bytes -= self.bytes;
        if let Some(of_owner) = held.by_owner.get_mut(&self.owner) {
            *of_owner -= self.bytes;
            if *of_owner == 0 {
                held.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn bytes_are_limited_in_all_and_per_owner_and_released_on_drop() {
        let budget = ByteBudget::new(3 * MIB, 2 * MIB);
        let reserve = |owner: &str| budget.reserve(owner.to_owned());
        let (mut first, mut second) = (reserve("ada"), reserve("ada"));
        assert!(first.grow_to(MIB) && second.grow_to(MIB), "at the limit of the owner");
        assert!(!reserve("ada").grow_to(FREE_BYTES_MAX + 1) && !first.grow_to(MIB + 1));
        assert!(first.grow_to(MIB), "it keeps what it has");
        let mut other = reserve("ben");
        assert!(!other.grow_to(MIB + 1), "one past the limit of all");
        assert!(other.grow_to(MIB));
        assert!(!reserve("eve").grow_to(FREE_BYTES_MAX + 1));
        assert!(reserve("eve").grow_to(FREE_BYTES_MAX), "small ones are free");
        drop(second);
        assert!(reserve("eve").grow_to(MIB));
        drop((first, other));
        let held = budget.held();
        assert_eq!((held.bytes, held.by_owner.len()), (0, 0));
    }
}
