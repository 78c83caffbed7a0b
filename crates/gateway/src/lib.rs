//! The watch over HTTP, for programs on this machine.
//!
//! Nobody learns or does anything without a token; that they come from this machine earns them nothing. What a
//! browser was talked into sending is turned away by the names that it came to and from, before anything else
//! is looked at. There is `/mcp` for programs, and for people the page of each approval, `/approvals/ID`.

mod admit;
mod approval;
mod page;
mod patient;
mod places;
mod serve;

pub use admit::{Door, Ends, Guest};
pub use places::{Place, Places};
pub use serve::serve;
