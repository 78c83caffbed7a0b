//! The Merkle root against two independent implementations of RFC 6962.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ledger::{Chain, Draft, Hash};
use proptest::prelude::*;
use serde_json::json;
use sha2::Sha256;
use tlog_tiles::tlog::{self, HashReader};

use crate::support::draft;

/// Three trees that grow together.
struct Trees {
    draft: Draft,
    ours: Chain,
    tiles: StoredHashes,
    memory: MemoryBackedTree<Sha256, [u8; 32]>,
}

#[derive(Default)]
struct StoredHashes(Vec<tlog::Hash>);

impl HashReader for StoredHashes {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<tlog::Hash>, tlog::Error> {
        Ok(indexes.iter().map(|index| self.0[*index as usize]).collect())
    }
}

impl Trees {
    fn new() -> Trees {
        Trees {
            draft: draft(0, "slot.fired", json!({})),
            ours: Chain::empty(),
            tiles: StoredHashes::default(),
            memory: MemoryBackedTree::new(),
        }
    }

    fn grow(&mut self) {
        let appended = self.ours.append(&self.draft);
        let entry = appended.hash.as_bytes();
        let stored = tlog::stored_hashes(appended.seq - 1, entry, &self.tiles).unwrap();
        self.tiles.0.extend(stored);
        self.memory.push(*entry);
    }

    fn check(&self) {
        let size = self.ours.size();
        let tiles = tlog::tree_hash(size, &self.tiles).unwrap();
        assert_eq!(self.ours.root(), Hash::from_bytes(tiles.0), "tlog_tiles, size {size}");
        let memory = self.memory.root();
        let memory = Hash::try_from(memory.as_bytes().as_slice()).unwrap();
        assert_eq!(self.ours.root(), memory, "ct-merkle, size {size}");
        assert_eq!(Chain::decode(&self.ours.encode()).unwrap(), self.ours, "size {size}");
    }
}

#[test]
fn roots_agree_at_every_small_size() {
    let mut trees = Trees::new();
    trees.check();
    for _ in 0..1024 {
        trees.grow();
        trees.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn roots_agree_at_larger_sizes(size in 1025_u64..20_000) {
        let mut trees = Trees::new();
        (0..size).for_each(|_| trees.grow());
        trees.check();
    }
}
