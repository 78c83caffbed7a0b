//! A prompt, payload or output: plain text, or sealed (encrypted) text.
//!
//! The kernel stores and compares sealed text but never opens it: the key is outside the kernel.

use serde::{Deserialize, Serialize};

/// The bytes that sealing adds, at most, beyond base64, which makes a text a third longer.
const SEAL_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum SealableText {
    Plain(String),
    Sealed { sealed: String },
}

impl SealableText {
    pub fn is_sealed(&self) -> bool {
        matches!(self, SealableText::Sealed { .. })
    }

    /// The text, unless it is sealed.
    pub fn plain(&self) -> Option<&str> {
        match self {
            SealableText::Plain(text) => Some(text),
            SealableText::Sealed { .. } => None,
        }
    }

    /// Whether the plain text can have at most this many bytes.
    pub(crate) fn fits(&self, bytes_max: usize) -> bool {
        match self {
            SealableText::Plain(text) => text.len() <= bytes_max,
            SealableText::Sealed { sealed } => sealed.len() <= sealed_bytes_max(bytes_max),
        }
    }

    /// Shortens it to this many bytes. Sealed text cannot be shortened, so it is cleared if it is too long.
    pub(crate) fn truncate(&mut self, bytes_max: usize) {
        let fits = self.fits(bytes_max);
        match self {
            SealableText::Plain(text) => text.truncate(text.floor_char_boundary(bytes_max)),
            SealableText::Sealed { sealed } if !fits => sealed.clear(),
            SealableText::Sealed { .. } => {}
        }
    }

    /// The stored string, plain or sealed.
    pub(crate) fn stored_mut(&mut self) -> &mut String {
        match self {
            SealableText::Plain(text) | SealableText::Sealed { sealed: text } => text,
        }
    }
}

const fn sealed_bytes_max(bytes_max: usize) -> usize {
    bytes_max.div_ceil(3) * 4 + SEAL_BYTES_MAX
}

impl From<String> for SealableText {
    fn from(text: String) -> SealableText {
        SealableText::Plain(text)
    }
}

impl From<&str> for SealableText {
    fn from(text: &str) -> SealableText {
        SealableText::Plain(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncating_clears_a_sealed_text_that_is_too_long() {
        let check = |bytes: usize, kept: usize| {
            let mut text = SealableText::Sealed { sealed: "x".repeat(bytes) };
            text.truncate(3);
            assert_eq!(text, SealableText::Sealed { sealed: "x".repeat(kept) });
        };
        check(4 + SEAL_BYTES_MAX, 4 + SEAL_BYTES_MAX);
        check(5 + SEAL_BYTES_MAX, 0);
        let mut plain = SealableText::from("aä");
        plain.truncate(2);
        assert_eq!(plain, SealableText::from("a"));
    }
}
