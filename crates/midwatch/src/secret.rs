//! Secrets by reference: the configuration says where one is, and it is read when it is needed.

use api::{Code, Error};
use kernel::backend::SecretRef;

use crate::context::Context;

/// A secret is not longer than this.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// What the reference of a key leads to. No message repeats it.
pub fn read(secret: &SecretRef, key: &str, context: &Context) -> Result<String, Error> {
    let found = match secret {
        SecretRef::Env(name) => context.environment.get(name).cloned(),
        SecretRef::File(path) => std::fs::read_to_string(path).ok(),
    };
    let text = found.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
    text.filter(|text| !text.is_empty() && text.len() <= SECRET_BYTES_MAX).ok_or_else(|| {
        let what = format!("there is no secret at `{secret}`");
        let hint =
            format!("`{key}` names a variable or a file that holds it and that this user can read");
        Error::new(Code::ConfigInvalid, what).hint(hint)
    })
}
