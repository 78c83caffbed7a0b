//! Sealing (encryption) of the private text of sensitive schedules. What is stored, exported or shown of it is useless without
//! the key, which is only in a file of the data directory.
//!
//! Equal texts are sealed to equal bytes, so that a schedule that is added again is recognised and a plan has one hash: the
//! nonce is a keyed hash of the text. So equality and length of texts are visible, and nothing else. A sealed text names its
//! key, and can be opened for one purpose only.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use api::{Code, Error};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use kernel::sealable_text::SealableText;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac::{self, HMAC_SHA256};

use crate::errors::internal;
use crate::secrets::key_files;

const FILE_NAME: &str = "sealing.key";
const SEED_BYTES: usize = 32;
/// The part of a key's hash that a sealed text names it by.
const ID_BYTES: usize = 4;
const VERSION: &str = "1";

/// What a text is sealed for. It cannot be opened for another purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    PrivateFields,
    Output,
}

/// Seals and opens texts with the key of a data directory, which is created at first use.
#[derive(Debug)]
pub(crate) struct Sealing {
    data: PathBuf,
    key: OnceLock<Key>,
    /// Locked while the key is created, so that there is only one.
    creating: Mutex<()>,
}

struct Key {
    id: String,
    nonces: hmac::Key,
    fingerprints: hmac::Key,
    aead: LessSafeKey,
}

impl Sealing {
    pub(crate) fn new(data: &Path) -> Sealing {
        Sealing { data: data.to_owned(), key: OnceLock::new(), creating: Mutex::new(()) }
    }

    /// Seals a text, unless it is sealed already.
    pub(crate) fn seal(&self, text: SealableText, purpose: Purpose) -> Result<SealableText, Error> {
        let text = match text {
            SealableText::Plain(text) => text,
            SealableText::Sealed { .. } => return Ok(text),
        };
        Ok(SealableText::Sealed { sealed: self.key_or_new()?.seal(text, purpose)? })
    }

    pub(crate) fn open(&self, text: &SealableText, purpose: Purpose) -> Result<String, Error> {
        let sealed = match text {
            SealableText::Plain(text) => return Ok(text.clone()),
            SealableText::Sealed { sealed } => sealed,
        };
        let key = self.key()?.ok_or_else(|| self.unusable("does not exist"))?;
        let is_another = || self.unusable("is not the key that this text was sealed with");
        key.open(sealed, purpose).ok_or_else(is_another)
    }

    /// The text, if it is sealed.
    pub(crate) fn open_sealed(
        &self,
        text: &SealableText,
        purpose: Purpose,
    ) -> Result<Option<String>, Error> {
        text.is_sealed().then(|| self.open(text, purpose)).transpose()
    }

    /// A keyed hash by which equal text is recognised. It cannot be guessed without the key.
    pub(crate) fn fingerprint(&self, text: &[u8]) -> Result<[u8; 32], Error> {
        let tag = hmac::sign(&self.key_or_new()?.fingerprints, text);
        tag.as_ref().try_into().map_err(internal)
    }

    fn key_or_new(&self) -> Result<&Key, Error> {
        let _creating = self.creating.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.key()? {
            return Ok(key);
        }
        let created = Key::of(&create(&self.data)?)?;
        Ok(self.key.get_or_init(|| created))
    }

    fn key(&self) -> Result<Option<&Key>, Error> {
        if let Some(key) = self.key.get() {
            return Ok(Some(key));
        }
        let Some(text) = key_files::read_text(&self.path(), "sealing key")? else {
            return Ok(None);
        };
        let seed = STANDARD_NO_PAD.decode(text.trim_end()).unwrap_or_default();
        let key = Key::of(&seed).map_err(|_| self.unusable("is not a valid key"))?;
        Ok(Some(self.key.get_or_init(|| key)))
    }

    fn path(&self) -> PathBuf {
        self.data.join(FILE_NAME)
    }

    fn unusable(&self, what: &str) -> Error {
        Error::new(Code::KeyMissing, format!("the sealing key `{}` {what}", self.path().display()))
            .hint("restore the key file of this data directory from your backup")
    }
}

