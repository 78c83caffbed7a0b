//! A page of log entries, packed: two buffers for all of them instead of a dozen for each, because a
//! verification reads millions.

use ledger::{Fields, Hash, PrivateRef};

pub const PAGE_ENTRIES_MAX: usize = 4_096;
pub const PAGE_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
    bytes: Vec<u8>,
    marks: Vec<Mark>,
}

/// One entry: its fixed-width fields, and where the others begin in the buffers. Each text ends where
/// the next begins.
#[derive(Clone, Debug)]
struct Mark {
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
        self.marks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub fn last_seq(&self) -> Option<u64> {
        self.marks.last().map(|mark| mark.seq)
    }

    /// Whether another entry belongs into the next page.
    pub fn is_full(&self) -> bool {
        PAGE_ENTRIES_MAX <= self.marks.len() || PAGE_BYTES_MAX <= self.text.len() + self.bytes.len()
    }

    pub fn push(&mut self, fields: &Fields<'_>) {
        let mut text_starts = [self.text.len(); 7];
        let texts =
            [fields.kind, fields.actor, fields.role, fields.cause, fields.noun, fields.noun_id];
        for (text, end) in texts.into_iter().zip(text_starts.iter_mut().skip(1)) {
            self.text.push_str(text);
            *end = self.text.len();
        }
        let facts_start = self.bytes.len();
        self.bytes.extend_from_slice(fields.facts);
        let private = match fields.private {
            PrivateRef::None => Private::None,
            PrivateRef::Present { salt, bytes } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                Private::Present { salt, start }
            }
            PrivateRef::Redacted { hash } => Private::Redacted { hash },
        };
        self.marks.push(Mark {
            seq: fields.seq,
            ts_us: fields.ts_us,
            version: fields.version,
            text_starts,
            facts_start,
            private,
            bytes_end: self.bytes.len(),
            hash: fields.hash,
        });
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Fields<'_>> + ExactSizeIterator {
        self.marks.iter().map(|mark| self.fields(mark))
    }

    fn fields(&self, mark: &Mark) -> Fields<'_> {
        let [kind, actor, role, cause, noun, noun_id, end] = mark.text_starts;
        let text = |from, to| self.text.get(from..to).unwrap_or_default();
        let bytes = |from, to| self.bytes.get(from..to).unwrap_or_default();
        let (facts_end, private) = match mark.private {
            Private::None => (mark.bytes_end, PrivateRef::None),
            Private::Redacted { hash } => (mark.bytes_end, PrivateRef::Redacted { hash }),
            Private::Present { salt, start } => {
                let bytes = bytes(start, mark.bytes_end);
                (start, PrivateRef::Present { salt, bytes })
            }
        };
        Fields {
            seq: mark.seq,
            ts_us: mark.ts_us,
            kind: text(kind, actor),
            version: mark.version,
            actor: text(actor, role),
            role: text(role, cause),
            cause: text(cause, noun),
            noun: text(noun, noun_id),
            noun_id: text(noun_id, end),
            facts: bytes(mark.facts_start, facts_end),
            private,
            hash: mark.hash,
        }
    }
}
