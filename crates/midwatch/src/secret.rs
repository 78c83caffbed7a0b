//! Secrets by reference: the configuration or an agent says where one is, and it is read when it is needed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use agents::Secrets;
use api::{Code, Error};
use kernel::backend::SecretRef;

use crate::context::Context;
use crate::redact::{Redactor, redact};

/// What tokens of ours begin with.
const OWN_TOKENS: [&str; 2] = ["mwa_", "mwt_"];

/// A secret is not longer than this.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// What the reference of a key leads to. No message repeats it.
pub fn read(secret: &SecretRef, key: &str, context: &Context) -> Result<String, Error> {
    find(secret, &context.environment).ok_or_else(|| {
        let what = format!("there is no secret at `{secret}`");
        let hint =
            format!("`{key}` names a variable or a file that holds it and that this user can read");
        Error::new(Code::ConfigInvalid, what).hint(hint)
    })
}

/// The secrets of agents. Each that is read is hidden from then on, wherever it would be said.
pub struct Keyring {
    environment: Arc<BTreeMap<String, String>>,
    redactor: Arc<Redactor>,
    /// Hidden here and nowhere else.
    also: Redactor,
}

impl Keyring {
    pub fn new(environment: BTreeMap<String, String>, redactor: Arc<Redactor>) -> Keyring {
        Keyring { environment: Arc::new(environment), redactor, also: Redactor::new() }
    }
}

impl Secrets for Keyring {
    fn read(&self, secret: &SecretRef) -> Option<String> {
        let found = find(secret, &self.environment)?;
        self.redactor.add(&found);
        Some(found)
    }

    fn hide(&self, text: &str) -> String {
        let hidden = self.redactor.hide_known(text);
        let hidden = self.also.hide_known(&hidden);
        match OWN_TOKENS.iter().any(|form| hidden.contains(form)) {
            true => redact(&hidden).into_owned(),
            false => hidden.into_owned(),
        }
    }

    fn and(&self, values: &[&str]) -> Arc<dyn Secrets> {
        let also = Redactor::new();
        for value in values {
            also.add(value);
        }
        let (environment, redactor) = (Arc::clone(&self.environment), Arc::clone(&self.redactor));
        Arc::new(Keyring { environment, redactor, also })
    }
}

/// The values are nobody's business.
impl fmt::Debug for Keyring {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keyring").finish_non_exhaustive()
    }
}

fn find(secret: &SecretRef, environment: &BTreeMap<String, String>) -> Option<String> {
    let text = match secret {
        SecretRef::Env(name) => environment.get(name).cloned()?,
        SecretRef::File(path) => text_of(path)?,
    };
    let text = text.trim_end_matches(['\r', '\n']).to_owned();
    Some(text).filter(|text| !text.is_empty() && text.len() <= SECRET_BYTES_MAX)
}

/// Not more than a secret may be long, whatever the path leads to.
fn text_of(path: &str) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX as u64 + 2).read_to_string(&mut text).ok()?;
    Some(text)
}
