//! Where the secrets are that agents refer to. They are read when they are needed, and kept by nobody here.

use std::fmt::Debug;
use std::sync::Arc;

use kernel::backend::SecretRef;

pub trait Secrets: Debug + Send + Sync + 'static {
    /// What a reference leads to, if anything.
    fn read(&self, secret: &SecretRef) -> Option<String>;

    /// A text without the secrets that were read, in whatever form they stand there.
    fn hide(&self, text: &str) -> String;

    /// These secrets, which hide such values as well.
    fn and(&self, values: &[&str]) -> Arc<dyn Secrets>;
}
