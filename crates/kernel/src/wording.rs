//! What somebody said to an agent, or an agent said: as it is, or sealed.
//!
//! A sealed text is kept and compared, and read by no rule. Whoever holds the key opens it outside: here
//! there is neither the key nor a place for what comes out.

use serde::{Deserialize, Serialize};

/// What sealing adds to a text, at most: a text of four thirds the length, and this.
const SEAL_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Wording {
    Plain(String),
    Sealed { sealed: String },
}

impl Wording {
    pub fn is_sealed(&self) -> bool {
        matches!(self, Wording::Sealed { .. })
    }

    /// As it is, unless it is sealed.
    pub fn plain(&self) -> Option<&str> {
        match self {
            Wording::Plain(text) => Some(text),
            Wording::Sealed { .. } => None,
        }
    }

    /// Whether it is no longer than a text of so many bytes can be.
    pub(crate) fn fits(&self, bytes_max: usize) -> bool {
        match self {
            Wording::Plain(text) => text.len() <= bytes_max,
            Wording::Sealed { sealed } => sealed.len() <= sealed_bytes_max(bytes_max),
        }
    }

    /// Its beginning. A sealed text has none, so one that is too long is gone.
    pub(crate) fn cut(&mut self, bytes_max: usize) {
        let fits = self.fits(bytes_max);
        match self {
            Wording::Plain(text) => text.truncate(text.floor_char_boundary(bytes_max)),
            Wording::Sealed { sealed } if !fits => sealed.clear(),
            Wording::Sealed { .. } => {}
        }
    }

    /// What is stored of it.
    pub(crate) fn stored_mut(&mut self) -> &mut String {
        match self {
            Wording::Plain(text) | Wording::Sealed { sealed: text } => text,
        }
    }
}

const fn sealed_bytes_max(bytes_max: usize) -> usize {
    bytes_max.div_ceil(3) * 4 + SEAL_BYTES_MAX
}

impl From<String> for Wording {
    fn from(text: String) -> Wording {
        Wording::Plain(text)
    }
}

impl From<&str> for Wording {
    fn from(text: &str) -> Wording {
        Wording::Plain(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_is_kept_whole_or_not_at_all() {
        let check = |bytes: usize, kept: usize| {
            let mut wording = Wording::Sealed { sealed: "x".repeat(bytes) };
            wording.cut(3);
            assert_eq!(wording, Wording::Sealed { sealed: "x".repeat(kept) });
        };
        check(4 + SEAL_BYTES_MAX, 4 + SEAL_BYTES_MAX);
        check(5 + SEAL_BYTES_MAX, 0);
        let mut plain = Wording::from("aä");
        plain.cut(2);
        assert_eq!(plain, Wording::from("a"));
    }
}
