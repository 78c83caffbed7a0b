//! The state of the hash chain after the last entry: enough to append the next entry, to verify it,
//! and to compute the Merkle root.
//!
//! [`Chain::append`] turns a draft into the next entry; [`Chain::verify_next`] verifies a stored entry
//! as the next one. Both compute the same hashes and advance the chain by one entry. A fault does not
//! advance it: no entry after the first fault can be verified.

use std::fmt;

use crate::layout::{Position, entry_hash};
use crate::tree::Frontier;
use crate::{Appended, Draft, EntryRef, Hash, INTEGER_MAX};

/// The version of the layout of [`Chain::encode`].
const ENCODING: u8 = 1;

/// The hash chain up to its last entry, and the frontier of the Merkle tree over all entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    tree: Frontier,
    head: Hash,
    ts_us: i64,
}

/// The first entry that does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    pub seq: u64,
    pub kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The sequence skips an entry.
    Missing { found: u64 },
    /// The sequence goes back: an entry is repeated or out of order.
    Reordered { found: u64 },
    /// The entry is older than its predecessor.
    TimeWentBack,
    /// The hash does not match the entry and its predecessor's hash.
    Changed,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match self.kind {
            FaultKind::Missing { found } => {
                write!(f, "entry {seq} is missing: found entry {found} instead")
            }
            FaultKind::Reordered { found } => write!(
                f,
                "entry {seq} is missing: found entry {found} instead, repeated or out of order"
            ),
            FaultKind::TimeWentBack => write!(f, "entry {seq} is older than the entry before it"),
            FaultKind::Changed if seq <= 1 => {
                write!(f, "entry {seq} does not match its hash: it was changed")
            }
            FaultKind::Changed => {
                let previous = seq - 1;
                write!(f, "entry {seq} does not match its hash: it or entry {previous} was changed")
            }
        }
    }
}

/// Bytes that are not an encoded chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored chain state is damaged or has a newer format")]
pub struct NotAChain;

impl Chain {
    pub fn empty() -> Chain {
        Chain { tree: Frontier::default(), head: Hash::ZERO, ts_us: 0 }
    }

    /// The number of entries, and the sequence number of the last one.
    pub fn size(&self) -> u64 {
        self.tree.size()
    }

    /// The hash of the last entry; [`Hash::ZERO`] if the chain is empty.
    pub fn head(&self) -> Hash {
        self.head
    }

    /// The time of the last entry, which the next one must not precede; 0 if the chain is empty.
    pub fn ts_us(&self) -> i64 {
        self.ts_us
    }

    /// The root of the Merkle tree over all entries.
    pub fn root(&self) -> Hash {
        self.tree.root()
    }

    /// Appends the draft as the next entry. Time never decreases: if the clock went back, the entry
    /// gets the time of its predecessor.
    pub fn append(&mut self, draft: &Draft) -> Appended {
        let header = draft.header();
        let position = self.next_position(header.ts_us.max(self.ts_us));
        let hash = entry_hash(&position, &header, draft.body_hash());
        self.advance(position.ts_us, hash);
        Appended { seq: position.seq, ts_us: position.ts_us, hash }
    }

    /// Verifies the sequence number, time and hash of the next entry, and advances if they match.
    pub fn verify_next(&mut self, entry: &EntryRef<'_>) -> Result<(), Fault> {
        let position = self.next_position(entry.ts_us);
        let fault = |kind| Err(Fault { seq: position.seq, kind });
        if position.seq < entry.seq {
            return fault(FaultKind::Missing { found: entry.seq });
        }
        if entry.seq < position.seq {
            return fault(FaultKind::Reordered { found: entry.seq });
        }
        if entry.ts_us < self.ts_us {
            return fault(FaultKind::TimeWentBack);
        }
        let hash = entry_hash(&position, &entry.header(), entry.body_hash());
        if hash != entry.hash {
            return fault(FaultKind::Changed);
        }
        self.advance(position.ts_us, hash);
        Ok(())
    }

    /// A compact form to store beside a checkpoint, so that opening the ledger reads only the entries
    /// after it.
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

    fn next_position(&self, ts_us: i64) -> Position {
        Position { seq: self.size() + 1, prev: self.head, ts_us }
    }

    fn advance(&mut self, ts_us: i64, hash: Hash) {
        self.tree.append(&hash);
        self.head = hash;
        self.ts_us = ts_us;
    }
}
