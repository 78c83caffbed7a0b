//! The HTTP server of the daemon.

mod api;
mod client;
mod events;
mod metrics;
mod requests;
mod roles;
mod surfaces;
