//! Statistics of tool calls.

use serde::{Deserialize, Serialize};

use crate::Code;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolList {}

/// The tools that were called, ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    pub tools: Vec<ToolUse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    /// Calls of the present UTC day.
    pub today: ToolTally,
    /// Calls of the last 14 days with calls, including today.
    pub all: ToolTally,
    /// When an alert was last raised because the tool fails far more often than usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<String>,
}

/// Counts of the calls of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTally {
    pub calls: u64,
    pub failures: u64,
    /// Mean duration of a call.
    pub mean_us: u64,
    /// Longest duration of a call.
    pub longest_us: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Runs that called the tool and count against the budget.
    pub runs: u64,
}

/// Records the call of a tool that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolMisuse {
    /// The name that no tool has.
    pub missing: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misused {}

/// Records the end of a tool call that no other request accounts for: the call made no request, or it failed after
/// its request succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolEnd {
    /// Whether calls of the tool change something.
    pub changes: bool,
    /// The error of the call; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Whether the call is already counted as a success.
    pub counted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnded {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    pub counted: bool,
}
