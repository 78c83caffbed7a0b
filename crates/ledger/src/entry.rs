//! An entry of the ledger, and its draft before it has a sequence number.
//!
//! An entry stores only its own hash. Its predecessor stores the previous hash, and the body's hash is
//! computed from the body; a second copy of either could only disagree.

use crate::{Hash, layout};

/// The facts of an entry. Larger data is stored elsewhere and referenced by its hash.
pub const FACTS_BYTES_MAX: usize = 256 * 1024;
pub const PRIVATE_BYTES_MAX: usize = 1024 * 1024;
/// Each text of a header.
pub const TEXT_BYTES_MAX: usize = 1024;

/// The fields that entries of every kind have: what happened, when, who did it and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Microseconds since 1970, UTC.
    pub ts_us: i64,
    pub kind: &'a str,
    /// The version of the facts' format of this kind.
    pub version: u16,
    pub actor: &'a str,
    pub role: &'a str,
    pub cause: &'a str,
    pub noun: &'a str,
    pub noun_id: &'a str,
}

/// The private part of an entry: it can be removed later without breaking the hash chain.
///
/// The salt is random; without it, a removed short value could be guessed from its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    pub salt: [u8; 16],
    /// Canonical JSON.
    pub bytes: Vec<u8>,
}

/// A part of a draft exceeds its size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` has {bytes} bytes; at most {bytes_max} are allowed")]
pub struct TooLarge {
    pub part: &'static str,
    pub bytes: usize,
    pub bytes_max: usize,
}

/// An entry before it is appended: everything but its sequence number and its hash.
///
/// The constructor hashes the body in the caller's thread, so that the single writer computes only the
/// chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    ts_us: i64,
    version: u16,
    texts: HeaderTexts,
    facts: Vec<u8>,
    private: Option<Private>,
    body_hash: Hash,
}

/// The texts of a header in one allocation, so that the writer, on another core, fetches one piece of
/// memory instead of six.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HeaderTexts {
    joined: String,
    /// Invariant: they add up to the length of `joined`, and split it between characters.
    lengths: [usize; 6],
}

impl Draft {
    /// `facts` and `private.bytes` are canonical JSON; see [`canonical_json`](crate::canonical_json).
    pub fn new(
        header: Header<'_>,
        facts: Vec<u8>,
        private: Option<Private>,
    ) -> Result<Draft, TooLarge> {
        header.check()?;
        check_size("facts", facts.len(), FACTS_BYTES_MAX)?;
        check_size("private", private.as_ref().map_or(0, |it| it.bytes.len()), PRIVATE_BYTES_MAX)?;

        let body_hash = layout::body_hash(&facts, PrivateRef::from(private.as_ref()));
        let texts = HeaderTexts::join(header.texts());
        Ok(Draft { ts_us: header.ts_us, version: header.version, texts, facts, private, body_hash })
    }

    pub fn header(&self) -> Header<'_> {
        let [kind, actor, role, cause, noun, noun_id] = self.texts.split();
        let (ts_us, version) = (self.ts_us, self.version);
        Header { ts_us, kind, version, actor, role, cause, noun, noun_id }
    }

    pub fn facts(&self) -> &[u8] {
        &self.facts
    }

    pub fn private(&self) -> Option<&Private> {
        self.private.as_ref()
    }

    pub fn body_hash(&self) -> Hash {
        self.body_hash
    }

    /// The size of facts and private fields.
    pub fn body_bytes(&self) -> usize {
        self.facts.len() + self.private.as_ref().map_or(0, |private| private.bytes.len())
    }

    /// The entry that the draft became when it was appended.
    pub fn appended_as(&self, appended: Appended) -> EntryRef<'_> {
        let [kind, actor, role, cause, noun, noun_id] = self.texts.split();
        EntryRef {
            seq: appended.seq,
            ts_us: appended.ts_us,
            kind,
            version: self.version,
            actor,
            role,
            cause,
            noun,
            noun_id,
            facts: &self.facts,
            private: PrivateRef::from(self.private.as_ref()),
            hash: appended.hash,
        }
    }
}

impl HeaderTexts {
    fn join(texts: [&str; 6]) -> HeaderTexts {
        HeaderTexts { joined: texts.concat(), lengths: texts.map(str::len) }
    }

    fn split(&self) -> [&str; 6] {
        let mut rest = self.joined.as_str();
        self.lengths.map(|length| {
            let (text, remainder) = rest.split_at(length);
            rest = remainder;
            text
        })
    }
}

impl<'a> Header<'a> {
    /// The texts, in the order in which they are hashed.
    pub(crate) fn texts(&self) -> [&'a str; 6] {
        [self.kind, self.actor, self.role, self.cause, self.noun, self.noun_id]
    }

    fn check(&self) -> Result<(), TooLarge> {
        let names = ["kind", "actor", "role", "cause", "noun", "noun_id"];
        names
            .into_iter()
            .zip(self.texts())
            .try_for_each(|(name, text)| check_size(name, text.len(), TEXT_BYTES_MAX))
    }
}

