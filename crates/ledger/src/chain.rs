//! The end of the log: enough to append to it, to check what follows, and to compute its root.
//!
//! [`Chain::seal`] gives a draft its place; [`Chain::check`] finds out whether a stored entry is in
//! its place. Both advance by one entry and compute the same hashes, so what was sealed verifies.
//! A fault does not advance: everything after the first fault is unknown.

use crate::layout::{Place, entry_hash};
use crate::tree::Frontier;
use crate::{Draft, Fields, Hash, INTEGER_MAX, Sealed};

/// Of [`Chain::encode`]. A change of the layout needs a new number.
const ENCODING: u8 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    tree: Frontier,
    head: Hash,
    ts_us: i64,
}

/// The first place where the log is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq} {kind}")]
pub struct Fault {
    pub seq: u64,
    pub kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The sequence jumps ahead.
    #[error("is missing: entry {found} stands in its place")]
    Missing { found: u64 },
    /// The sequence goes back.
    #[error("is not in its place: entry {found} stands there a second time or out of order")]
    Reordered { found: u64 },
    #[error("is older than the entry before it")]
    TimeWentBack,
    #[error("was changed, or the entry before it was: its hash does not match")]
    Changed,
}

/// Bytes that are not an encoded chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored end of the log is damaged or of a later version")]
pub struct NotAChain;

impl Chain {
    pub fn empty() -> Chain {
        Chain { tree: Frontier::default(), head: Hash::ZERO, ts_us: 0 }
    }

    /// The number of entries, and the sequence number of the last one.
    pub fn size(&self) -> u64 {
        self.tree.size()
    }

    /// The hash of the last entry; [`Hash::ZERO`] if there is none.
    pub fn head(&self) -> Hash {
        self.head
    }

    /// The time of the last entry, and the earliest of the next; 0 if there is none.
    pub fn ts_us(&self) -> i64 {
        self.ts_us
    }

    /// The root of the Merkle tree over all entries.
    pub fn root(&self) -> Hash {
        self.tree.root()
    }

    /// Gives the draft the next place. Time never decreases: a draft from a clock that went back
    /// gets the time of the entry before it.
    pub fn seal(&mut self, draft: &Draft) -> Sealed {
        let header = draft.header();
        let place = self.next(header.ts_us.max(self.ts_us));
        let hash = entry_hash(&place, &header, draft.body_hash());
        self.advance(place.ts_us, hash);
        Sealed { seq: place.seq, ts_us: place.ts_us, hash }
    }

    /// Advances if this entry follows: by its sequence number, its time and its hash.
    pub fn check(&mut self, fields: &Fields<'_>) -> Result<(), Fault> {
        let place = self.next(fields.ts_us);
        let fault = |kind| Err(Fault { seq: place.seq, kind });
        if place.seq < fields.seq {
            return fault(FaultKind::Missing { found: fields.seq });
        }
        if fields.seq < place.seq {
            return fault(FaultKind::Reordered { found: fields.seq });
        }
        if fields.ts_us < self.ts_us {
            return fault(FaultKind::TimeWentBack);
        }
        let hash = entry_hash(&place, &fields.header(), fields.body_hash());
        if hash != fields.hash {
            return fault(FaultKind::Changed);
        }
        self.advance(place.ts_us, hash);
        Ok(())
    }

    /// The chain in a compact form, to be stored beside a checkpoint: a start then needs only the
    /// entries after it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![ENCODING];
        bytes.extend_from_slice(&self.size().to_be_bytes());
        bytes.extend_from_slice(&self.ts_us.to_be_bytes());
        bytes.extend_from_slice(self.head.as_bytes());
        for subtree in self.tree.subtrees() {
            bytes.extend_from_slice(subtree.as_bytes());
        }
        bytes
    }

    /// Accepts exactly what [`Chain::encode`] writes.
    pub fn decode(bytes: &[u8]) -> Result<Chain, NotAChain> {
        Chain::parse(bytes).ok_or(NotAChain)
    }

    fn parse(bytes: &[u8]) -> Option<Chain> {
        let (&[encoding], bytes) = bytes.split_first_chunk()?;
        let (size, bytes) = bytes.split_first_chunk()?;
        let (ts_us, bytes) = bytes.split_first_chunk()?;
        let (head, bytes) = bytes.split_first_chunk()?;
        let (subtrees, []) = bytes.as_chunks() else { return None };

        let subtrees = subtrees.iter().copied().map(Hash::from_bytes).collect();
        let tree = Frontier::from_parts(u64::from_be_bytes(*size), subtrees)?;
        let chain =
            Chain { tree, head: Hash::from_bytes(*head), ts_us: i64::from_be_bytes(*ts_us) };
        let plausible = chain.size() <= INTEGER_MAX && 0 <= chain.ts_us;
        let empty_is_empty = chain.size() != 0 || chain == Chain::empty();
        (encoding == ENCODING && plausible && empty_is_empty).then_some(chain)
    }

    fn next(&self, ts_us: i64) -> Place {
        Place { seq: self.size() + 1, prev: self.head, ts_us }
    }

    fn advance(&mut self, ts_us: i64, hash: Hash) {
        self.tree.append(&hash);
        self.head = hash;
        self.ts_us = ts_us;
    }
}
