//! The secrets that agents refer to. They are read when they are needed and not kept.

use std::fmt::Debug;
use std::sync::Arc;

use kernel::backend::SecretRef;

pub trait Secrets: Debug + Send + Sync + 'static {
    /// Reads a secret; `None` if it does not exist or is unreadable.
    fn read(&self, secret: &SecretRef) -> Option<String>;

    /// Redacts every secret that was read, in any of its encodings.
    fn redact(&self, text: &str) -> String;

    /// The same secrets, which redact these values as well.
    fn with_values(&self, values: &[&str]) -> Arc<dyn Secrets>;
}
