//! Midwatch over HTTP, for programs on this machine.
//!
//! Every request that reads or changes anything needs a token; a local address alone grants nothing. Requests
//! that a foreign web page made a browser send are rejected first, by their `Host` and `Origin` headers. `/mcp`
//! and `/api/v1` are for programs; the pages of the dashboard are for people who have signed in, and `/approvals/ID` also
//! for people with a token.

mod approval;
mod authenticate;
mod body;
mod byte_budget;
mod concurrency_limit;
mod connection;
mod mcp_route;
mod metrics_route;
mod origin;
mod page;
mod pages;
mod peer;
mod rejection;
mod request_permit;
mod rest;
mod router;
mod serve;
#[cfg(test)]
mod test_support;
mod write_timeout;

pub use authenticate::{Authenticated, HttpAuthenticator};
pub use byte_budget::{ByteBudget, FREE_BYTES_MAX, Reservation};
pub use concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
pub use connection::ConnectionAddresses;
pub use metrics_route::MetricsSource;
pub use pages::{DeviceAuthenticator, Session, SessionUse};
pub use peer::{PeerFinder, PeerProcess};
pub use rest::{ApiService, LedgerPosition};
pub use serve::{Services, serve};
