//! The bytes that are hashed. No other module knows their layout.
//!
//! Each hash starts with a tag, so hashes of different kinds never collide. Texts and bodies have a
//! length prefix (`u32`), numbers have a fixed width, both big endian, so two different entries never
//! give the same bytes.

use sha2::{Digest, Sha256};

use crate::{Hash, Header, PrivateRef};

const FACTS_TAG: &[u8] = b"midwatch-facts/v1";
const PRIVATE_TAG: &[u8] = b"midwatch-private/v1";
const BODY_TAG: &[u8] = b"midwatch-body/v1";
const ENTRY_TAG: &[u8] = b"midwatch-ledger/v1";

/// The part of an entry's bytes that depends on its position in the chain.
pub(crate) struct Position {
    pub(crate) seq: u64,
    pub(crate) prev: Hash,
    pub(crate) ts_us: i64,
}

/// Uses the time of `position`, not that of `header`.
pub(crate) fn entry_hash(position: &Position, header: &Header<'_>, body: Hash) -> Hash {
    let [kind, texts @ ..] = header.texts();
    let mut hasher = Sha256::new();
    hasher.update(ENTRY_TAG);
    hasher.update(position.seq.to_be_bytes());
    hasher.update(position.prev.as_bytes());
    hasher.update(position.ts_us.to_be_bytes());
    add_text(&mut hasher, kind);
    hasher.update(header.version.to_be_bytes());
    for text in texts {
        add_text(&mut hasher, text);
    }
    hasher.update(body.as_bytes());
    Hash::from_hasher(hasher)
}

pub(crate) fn body_hash(facts: &[u8], private: PrivateRef<'_>) -> Hash {
    let facts_hash = digest(&[FACTS_TAG, &length(facts), facts]);
    let private_hash = private_hash(private);
    digest(&[BODY_TAG, facts_hash.as_bytes(), private_hash.as_bytes()])
}

fn private_hash(private: PrivateRef<'_>) -> Hash {
    match private {
        PrivateRef::None => Hash::ZERO,
        PrivateRef::Present { salt, bytes } => digest(&[PRIVATE_TAG, &salt, &length(bytes), bytes]),
        PrivateRef::Redacted { hash } => hash,
    }
}

fn add_text(hasher: &mut Sha256, text: &str) {
    hasher.update(length(text.as_bytes()));
    hasher.update(text);
}

/// The size limits of an entry are far below `u32::MAX`.
fn length(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn digest(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    Hash::from_hasher(hasher)
}
