//! The `midwatch` command: flags, configuration, logs and the wiring of all other crates.

pub mod access;
pub mod checks;
pub mod cli;
pub mod config;
pub mod context;
pub mod daemon;
pub mod directory;
pub mod environment;
pub mod logs;
pub mod manual;
pub mod output;
pub mod redact;
pub(crate) mod safe;
pub mod secret;
pub mod storage;
pub mod tools;
