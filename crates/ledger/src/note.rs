//! Signed notes as C2SP `signed-note` defines them: a text, an empty line, signature lines.
//!
//! A signature by a key that the reader does not know is skipped, so that witnesses can add theirs;
//! a wrong signature by a known key, or none by a known key, refuses the note.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::key::is_name;
use crate::{SigningKey, VerifyingKey};

pub const NOTE_BYTES_MAX: usize = 64 * 1024;
pub const SIGNATURES_MAX: usize = 16;

const SIGNATURE_PREFIX: &str = "\u{2014} ";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("not a signed note: {0}")]
    Malformed(&'static str),
    #[error("signed by `{signer}`, and not by a known key")]
    UnknownKey { signer: String },
    #[error("the signature by `{signer}` is wrong")]
    BadSignature { signer: String },
    #[error("the signed text is not {0}")]
    Content(&'static str),
}

/// Appends one signature per key. `text` ends with a line break.
pub(crate) fn seal(text: &str, keys: &[&SigningKey]) -> String {
    let mut note = format!("{text}\n");
    for key in keys {
        let public = key.verifying_key();
        let signature = [&public.id(), key.sign(text.as_bytes()).as_slice()].concat();
        let signature = BASE64_STANDARD.encode(signature);
        note.push_str(&format!("{SIGNATURE_PREFIX}{} {signature}\n", public.name()));
    }
    note
}

/// The text of a note that at least one of the keys has signed.
pub(crate) fn open<'a>(note: &'a str, keys: &[VerifyingKey]) -> Result<&'a str, NoteError> {
    let note = Note::parse(note)?;
    note.verify(keys)?;
    Ok(note.text)
}

/// The text of a note, whoever signed it: for what must be known before the keys are.
pub(crate) fn peek(note: &str) -> Result<&str, NoteError> {
    Note::parse(note).map(|note| note.text)
}

/// A note in its parts. Invariant: there is at least one signature.
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
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Malformed("it ends in mid-line"))?;
        if SIGNATURES_MAX < lines.split('\n').count() {
            return Err(NoteError::Malformed("it has too many signatures"));
        }
        let signatures = lines.split('\n').map(SignatureLine::parse).collect::<Option<_>>();
        let signatures = signatures.ok_or(NoteError::Malformed("a signature line is damaged"))?;
        Ok(Note { text, signatures })
    }

    fn verify(&self, keys: &[VerifyingKey]) -> Result<(), NoteError> {
        let mut known = false;
        for line in &self.signatures {
            let Some(key) = keys.iter().find(|key| line.is_by(key)) else { continue };
            if !key.verifies(self.text.as_bytes(), &line.signature) {
                return Err(NoteError::BadSignature { signer: line.signer() });
            }
            known = true;
        }
        if known {
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
        let sound = is_name(name) && !signature.is_empty();
        sound.then(|| SignatureLine { name, id: *id, signature: signature.to_vec() })
    }

    fn is_by(&self, key: &VerifyingKey) -> bool {
        self.name == key.name() && self.id == key.id()
    }

    fn signer(&self) -> String {
        format!("{}+{:08x}", self.name, u32::from_be_bytes(self.id))
    }
}
