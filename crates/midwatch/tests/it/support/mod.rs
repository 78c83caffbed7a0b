//! What the tests share: a throw-away installation, clients, stand-in servers, hostile programs.

pub(crate) mod approval_attack;
pub(crate) mod daemon;
pub(crate) mod http_stub;
pub(crate) mod mcp_http;
pub(crate) mod mcp_stdio;
pub(crate) mod rules;
#[path = "../../../../agents/tests/it/stand_in.rs"]
pub(crate) mod stand_in;
pub(crate) mod terminal;
pub(crate) mod transcript;
pub(crate) mod wait;
pub(crate) mod world;
