//! Other systems: Letta, and the commands, tools and stored data of other schedulers.

pub(crate) mod letta;
mod mcp_tools;
mod promptyoself;
mod real_letta;
