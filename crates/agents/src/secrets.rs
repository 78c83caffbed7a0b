//! The secrets that agents refer to. They are read when they are needed and not kept.

use std::fmt::Debug;
use std::sync::Arc;

use kernel::backend::SecretRef;

pub trait Secrets: Debug + Send + Sync + 'static {
    fn read(&self, secret: &SecretRef) -> Result<String, SecretError>;

    /// Redacts every secret that was read, in any of its encodings.
    fn redact(&self, text: &str) -> String;

    /// The same secrets, which redact these values as well.
    fn with_values(&self, values: &[&str]) -> Arc<dyn Secrets>;
}

/// Why a secret cannot be read: a sentence that names the variable or file, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SecretError(pub String);
