//! The watch as a server of the Model Context Protocol.
//!
//! One table ([`tools`]) says of every tool what clients are told of it and which request it makes; nothing
//! here decides anything. A server speaks to a [`Handle`](api::Handle) that speaks for one principal, which
//! is never more than a runner: no tool approves, freezes, renews the lease or changes the standing orders,
//! and a handle for a runner would refuse it.
//!
//! Both eras of the protocol are served, 2026-07-28 and 2025-11-25 with those before it. No state is kept for
//! a client: ids of runs, schedules and approvals are the handles, and each is looked up on every call.

mod adapters;
mod completion;
mod dialect;
mod http;
mod human;
mod instructions;
mod lines;
mod message;
mod page;
mod progress;
mod prompts;
mod resources;
pub mod scheduled;
mod schema;
mod server;
mod sessions;
mod size;
mod tool;
mod tools;
mod toolset;
mod worded;

pub use self::http::Endpoint;
pub use instructions::instructions;
pub use lines::{LINE_BYTES_MAX, serve};
pub use rmcp::handler::server::ServerHandler;
pub use rmcp::transport::io::stdio_pipes as pipes;
pub use server::Server;
pub use tool::{Effect, Tool};
pub use tools::all as tools;
pub use toolset::{Agent, Selection, Toolset, UnknownToolset};
