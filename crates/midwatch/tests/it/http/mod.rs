//! The HTTP server of the daemon.

mod requests;
