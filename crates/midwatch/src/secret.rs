//! Secrets by reference: the configuration or an agent names a variable or file, which is read when needed.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use agents::{EnvironmentOf, SecretError, Secrets};
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
    find(secret, &context.environment).map_err(|_| {
        let what = format!("the secret `{secret}` does not exist or cannot be read");
        let hint = format!("let `{key}` name a variable or file that this user can read");
        Error::new(Code::ConfigInvalid, what).hint(hint)
    })
}

/// The secrets of agents. A secret that was read is redacted from then on, in logs and outputs.
pub struct Keyring {
    environment: Arc<BTreeMap<String, String>>,
    environment_of: EnvironmentOf,
    redactor: Arc<Redactor>,
    /// Values that only this keyring redacts.
    extra: Redactor,
}

impl Keyring {
    pub fn new(
        environment: BTreeMap<String, String>,
        environment_of: EnvironmentOf,
        redactor: Arc<Redactor>,
    ) -> Keyring {
        let (environment, extra) = (Arc::new(environment), Redactor::new());
        Keyring { environment, environment_of, redactor, extra }
    }
}

impl Secrets for Keyring {
    fn read(&self, secret: &SecretRef) -> Result<String, SecretError> {
        let found = find(secret, &self.environment);
        let found = found.map_err(|why| SecretError(why.describe(secret, self.environment_of)))?;
        self.redactor.add(&found);
        Ok(found)
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
        Arc::new(Keyring { environment, environment_of: self.environment_of, redactor, extra })
    }
}

/// Omits all values.
impl fmt::Debug for Keyring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keyring").finish_non_exhaustive()
    }
}

/// Why there is no secret.
#[derive(Debug)]
enum Unreadable {
    NoVariable,
    File(io::Error),
    Empty,
    TooLong,
}

impl Unreadable {
    /// Names the variable or file, and the process that cannot read it.
    fn describe(&self, secret: &SecretRef, of: EnvironmentOf) -> String {
        let what = match secret {
            SecretRef::Env(name) => format!("the variable `{name}` of {of}"),
            SecretRef::File(path) => format!("the secret file `{path}`"),
        };
        match (self, secret) {
            (Unreadable::NoVariable, SecretRef::Env(name)) => of.lacks_variable(name),
            (Unreadable::NoVariable, SecretRef::File(_)) => format!("{what} cannot be read"),
            (Unreadable::File(error), _) => format!("{of} cannot read {what}: {error}"),
            (Unreadable::Empty, _) => format!("{what} is empty"),
            (Unreadable::TooLong, _) => {
                format!("{what} is longer than {SECRET_BYTES_MAX} bytes")
            }
        }
    }
}

fn find(secret: &SecretRef, environment: &BTreeMap<String, String>) -> Result<String, Unreadable> {
    let text = match secret {
        SecretRef::Env(name) => environment.get(name).cloned().ok_or(Unreadable::NoVariable)?,
        SecretRef::File(path) => read_file(path).map_err(Unreadable::File)?,
    };
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(Unreadable::Empty),
        text if SECRET_BYTES_MAX < text.len() => Err(Unreadable::TooLong),
        text => Ok(text.to_owned()),
    }
}

fn read_file(path: &str) -> io::Result<String> {
    // With a line break.
    files::read_text_of(files::open_linked(Path::new(path))?, SECRET_BYTES_MAX + 2)
}
