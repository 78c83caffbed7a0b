//! Queued runs wait here until their agent has a permit.

pub(crate) mod dispatcher;
mod queues;
