//! Other systems: Letta, and the commands, tools and stored data of other schedulers.

mod imports;
pub(crate) mod letta;
mod mcp_tools;
mod promptyoself;
mod real_letta;
