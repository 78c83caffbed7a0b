//! A tool of our own, as a schedule calls it.

use crate::agent::AgentName;
use crate::backend::Tier;

/// What a call of a tool comes to, as the tool is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Of all that callers are told of the tool.
    pub hash: String,
    /// The class of what it does.
    pub capability: String,
    /// How far that class reaches.
    pub tier: Tier,
    /// Whose schedule or run it is about.
    pub agent: Option<AgentName>,
    /// The schedule or run that it is done to.
    pub resource: Option<String>,
}
