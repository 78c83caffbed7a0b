//! The HTTP server of the daemon.

mod metrics;
mod requests;
