//! The timeline: what happened, as one sentence per event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Returns what happened, oldest first, for people. The ledger has the exact events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimelineShow {
    /// A position in the ledger: only what follows it.
    pub after: Option<u64>,
    /// Without `after`: a span before now, or an instant with its offset. Default: `24h`.
    pub since: Option<String>,
    /// Also show bookkeeping such as heartbeats.
    pub all: bool,
    /// Most events to read for this page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// How long to wait for an event if none follows the position.
    pub wait_ms: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    pub lines: Vec<TimelineLine>,
    /// The `after` of the next request.
    pub cursor: u64,
    /// Whether the ledger has more events after the cursor. A page of bookkeeping alone has no lines.
    pub more: bool,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineLine {
    /// The position in the ledger.
    pub seq: u64,
    pub at: String,
    pub kind: String,
    pub actor: String,
    /// What it is about: the name of a schedule, its id once it was removed, the name of an agent or tool, or `midwatch`.
    pub about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// What happened, as a sentence.
    pub text: String,
}
