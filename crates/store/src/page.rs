//! A page of ledger entries in two shared buffers. A verification reads millions of entries, and a
//! dozen allocations for each would be slow.

use ledger::{EntryRef, Hash, PrivateRef};

pub const PAGE_ENTRIES_MAX: usize = 4_096;
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// Consecutive entries of the ledger.
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
    bytes: Vec<u8>,
    entries: Vec<PackedEntry>,
}

/// An entry: its fixed-width fields, and the offsets of the others in the buffers. Each text ends where
/// the next starts.
#[derive(Clone, Debug)]
struct PackedEntry {
    seq: u64,
    ts_us: i64,
    version: u16,
    text_starts: [usize; 7],
    facts_start: usize,
    private: Private,
    bytes_end: usize,
    hash: Hash,
}

#[derive(Clone, Debug)]
enum Private {
    None,
    Present { salt: [u8; 16], start: usize },
    Redacted { hash: Hash },
}

impl Page {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn last_seq(&self) -> Option<u64> {
        self.entries.last().map(|packed| packed.seq)
    }

    /// Whether the next entry belongs on another page.
    pub fn is_full(&self) -> bool {
        PAGE_ENTRIES_MAX <= self.entries.len()
            || PAGE_BYTES_MAX <= self.text.len() + self.bytes.len()
    }

    pub fn push(&mut self, entry: &EntryRef<'_>) {
        let mut text_starts = [self.text.len(); 7];
        let texts = [entry.kind, entry.actor, entry.role, entry.cause, entry.noun, entry.noun_id];
        for (text, end) in texts.into_iter().zip(text_starts.iter_mut().skip(1)) {
            self.text.push_str(text);
            *end = self.text.len();
        }
        let facts_start = self.bytes.len();
        self.bytes.extend_from_slice(entry.facts);
        let private = match entry.private {
            PrivateRef::None => Private::None,
            PrivateRef::Present { salt, bytes } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Private::Present { salt, start }
            }
            PrivateRef::Redacted { hash } => Private::Redacted { hash },
        };
        self.entries.push(PackedEntry {
            seq: entry.seq,
            ts_us: entry.ts_us,
            version: entry.version,
            text_starts,
            facts_start,
            private,
            bytes_end: self.bytes.len(),
            hash: entry.hash,
        });
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = EntryRef<'_>> + ExactSizeIterator {
        self.entries.iter().map(|packed| self.entry_ref(packed))
    }

    fn entry_ref(&self, packed: &PackedEntry) -> EntryRef<'_> {
        let [kind, actor, role, cause, noun, noun_id, end] = packed.text_starts;
        let text = |from, to| self.text.get(from..to).unwrap_or_default();
        let bytes = |from, to| self.bytes.get(from..to).unwrap_or_default();
        let (facts_end, private) = match packed.private {
            Private::None => (packed.bytes_end, PrivateRef::None),
            Private::Redacted { hash } => (packed.bytes_end, PrivateRef::Redacted { hash }),
            Private::Present { salt, start } => {
                let bytes = bytes(start, packed.bytes_end);
                (start, PrivateRef::Present { salt, bytes })
            }
        };
        EntryRef {
            seq: packed.seq,
            ts_us: packed.ts_us,
            kind: text(kind, actor),
            version: packed.version,
            actor: text(actor, role),
            role: text(role, cause),
            cause: text(cause, noun),
            noun: text(noun, noun_id),
            noun_id: text(noun_id, end),
            facts: bytes(packed.facts_start, facts_end),
            private,
            hash: packed.hash,
        }
    }
}
