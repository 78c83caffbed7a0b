//! Statistics of tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolList {}

/// The tools that were called, ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    pub tools: Vec<ToolUse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
