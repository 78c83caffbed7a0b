//! One entry of the log: as a draft before it has a place, and as it is stored.
//!
//! An entry stores its own hash only. The hash before it belongs to its neighbour, and the hash of
//! its body follows from the body; a stored copy of either could only disagree.

use crate::{Hash, layout};

/// Facts are what derived state depends on; anything larger is kept elsewhere and named by its hash.
pub const FACTS_BYTES_MAX: usize = 256 * 1024;
pub const PRIVATE_BYTES_MAX: usize = 1024 * 1024;
/// For each of the texts in a header.
pub const TEXT_BYTES_MAX: usize = 1024;

/// What, when, by whom and why: the part of an entry that every kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Microseconds since 1970, UTC.
    pub ts_us: i64,
    pub kind: &'a str,
    /// Of the format of this kind's facts.
    pub version: u16,
    pub actor: &'a str,
    pub role: &'a str,
    pub cause: &'a str,
    pub noun: &'a str,
    pub noun_id: &'a str,
}

/// The part that can be removed later without breaking the chain.
///
/// The salt is random: without it, a short value that was removed could be guessed from its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    pub salt: [u8; 16],
    /// Canonical JSON.
    pub bytes: Vec<u8>,
}

/// A part of a draft that is longer than an entry can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` has {bytes} bytes, and an entry can hold {bytes_max} of it")]
pub struct TooLarge {
    pub part: &'static str,
    pub bytes: usize,
    pub bytes_max: usize,
}

/// An entry before it has a place: everything but its sequence number and its hash.
///
/// The body is hashed in the constructor, in the caller's thread, so that the single writer has
/// only the chain left to compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    ts_us: i64,
    version: u16,
    texts: Texts,
    facts: Vec<u8>,
    private: Option<Private>,
    body_hash: Hash,
}

/// The texts of a header, one behind the other: the writer, on another core, fetches one piece of
/// memory instead of six.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Texts {
    joined: String,
    /// Invariant: add up to the length of `joined`, and each ends where a text did.
    lengths: [usize; 6],
}

impl Draft {
    /// Facts and private part are canonical JSON, as [`canonical`](crate::canonical) writes it.
    pub fn new(
        header: Header<'_>,
        facts: Vec<u8>,
        private: Option<Private>,
    ) -> Result<Draft, TooLarge> {
        header.check()?;
        within("facts", facts.len(), FACTS_BYTES_MAX)?;
        within("private", private.as_ref().map_or(0, |it| it.bytes.len()), PRIVATE_BYTES_MAX)?;

        let body_hash = layout::body_hash(&facts, PrivateRef::from(private.as_ref()));
        let texts = Texts::join(header.texts());
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

    /// The entry that this draft became.
    pub fn fields(&self, sealed: Sealed) -> Fields<'_> {
        let [kind, actor, role, cause, noun, noun_id] = self.texts.split();
        Fields {
            seq: sealed.seq,
            ts_us: sealed.ts_us,
            kind,
            version: self.version,
            actor,
            role,
            cause,
            noun,
            noun_id,
            facts: &self.facts,
            private: PrivateRef::from(self.private.as_ref()),
            hash: sealed.hash,
        }
    }
}

impl Texts {
    fn join(texts: [&str; 6]) -> Texts {
        Texts { joined: texts.concat(), lengths: texts.map(str::len) }
    }

    fn split(&self) -> [&str; 6] {
        let mut rest = self.joined.as_str();
        self.lengths.map(|length| {
            let (text, behind) = rest.split_at(length);
            rest = behind;
            text
        })
    }
}

impl<'a> Header<'a> {
    /// In the order in which they are hashed.
    pub(crate) fn texts(&self) -> [&'a str; 6] {
        [self.kind, self.actor, self.role, self.cause, self.noun, self.noun_id]
    }

    fn check(&self) -> Result<(), TooLarge> {
        let names = ["kind", "actor", "role", "cause", "noun", "noun_id"];
        names
            .into_iter()
            .zip(self.texts())
            .try_for_each(|(name, text)| within(name, text.len(), TEXT_BYTES_MAX))
    }
}

fn within(part: &'static str, bytes: usize, bytes_max: usize) -> Result<(), TooLarge> {
    if bytes <= bytes_max { Ok(()) } else { Err(TooLarge { part, bytes, bytes_max }) }
}

/// What a draft was given when it became an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub seq: u64,
    pub ts_us: i64,
    pub hash: Hash,
}

/// All that is stored of one entry, borrowed, so that rows are verified without copying them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateRef<'a> {
    None,
    Present {
        salt: [u8; 16],
        bytes: &'a [u8],
    },
    /// Removed: content and salt are gone, their hash stays.
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
    /// Bytes of content that is still there.
    pub fn content_bytes(&self) -> usize {
        match self {
            PrivateRef::Present { bytes, .. } => bytes.len(),
            PrivateRef::None | PrivateRef::Redacted { .. } => 0,
        }
    }
}

impl<'a> Fields<'a> {
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

/// The owned form of [`Fields`].
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

/// The owned form of [`PrivateRef`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPrivate {
    None,
    Present(Private),
    Redacted { hash: Hash },
}

impl Entry {
    pub fn fields(&self) -> Fields<'_> {
        Fields {
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