fn check_size(part: &'static str, bytes: usize, bytes_max: usize) -> Result<(), TooLarge> {
    if bytes <= bytes_max { Ok(()) } else { Err(TooLarge { part, bytes, bytes_max }) }
}

/// The sequence number, time and hash that a draft received when it was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub seq: u64,
    pub ts_us: i64,
    pub hash: Hash,
}

/// A borrowed [`Entry`], so that rows are verified without copying them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    pub seq: u64,
    pub ts_us: i64,
    pub kind: &'a str,
    pub version: u16,
    pub actor: &'a str,
    pub role: &'a str,
    pub cause: &'a str,
    pub noun: &'a str,
    pub noun_id: &'a str,
    pub facts: &'a [u8],
    pub private: PrivateRef<'a>,
    pub hash: Hash,
}

/// A borrowed [`EntryPrivate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateRef<'a> {
    None,
    Present {
        salt: [u8; 16],
        bytes: &'a [u8],
    },
    /// Content and salt were removed; their hash remains.
    Redacted {
        hash: Hash,
    },
}

impl<'a> From<Option<&'a Private>> for PrivateRef<'a> {
    fn from(private: Option<&'a Private>) -> PrivateRef<'a> {
        private
            .map_or(PrivateRef::None, |it| PrivateRef::Present { salt: it.salt, bytes: &it.bytes })
    }
}

impl PrivateRef<'_> {
    /// The size of the content; 0 if it was removed.
    pub fn content_bytes(&self) -> usize {
        match self {
            PrivateRef::Present { bytes, .. } => bytes.len(),
            PrivateRef::None | PrivateRef::Redacted { .. } => 0,
        }
    }
}

impl<'a> EntryRef<'a> {
    pub fn to_owned(&self) -> Entry {
        Entry {
            seq: self.seq,
            ts_us: self.ts_us,
            kind: self.kind.to_owned(),
            version: self.version,
            actor: self.actor.to_owned(),
            role: self.role.to_owned(),
            cause: self.cause.to_owned(),
            noun: self.noun.to_owned(),
            noun_id: self.noun_id.to_owned(),
            facts: self.facts.to_owned(),
            private: match self.private {
                PrivateRef::None => EntryPrivate::None,
                PrivateRef::Present { salt, bytes } => {
                    EntryPrivate::Present(Private { salt, bytes: bytes.to_owned() })
                }
                PrivateRef::Redacted { hash } => EntryPrivate::Redacted { hash },
            },
            hash: self.hash,
        }
    }

    pub(crate) fn header(&self) -> Header<'a> {
        Header {
            ts_us: self.ts_us,
            kind: self.kind,
            version: self.version,
            actor: self.actor,
            role: self.role,
            cause: self.cause,
            noun: self.noun,
            noun_id: self.noun_id,
        }
    }

    pub(crate) fn body_hash(&self) -> Hash {
        layout::body_hash(self.facts, self.private)
    }
}

/// A stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub ts_us: i64,
    pub kind: String,
    pub version: u16,
    pub actor: String,
    pub role: String,
    pub cause: String,
    pub noun: String,
    pub noun_id: String,
    pub facts: Vec<u8>,
    pub private: EntryPrivate,
    pub hash: Hash,
}

/// The private part of a stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPrivate {
    None,
    Present(Private),
    Redacted { hash: Hash },
}

impl Entry {
    pub fn entry_ref(&self) -> EntryRef<'_> {
        EntryRef {
            seq: self.seq,
            ts_us: self.ts_us,
            kind: &self.kind,
            version: self.version,
            actor: &self.actor,
            role: &self.role,
            cause: &self.cause,
            noun: &self.noun,
            noun_id: &self.noun_id,
            facts: &self.facts,
            private: match &self.private {
                EntryPrivate::None => PrivateRef::None,
                EntryPrivate::Present(private) => PrivateRef::from(Some(private)),
                EntryPrivate::Redacted { hash } => PrivateRef::Redacted { hash: *hash },
            },
            hash: self.hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text_bytes: usize, facts_bytes: usize, private_bytes: usize) -> Option<&'static str> {
        let header = Header {
            ts_us: 0,
            kind: "",
            version: 1,
            actor: "",
            role: "",
            cause: "",
            noun: "",
            noun_id: &"x".repeat(text_bytes),
        };
        let private = Private { salt: [0; 16], bytes: vec![b'0'; private_bytes] };
        Draft::new(header, vec![b'0'; facts_bytes], Some(private)).err().map(|it| it.part)
    }

    #[test]
    fn limits_hold_exactly() {
        assert_eq!(check(TEXT_BYTES_MAX, FACTS_BYTES_MAX, PRIVATE_BYTES_MAX), None);
        assert_eq!(check(TEXT_BYTES_MAX + 1, 0, 0), Some("noun_id"));
        assert_eq!(check(0, FACTS_BYTES_MAX + 1, 0), Some("facts"));
        assert_eq!(check(0, 0, PRIVATE_BYTES_MAX + 1), Some("private"));
    }
}
