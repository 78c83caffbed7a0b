//! One file per noun. Each request has its [`api::Serve`], to which the table of requests dispatches.

pub(crate) mod agent_test;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod authority;
pub(crate) mod budgets;
pub(crate) mod cleanup;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod devices;
pub(crate) mod events;
pub(crate) mod ledger;
mod names;
pub(crate) mod notices;
pub(crate) mod policy;
pub(crate) mod policy_list;
pub(crate) mod policy_replay;
pub(crate) mod run_output;
pub(crate) mod run_watch;
pub(crate) mod runs;
pub(crate) mod schedules;
mod seen;
pub(crate) mod status;
mod timeline;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod why;
