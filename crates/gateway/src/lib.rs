//! Midwatch over HTTP, for programs on this machine.
//!
//! Every request that reads or changes anything needs a token; a local address alone grants nothing. Requests
//! that a foreign web page made a browser send are rejected first, by their `Host` and `Origin` headers. `/mcp`
//! is for programs, `/approvals/ID` is the page of one approval for people.

mod approval;
mod authenticate;
mod concurrency_limit;
mod page;
mod serve;
mod write_timeout;

pub use authenticate::{Authenticated, Authenticator, ConnectionAddresses};
pub use concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit};
pub use serve::serve;
