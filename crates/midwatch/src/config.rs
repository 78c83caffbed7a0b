//! Configuration: a TOML file, overridden key by key from the environment.
//!
//! `keys.rs` is the one definition of every key. Parsing, validation, the names of the variables,
//! the file of `config init` ([`sample`]) and the manual ([`reference_page`]) all come from it.
//! Nothing here reads the environment or decides where the file is: both come in as arguments.
//! Invariant: a loaded [`Config`] holds only values that their keys accept, and that agree.

mod document;
mod error;
mod keys;
mod kind;
mod load;
mod nearest;
mod pages;
#[cfg(test)]
mod tests;
mod text;
mod variables;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use kernel::backend::{SecretRef, Url};
use kernel::money::Money;
use mcp::Toolset;
use serde::Serialize;

pub use error::Error;
pub use kernel::posture::Flags;
pub use kernel::ruling::Posture;
pub use keys::is_reread;
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
    pub store: Storage,
    pub notice: Notice,
    pub http: Http,
    pub feature_flags: Flags,
}

/// How programs reach the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    pub listen: Option<SocketAddr>,
    /// The usual ones if there are none.
    pub toolsets: Vec<Toolset>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub level: Level,
    /// Size at which the log file is rotated.
    pub file_bytes_max: u64,
    /// Rotated files that are kept beside the current one.
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
    /// File to which every signed checkpoint is appended as well.
    pub checkpoint_copy: Option<PathBuf>,
    /// Span between two signs of life; zero: none are written.
    pub heartbeat: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    /// How long they may go on when the watch is told to stop.
    pub drain: Duration,
}

/// How long the watch goes on without a human. Zero: for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Then every run asks.
    pub ask_after: Duration,
    /// Then no run begins.
    pub pause_after: Duration,
}

/// The most runs that may begin in a day, and what they may use. Zero: as many as there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub runs: u32,
    pub runs_per_agent: u32,
    pub tokens: u32,
    pub tokens_per_agent: u32,
    pub money: Money,
    pub money_per_agent: Money,
}

/// How much agents may ask of humans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Zero: as many as there are.
    pub pending_per_agent: u32,
    pub asks_per_agent: u32,
    /// For how long nobody is asked again what was denied.
    pub denied_for: Duration,
}

/// Where the data is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// A database; none: a file in the data directory.
    pub url: Option<String>,
    pub password: Option<SecretRef>,
    /// Certificates that the database's one is checked against, instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// How a human is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A program and its arguments; empty: none.
    pub command: Vec<String>,
    pub url: Option<Url>,
    pub token: Option<SecretRef>,
}

/// A configuration, and where each of its values came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub config: Config,
    /// One per key, in the order of the manual, made to be shown: secrets are already hidden.
    pub values: Vec<Value>,
    /// Variables that look like ours and match no key. Loading goes on without them.
    pub warnings: Vec<Warning>,
    /// Keys that the file has, and that go by the environment.
    pub overridden: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its path, such as `log.level`.
    pub key: &'static str,
    pub value: Setting,
    pub origin: Origin,
}

/// A value as it is shown. Prints as TOML.
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

    pub fn of(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == word)
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
