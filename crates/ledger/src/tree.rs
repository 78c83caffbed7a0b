//! The Merkle tree of RFC 6962: appending leaves and computing the root.
//!
//! It keeps only the frontier: the roots of the complete subtrees, largest first, one for each bit set
//! in the size. It cannot prove old leaves, which would need inner nodes.
//!
//! Invariant: `subtrees.len() == size.count_ones()`.

use sha2::{Digest, Sha256};

use crate::Hash;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frontier {
    size: u64,
    subtrees: Vec<Hash>,
}

impl Frontier {
    /// `None` unless `subtrees` has one root for each bit set in `size`.
    pub(crate) fn from_parts(size: u64, subtrees: Vec<Hash>) -> Option<Frontier> {
        let fits = subtrees.len() == size.count_ones() as usize;
        fits.then_some(Frontier { size, subtrees })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn subtrees(&self) -> &[Hash] {
        &self.subtrees
    }

    /// Merges subtrees of equal height, as often as a binary counter carries.
    pub(crate) fn append(&mut self, entry: &Hash) {
        let mut root = leaf_hash(entry);
        for _ in 0..self.size.trailing_ones() {
            let Some(left) = self.subtrees.pop() else { break };
            root = node_hash(&left, &root);
        }
        self.subtrees.push(root);
        self.size += 1;
    }

    pub(crate) fn root(&self) -> Hash {
        let mut smallest_first = self.subtrees.iter().rev();
        let Some(last) = smallest_first.next() else {
            return Hash::of(b"");
        };
        smallest_first.fold(*last, |right, left| node_hash(left, &right))
    }
}

fn leaf_hash(entry: &Hash) -> Hash {
    Hash::from_hasher(Sha256::new_with_prefix([0x00]).chain_update(entry.as_bytes()))
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let hasher = Sha256::new_with_prefix([0x01]);
    Hash::from_hasher(hasher.chain_update(left.as_bytes()).chain_update(right.as_bytes()))
}
