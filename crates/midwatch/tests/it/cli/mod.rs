//! What each command prints, for people and for programs, and its exit code.

mod agent;
mod completions;
mod config;
mod demo;
mod errors;
mod global_flags;
mod help;
mod idempotency;
mod ledger;
mod manual_commands;
mod pagination;
mod policy;
mod registration;
mod status;
mod tables;
