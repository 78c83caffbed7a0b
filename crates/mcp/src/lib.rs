//! Midwatch as a server of the Model Context Protocol.
//!
//! One table ([`tools`]) defines every tool: what clients see of it, and which request it makes. No rule of the product
//! is here. A server calls a [`Handle`](api::Handle) on behalf of one principal, which is never more than a runner: no
//! tool approves, freezes, renews the lease or changes the policy, and the handle would refuse it.
//!
//! Both eras of the protocol are served: the later one, 2026-07-28, and the earlier one, up to 2025-11-25. The server
//! keeps no state for a client: ids of runs, schedules and approvals are loaded again on every call.

mod arguments;
mod calling_agent;
mod completion;
mod elicitation;
mod http;
mod instructions;
mod list_page;
mod message;
mod model_hints;
mod pagination;
mod progress;
mod prompts;
mod resources;
mod result_format;
pub mod scheduled;
mod schema;
mod selection;
mod server;
mod sessions;
mod stdio;
mod tool;
mod tools;
mod toolsets;
mod truncation;

pub use self::http::Endpoint;
pub use calling_agent::{CallingAgent, CountAgents, LettaConnection, ValidateAgent};
pub use instructions::instructions;
pub use rmcp::handler::server::ServerHandler;
pub use rmcp::transport::io::stdio_pipes;
pub use selection::{Selection, UnknownToolset};
pub use server::Server;
pub use stdio::{LINE_BYTES_MAX, serve_stdio};
pub use tool::{Effect, Tool};
pub use tools::{Toolset, all as tools};
