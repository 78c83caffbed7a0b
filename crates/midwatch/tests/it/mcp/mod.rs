//! The MCP server: on standard input and output, and at `/mcp` of the daemon.

mod elicitation;
mod hidden_objects;
mod http;
mod mistakes;
mod permissions;
mod process;
mod stdio;
mod subscriptions;
mod tools;
