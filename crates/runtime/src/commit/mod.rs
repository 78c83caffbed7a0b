//! Load rows, decide, commit; decide again on a conflict.

pub(crate) mod caller;
pub(crate) mod codec;
pub(crate) mod counters;
mod growth;
pub(crate) mod hooks;
pub(crate) mod idempotency;
pub(crate) mod identity;
pub(crate) mod ids;
pub(crate) mod row_cache;
pub(crate) mod row_locks;
pub(crate) mod rows;
pub(crate) mod run_context;
pub(crate) mod transaction;
