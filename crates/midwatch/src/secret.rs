//! Secrets by reference: the configuration or an agent names a variable or file, which is read when needed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use agents::Secrets;
use api::{Code, Error};
use kernel::backend::SecretRef;
use redact::{Redactor, redact};

use crate::context::Context;

/// Prefixes of Midwatch's own tokens.
const TOKEN_PREFIXES: [&str; 2] = ["mwa_", "mwt_"];

/// A longer secret is ignored.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// Reads the secret that configuration key `key` refers to. No error message contains its value.
pub fn read(secret: &SecretRef, key: &str, context: &Context) -> Result<String, Error> {
    find(secret, &context.environment).ok_or_else(|| {
        let what = format!("the secret `{secret}` does not exist or cannot be read");
        let hint = format!("let `{key}` name a variable or file that this user can read");
        Error::new(Code::ConfigInvalid, what).hint(hint)
    })
}

/// The secrets of agents. A secret that was read is redacted from then on, in logs and outputs.
pub struct Keyring {
    environment: Arc<BTreeMap<String, String>>,
    redactor: Arc<Redactor>,
    /// Values that only this keyring redacts.
    extra: Redactor,
}

impl Keyring {
    pub fn new(environment: BTreeMap<String, String>, redactor: Arc<Redactor>) -> Keyring {
        Keyring { environment: Arc::new(environment), redactor, extra: Redactor::new() }
    }
}

impl Secrets for Keyring {
    fn read(&self, secret: &SecretRef) -> Option<String> {
        let found = find(secret, &self.environment)?;
        self.redactor.add(&found);
        Some(found)
    }

    fn redact(&self, text: &str) -> String {
        let redacted = self.redactor.redact_known(text);
        let redacted = self.extra.redact_known(&redacted);
        match TOKEN_PREFIXES.iter().any(|prefix| redacted.contains(prefix)) {
            true => redact(&redacted).into_owned(),
            false => redacted.into_owned(),
        }
    }

    fn with_values(&self, values: &[&str]) -> Arc<dyn Secrets> {
        let extra = Redactor::new();
        for value in values {
            extra.add(value);
        }
        let (environment, redactor) = (Arc::clone(&self.environment), Arc::clone(&self.redactor));
        Arc::new(Keyring { environment, redactor, extra })
    }
}

/// Omits all values.
impl fmt::Debug for Keyring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keyring").finish_non_exhaustive()
    }
}

fn find(secret: &SecretRef, environment: &BTreeMap<String, String>) -> Option<String> {
    let text = match secret {
        SecretRef::Env(name) => environment.get(name).cloned()?,
        SecretRef::File(path) => read_file(path)?,
    };
    let text = text.trim_end_matches(['\r', '\n']).to_owned();
    Some(text).filter(|text| !text.is_empty() && text.len() <= SECRET_BYTES_MAX)
}

fn read_file(path: &str) -> Option<String> {
    // With a line break.
    files::read_text_of(files::open_linked(Path::new(path)).ok()?, SECRET_BYTES_MAX + 2).ok()
}
