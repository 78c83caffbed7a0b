//! Redacts secrets in text: log lines, errors, output of agents.
//!
//! By pattern ([`redact`]): everything that has the form of a secret. By value ([`Redactor`]):
//! registered secrets, in every usual encoding. Both prefer to redact too much. A reference such as
//! `env:NAME` or `file:/path` is not a secret and stays visible.
//!
//! Not a security boundary: a secret that is not registered and has no known form stays visible.
//! Invariants: a redacted secret becomes [`MARK`]; redacting again changes nothing; the time is
//! linear in the length of the text; a text without secrets is not copied.

mod encodings;
mod expressions;
mod json;
mod patterns;
mod redactor;

pub use patterns::redact;
pub use redactor::{Redactor, SECRET_BYTES_MIN, SECRETS_MAX};

/// The replacement of a secret.
pub const MARK: &str = "[redacted]";