fn create(data: &Path) -> Result<Vec<u8>, Error> {
    let mut seed = vec![0; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(internal)?;
    key_files::write_text(data, FILE_NAME, &STANDARD_NO_PAD.encode(&seed))?;
    Ok(seed)
}

impl Key {
    fn of(seed: &[u8]) -> Result<Key, Error> {
        if seed.len() != SEED_BYTES {
            return Err(internal("the sealing key has the wrong length"));
        }
        let seed = hmac::Key::new(HMAC_SHA256, seed);
        let derived = |what: &str| hmac::sign(&seed, format!("midwatch/seal/{what}").as_bytes());
        let aead = UnboundKey::new(&CHACHA20_POLY1305, derived("words").as_ref());
        let id = derived("id");
        let id = id.as_ref().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
        let hashing = |what| hmac::Key::new(HMAC_SHA256, derived(what).as_ref());
        let (nonces, fingerprints) = (hashing("nonces"), hashing("fingerprints"));
        Ok(Key { id, nonces, fingerprints, aead: LessSafeKey::new(aead.map_err(internal)?) })
    }

    fn seal(&self, text: String, purpose: Purpose) -> Result<String, Error> {
        let mut hash = hmac::Context::with_key(&self.nonces);
        hash.update(purpose.name());
        hash.update(text.as_bytes());
        let mut nonce = [0; NONCE_LEN];
        nonce.iter_mut().zip(hash.sign().as_ref()).for_each(|(to, from)| *to = *from);
        let mut bytes = text.into_bytes();
        let sealing = Nonce::assume_unique_for_key(nonce);
        let sealed = self.aead.seal_in_place_append_tag(sealing, purpose.aad(), &mut bytes);
        sealed.map_err(internal)?;
        bytes.splice(..0, nonce);
        Ok(format!("{VERSION}.{}.{}", self.id, STANDARD_NO_PAD.encode(bytes)))
    }

    fn open(&self, sealed: &str, purpose: Purpose) -> Option<String> {
        let (version, rest) = sealed.split_once('.')?;
        let (id, bytes) = rest.split_once('.')?;
        if version != VERSION || id != self.id {
            return None;
        }
        let bytes = STANDARD_NO_PAD.decode(bytes).ok()?;
        let (nonce, bytes) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, mut bytes) = (Nonce::assume_unique_for_key(*nonce), bytes.to_vec());
        let text = self.aead.open_in_place(nonce, purpose.aad(), &mut bytes).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Purpose {
    const fn name(self) -> &'static [u8] {
        match self {
            Purpose::PrivateFields => b"words:",
            Purpose::Output => b"output:",
        }
    }

    fn aad(self) -> Aad<&'static [u8]> {
        Aad::from(self.name())
    }
}

/// Shows only the id.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(text: SealableText) -> String {
        match text {
            SealableText::Sealed { sealed } => sealed,
            SealableText::Plain(text) => panic!("{text} is not sealed"),
        }
    }

    #[test]
    fn equal_text_is_sealed_equally_and_opened_only_for_its_purpose() {
        let data = tempfile::tempdir().unwrap();
        let first = Sealing::new(data.path());
        let text = "look at the inbox of ada";
        let one = first.seal(text.into(), Purpose::PrivateFields).unwrap();
        // Another process reads the key that the first has created.
        let second = Sealing::new(data.path());
        assert_eq!(second.seal(text.into(), Purpose::PrivateFields).unwrap(), one);
        assert_ne!(second.seal(format!("{text}.").into(), Purpose::PrivateFields).unwrap(), one);
        assert_ne!(second.seal(text.into(), Purpose::Output).unwrap(), one);
        assert_eq!(
            second.seal(one.clone(), Purpose::PrivateFields).unwrap(),
            one,
            "not sealed twice"
        );
        assert_eq!(second.open(&one, Purpose::PrivateFields).unwrap(), text);
        assert!(second.open(&one, Purpose::Output).is_err());
        assert!(!format!("{one:?} {second:?}").contains("inbox"));
    }

    #[test]
    fn text_that_was_changed_or_sealed_with_another_key_is_not_opened() {
        let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [ours, theirs] = data.each_ref().map(|data| Sealing::new(data.path()));
        let one = ours.seal("hello".into(), Purpose::PrivateFields).unwrap();
        let code = |sealing: &Sealing, text: &SealableText| {
            sealing.open(text, Purpose::PrivateFields).map_err(|error| error.code)
        };
        assert_eq!(code(&theirs, &one), Err(Code::KeyMissing), "no key");
        theirs.seal("hello".into(), Purpose::PrivateFields).unwrap();
        assert_eq!(code(&theirs, &one), Err(Code::KeyMissing));
        let text = sealed(one);
        for index in 0..text.len() {
            let other = if &text[index..=index] == "A" { "B" } else { "A" };
            let sealed = format!("{}{other}{}", &text[..index], &text[index + 1..]);
            assert!(code(&ours, &SealableText::Sealed { sealed }).is_err(), "{index}");
        }
        for sealed in ["", ".", "1..", "1.00000000.AAAA", &text[..text.len() - 1]] {
            assert!(code(&ours, &SealableText::Sealed { sealed: sealed.to_owned() }).is_err());
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let data = tempfile::tempdir().unwrap();
        let sealed =
            Sealing::new(data.path()).seal("hello".into(), Purpose::PrivateFields).unwrap();
        let path = data.path().join(FILE_NAME);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refused = Sealing::new(data.path()).open(&sealed, Purpose::PrivateFields).unwrap_err();
        assert!(refused.message.starts_with("others can read the sealing key"), "{refused}");
    }
}
