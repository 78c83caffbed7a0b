//! Ed25519 keys in the text forms of the C2SP `signed-note` format.
//!
//! A public key is `name+id+base64`, a private key `PRIVATE+KEY+name+id+base64`. The id is derived
//! from name and key, which reveals a name moved to another key.

use std::fmt;
use std::str::FromStr;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use ed25519_dalek::{Signature, Signer as _};
use sha2::{Digest, Sha256};

/// The algorithm byte before the key.
const ED25519: u8 = 0x01;
const SIGNING_KEY_PREFIX: &str = "PRIVATE+KEY+";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "a key's name must not be empty and must not contain spaces, control characters or `+`"
    )]
    Name,
    #[error("a public key has the form `name+id+base64`")]
    VerifyingFormat,
    #[error("a private key has the form `PRIVATE+KEY+name+id+base64`")]
    SigningFormat,
    #[error("this version does not support the key's algorithm")]
    Algorithm,
    #[error("the key's id does not match its name and bytes")]
    Id,
    #[error("the bytes are not an ed25519 key")]
    NotAKey,
}

/// A private key that signs checkpoints, manifests or a person's approvals. Its text form is secret.
#[derive(Clone)]
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    public: VerifyingKey,
}

/// A public key. Verifiers pin it.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
}

impl SigningKey {
    pub fn from_seed(name: &str, seed: [u8; 32]) -> Result<SigningKey, KeyError> {
        let key = ed25519_dalek::SigningKey::from_bytes(&seed);
        let public = VerifyingKey::new(name, key.verifying_key())?;
        Ok(SigningKey { key, public })
    }

    pub fn from_text(text: &str) -> Result<SigningKey, KeyError> {
        let parts = text.strip_prefix(SIGNING_KEY_PREFIX).and_then(KeyText::split);
        let parts = parts.ok_or(KeyError::SigningFormat)?;
        let key = SigningKey::from_seed(parts.name, parts.key()?)?;
        parts.check_id(key.public.id)?;
        Ok(key)
    }

    pub fn to_text(&self) -> String {
        let VerifyingKey { name, id, .. } = &self.public;
        let id = u32::from_be_bytes(*id);
        format!("{SIGNING_KEY_PREFIX}{name}+{id:08x}+{}", encode_key(self.key.as_bytes()))
    }

    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    /// Signs a text, which must itself say what kind of text it is, such as by a tag.
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }
}

impl VerifyingKey {
    pub fn parse(text: &str) -> Result<VerifyingKey, KeyError> {
        let parts = KeyText::split(text).ok_or(KeyError::VerifyingFormat)?;
        let key = ed25519_dalek::VerifyingKey::from_bytes(&parts.key()?);
        let key = VerifyingKey::new(parts.name, key.map_err(|_| KeyError::NotAKey)?)?;
        parts.check_id(key.id)?;
        Ok(key)
    }

    pub fn to_text(&self) -> String {
        self.to_string()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Verifies strictly: refuses keys of small order and malleable signatures.
    pub fn verifies(&self, text: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = Signature::from_slice(signature) else { return false };
        self.key.verify_strict(text, &signature).is_ok()
    }

    fn new(name: &str, key: ed25519_dalek::VerifyingKey) -> Result<VerifyingKey, KeyError> {
        if !is_key_name(name) {
            return Err(KeyError::Name);
        }
        Ok(VerifyingKey { name: name.to_owned(), id: key_id(name, &key), key })
    }
}

impl FromStr for VerifyingKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<VerifyingKey, KeyError> {
        VerifyingKey::parse(text)
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = u32::from_be_bytes(self.id);
        write!(f, "{}+{id:08x}+{}", self.name, encode_key(self.key.as_bytes()))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints the public key only.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public)
    }
}

pub(crate) fn is_key_name(name: &str) -> bool {
    let refused = |c: char| c == '+' || c.is_whitespace() || c.is_control();
    !name.is_empty() && !name.contains(refused)
}

fn key_id(name: &str, key: &ed25519_dalek::VerifyingKey) -> [u8; 4] {
    let mut hasher = Sha256::new_with_prefix(name);
    hasher.update([b'\n', ED25519]);
    hasher.update(key.as_bytes());
    let [a, b, c, d, ..]: [u8; 32] = hasher.finalize().into();
    [a, b, c, d]
}

fn encode_key(key: &[u8; 32]) -> String {
    BASE64_STANDARD.encode([&[ED25519], key.as_slice()].concat())
}

/// The parts of `name+id+base64`, which both text forms end with. Base64 may contain `+`.
struct KeyText<'a> {
    name: &'a str,
    id: &'a str,
    base64: &'a str,
}

impl<'a> KeyText<'a> {
    fn split(text: &'a str) -> Option<KeyText<'a>> {
        let (name, rest) = text.split_once('+')?;
        let (id, base64) = rest.split_once('+')?;
        Some(KeyText { name, id, base64 })
    }

    fn key(&self) -> Result<[u8; 32], KeyError> {
        let bytes = BASE64_STANDARD.decode(self.base64).map_err(|_| KeyError::NotAKey)?;
        let (&algorithm, key) = bytes.split_first().ok_or(KeyError::NotAKey)?;
        if algorithm != ED25519 {
            return Err(KeyError::Algorithm);
        }
        key.try_into().map_err(|_| KeyError::NotAKey)
    }

    fn check_id(&self, id: [u8; 4]) -> Result<(), KeyError> {
        let expected = format!("{:08x}", u32::from_be_bytes(id));
        if self.id == expected { Ok(()) } else { Err(KeyError::Id) }
    }
}
