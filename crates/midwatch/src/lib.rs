//! The `midwatch` command: flags, configuration, logs and the wiring of all other crates.

pub mod access;
pub(crate) mod backup_file;
pub mod cli;
pub mod config;
pub mod context;
pub mod daemon;
pub mod directory;
pub(crate) mod engine;
pub mod environment;
pub mod local_checks;
pub mod logs;
pub mod manual;
pub mod output;
pub mod reconnecting_client;
pub(crate) mod run_text;
pub mod secret;
pub mod storage;
pub(crate) mod terminal_escape;
pub mod tools;
pub(crate) mod user_names;
pub mod view;
pub(crate) mod wrap;
