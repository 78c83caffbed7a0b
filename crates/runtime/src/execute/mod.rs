//! Claimed runs are started and executed, and their outcome is recorded.

pub(crate) mod executor;
pub(crate) mod fast_start;
mod outcome;
mod preflight;
mod recovery;
pub(crate) mod start;
pub(crate) mod tool_call;
pub(crate) mod tool_metrics;
