//! Who may do what: tokens and roles, the rights of runs, and secrets.

mod duplicate_keys;
mod execution_fingerprint;
mod kill_switch;
mod numbers;
mod pipes;
mod process_origin;
mod raised_tier;
mod schedules_by_runs;
pub(crate) mod secrets;
mod tokens;
mod tool_reports;
