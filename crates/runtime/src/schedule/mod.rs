//! Due schedules become queued runs.

pub(crate) mod compiled;
pub(crate) mod dependents;
pub(crate) mod event_trigger;
pub(crate) mod timer;
pub mod trigger;
pub(crate) mod zones;
