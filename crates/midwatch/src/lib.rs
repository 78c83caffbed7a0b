//! The `midwatch` command: flags, configuration, logs and the wiring of all other crates.

pub mod config;
pub mod logs;
pub mod redact;
