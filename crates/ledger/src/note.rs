//! Signed notes (C2SP `signed-note`): a text, an empty line, signature lines.
//!
//! Signatures by unknown keys are ignored, so that witnesses can add theirs. A note is refused if a
//! known key's signature is wrong, or if no known key signed it.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::key::is_key_name;
use crate::{SigningKey, VerifyingKey};

pub const NOTE_BYTES_MAX: usize = 64 * 1024;
pub const SIGNATURES_MAX: usize = 16;

const SIGNATURE_PREFIX: &str = "\u{2014} ";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("not a signed note: {0}")]
    Malformed(&'static str),
    #[error("signed by `{signer}`, not by a known key")]
    UnknownKey { signer: String },
    #[error("the signature by `{signer}` is wrong")]
    BadSignature { signer: String },
    #[error("the signed text is not {0}")]
    Content(&'static str),
}

/// Signs a text that ends with a line break. The note has one signature per key.
pub(crate) fn sign(text: &str, keys: &[&SigningKey]) -> String {
    let mut note = format!("{text}\n");
    for key in keys {
        let public = key.verifying_key();
        let signature = [&public.id(), key.sign(text.as_bytes()).as_slice()].concat();
        let signature = BASE64_STANDARD.encode(signature);
        note.push_str(&format!("{SIGNATURE_PREFIX}{} {signature}\n", public.name()));
    }
    note
}

/// Verifies a note and returns its text. At least one of the keys must have signed it.
pub(crate) fn verified_text<'a>(
    note: &'a str,
    keys: &[VerifyingKey],
) -> Result<&'a str, NoteError> {
    let note = Note::parse(note)?;
    note.verify(keys)?;
    Ok(note.text)
}

/// The text of a note, without verifying its signatures: for callers that do not know the keys yet.
pub(crate) fn text_unverified(note: &str) -> Result<&str, NoteError> {
    Note::parse(note).map(|note| note.text)
}

/// A parsed note. Invariant: it has at least one signature.
struct Note<'a> {
    text: &'a str,
    signatures: Vec<SignatureLine<'a>>,
}

struct SignatureLine<'a> {
    name: &'a str,
    id: [u8; 4],
    signature: Vec<u8>,
}

impl<'a> Note<'a> {
    fn parse(note: &'a str) -> Result<Note<'a>, NoteError> {
        if NOTE_BYTES_MAX < note.len() {
            return Err(NoteError::Malformed("it is too long"));
        }
        if note.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return Err(NoteError::Malformed("it has control characters"));
        }
        let (before, lines) =
            note.rsplit_once("\n\n").ok_or(NoteError::Malformed("it has no signature"))?;
        let text = note.get(..before.len() + 1).unwrap_or(before);
        let lines =
            lines.strip_suffix('\n').ok_or(NoteError::Malformed("its last line is incomplete"))?;
        if SIGNATURES_MAX < lines.split('\n').count() {
            return Err(NoteError::Malformed("it has too many signatures"));
        }
        let signatures = lines.split('\n').map(SignatureLine::parse).collect::<Option<_>>();
        let signatures = signatures.ok_or(NoteError::Malformed("a signature line is malformed"))?;
        Ok(Note { text, signatures })
    }

    fn verify(&self, keys: &[VerifyingKey]) -> Result<(), NoteError> {
        let mut has_known_signer = false;
        for line in &self.signatures {
            let Some(key) = keys.iter().find(|key| line.is_by(key)) else { continue };
            if !key.verifies(self.text.as_bytes(), &line.signature) {
                return Err(NoteError::BadSignature { signer: line.signer() });
            }
            has_known_signer = true;
        }
        if has_known_signer {
            return Ok(());
        }
        let signer = self.signatures.first().map(SignatureLine::signer).unwrap_or_default();
        Err(NoteError::UnknownKey { signer })
    }
}

impl<'a> SignatureLine<'a> {
    fn parse(line: &'a str) -> Option<SignatureLine<'a>> {
        let (name, base64) = line.strip_prefix(SIGNATURE_PREFIX)?.split_once(' ')?;
        let bytes = BASE64_STANDARD.decode(base64).ok()?;
        let (id, signature) = bytes.split_first_chunk()?;
        let is_valid = is_key_name(name) && !signature.is_empty();
        is_valid.then(|| SignatureLine { name, id: *id, signature: signature.to_vec() })
    }

    fn is_by(&self, key: &VerifyingKey) -> bool {
        self.name == key.name() && self.id == key.id()
    }

    fn signer(&self) -> String {
        format!("{}+{:08x}", self.name, u32::from_be_bytes(self.id))
    }
}
