//! Roles of callers.

use serde::{Deserialize, Serialize};

/// What a caller may do, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Observer,
    /// The role of agents and runs.
    Runner,
    /// Approves, cancels, pauses and registers agents.
    Operator,
    /// Also changes the policy, the posture and tokens.
    Maintainer,
}
