//! How tools have done.

use serde::{Deserialize, Serialize};

use crate::Code;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolList {}

/// By their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    pub tools: Vec<ToolUse>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    pub tool: String,
    /// By UTC.
    pub today: ToolTally,
    /// Of the last fourteen days on which it was called, today among them.
    pub all: ToolTally,
    /// When it was last found to fail far more often than it used to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<String>,
}

/// How often a tool was called, and how that went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTally {
    pub calls: u64,
    pub failures: u64,
    /// Of one call in the middle.
    pub mean_us: u64,
    pub longest_us: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Runs that were its call and are counted in the budget.
    pub runs: u64,
}

/// A tool was called that is not there; that is written down, and nothing else happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolMisuse {
    /// The name under which there is none.
    pub missing: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misused {}

/// How the call of a tool has ended, where nothing that it asked for says so: it was refused before it asked, or
/// there was nothing to ask for. That is counted or written down, and nothing else happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolEnd {
    /// Whether the tool changes something.
    pub changes: bool,
    /// With what it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// It was counted as one that went well.
    pub counted: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnded {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    pub counted: bool,
}
