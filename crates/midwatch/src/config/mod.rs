//! Configuration: a TOML file, overridden key by key from the environment.
//!
//! `keys.rs` has the one table of keys. Parsing, validation, the names of the variables, the file of
//! `config init` ([`sample`]) and the manual ([`reference_page`]) all come from it; `value.rs` has the
//! types of values, which parse themselves. Nothing here reads the environment or decides where the file
//! is: both are arguments.
//! Invariant: a loaded [`Config`] holds only values that their keys accept and that agree with each other.

mod document;
mod error;
mod keys;
mod kind;
mod load;
mod pages;
mod raw;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod value;
mod variables;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use kernel::backend::{SecretRef, Url};
use kernel::money::Money;
use mcp::Toolset;
use runtime::Retention;
use serde::Serialize;

pub use error::Error;
pub use kernel::posture::Flags;
pub use kernel::posture::Posture;
pub use keys::is_reloadable;
pub use pages::{reference_page, sample};
pub use text::{FILE_BYTES_MAX, read};
pub use variables::{RESERVED, Warning};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub posture: Posture,
    pub log: Log,
    pub ledger: Ledger,
    pub runs: Runs,
    pub lease: Lease,
    pub budget: Budget,
    pub approval: Approval,
    pub retention: Retention,
    pub store: Storage,
    pub notice: Notice,
    pub http: Http,
    pub feature_flags: Flags,
}

/// The daemon's HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    pub listen: Option<SocketAddr>,
    /// Empty: the default toolsets.
    pub toolsets: Vec<Toolset>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub level: Level,
    /// Size at which the log file is rotated.
    pub file_bytes_max: u64,
    /// Number of rotated files to keep.
    pub files_max: u32,
}

/// How much is logged, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// File to which every signed checkpoint is also appended.
    pub checkpoint_copy: Option<PathBuf>,
    /// Span between two heartbeat events; zero: none are recorded.
    pub heartbeat: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// How long runs may continue after the daemon is told to stop.
    pub drain: Duration,
}

/// How long Midwatch runs without a human. Zero: for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Then every run needs approval.
    pub ask_after: Duration,
    /// Then no run starts.
    pub pause_after: Duration,
}

/// The most runs, tokens and money of a UTC day. Zero: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub runs: u32,
    pub runs_per_agent: u32,
    pub tokens: u32,
    pub tokens_per_agent: u32,
    pub money: Money,
    pub money_per_agent: Money,
    pub changes_per_agent: u32,
    pub bytes_per_agent: u32,
}

/// How many approvals agents may request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Zero: no limit.
    pub pending_per_agent: u32,
    pub asks_per_agent: u32,
    /// How long a denied approval is not requested again.
    pub denied_for: Duration,
}

/// Where the data is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// `None`: a file in the data directory.
    pub url: Option<DatabaseUrl>,
    pub password: Option<SecretRef>,
    /// Certificates to verify the database's certificate with, instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// The channels on which humans are notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A program and its arguments; empty: none.
    pub command: Vec<String>,
    pub url: Option<Url>,
    pub token: Option<SecretRef>,
}

/// The url of a PostgreSQL database, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseUrl(String);

/// A configuration, and where each of its values came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub config: Config,
    /// One per key, in the order of the manual, with secrets redacted.
    pub values: Vec<Value>,
    /// Variables that start with `MIDWATCH_` and match no key. They are ignored.
    pub warnings: Vec<Warning>,
    /// Keys of the file that the environment overrides.
    pub overridden: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The path of the key, such as `log.level`.
    pub key: &'static str,
    pub value: Setting,
    pub origin: Origin,
}

/// A value as `config show` prints it, in TOML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<String>),
}

/// Where a value came from. Prints as `default`, `FILE:LINE` or the name of the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: u32 },
    Variable { name: String },
}

impl Loaded {
    /// Whether the file or a variable sets this key.
    pub fn is_set(&self, key: &str) -> bool {
        self.values.iter().any(|value| value.key == key && value.origin != Origin::Default)
    }
}

impl Notice {
    /// Whether there is a channel.
    pub fn is_configured(&self) -> bool {
        !self.command.is_empty() || self.url.is_some()
    }
}

impl Level {
    pub const ALL: [Level; 5] =
        [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    pub const fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }

    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl Deref for DatabaseUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Setting::Text(text) => toml::Value::String(text.clone()).fmt(out),
            Setting::Number(number) => number.fmt(out),
            Setting::Flag(flag) => flag.fmt(out),
            Setting::List(words) => toml::Value::from(words.clone()).fmt(out),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Origin::Default => out.write_str("default"),
            Origin::File { path, line } => write!(out, "{}:{line}", path.display()),
            Origin::Variable { name } => out.write_str(name),
        }
    }
}
