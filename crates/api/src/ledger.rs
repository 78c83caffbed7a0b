//! Requests about the ledger.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The position in the ledger; the first entry has 1.
    pub seq: u64,
    pub at: String,
    pub kind: String,
    pub version: u16,
    pub actor: String,
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    pub noun: String,
    pub id: String,
    pub body: Value,
    /// Private fields: text by people and programs, stored apart from the facts in `body`.
    #[serde(rename = "words", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub private_fields: BTreeMap<String, String>,
    pub hash: String,
}

/// Returns the events after a position in the ledger, or the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerTail {
    /// The position; if absent, the last `limit` events are returned.
    pub after: Option<u64>,
    /// Most events in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// How long to wait for an event if none follows the position.
    pub wait_ms: u32,
    /// Only events of this kind, such as `run.started`, or `run.*` for all that begin so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only events about this schedule and its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Only events about this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The `log` of an earlier response: a position belongs to one ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    pub events: Vec<Event>,
    /// The `after` of the next request.
    pub cursor: u64,
    /// The id of the installation whose ledger it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// Returns the events of a run, from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEvents {
    /// The id of the run, `run_…`.
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEventList {
    pub run_id: String,
    /// The events that changed the run or its approvals.
    pub events: Vec<Event>,
    /// The position after which the ledger may have more; absent if all are returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_after: Option<u64>,
}

/// Waits until schedules or runs change. The response names them, not what changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WaitForChanges {
    /// A position in the ledger; its end if absent.
    pub after: Option<u64>,
    /// The ids of the schedules and runs to wait for.
    pub about: Vec<String>,
    /// Wait for any event, whatever it is about.
    pub any: bool,
    /// How long to wait if nothing has changed yet.
    pub wait_ms: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The requested ids that have changed.
    pub about: Vec<String>,
    /// The `after` of the next request.
    pub cursor: u64,
}

/// Signs the present state of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerCheckpoint {}

/// A signed state of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Number of entries that it covers.
    pub size: u64,
    /// The root hash of these entries.
    pub root: String,
    /// The signed text; store a copy elsewhere.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointMade {
    pub checkpoint: Checkpoint,
}

/// Writes the ledger to files, one pair per month.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerExport {
    /// The target directory; `exports` in the data directory if absent.
    #[serde(default)]
    pub dir: Option<String>,
}

/// The exported entries of one month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Export {
    pub month: String,
    pub file: String,
    /// The position of the first entry.
    pub first: u64,
    /// The position of the last entry.
    pub last: u64,
    /// False if correct files of the month already existed.
    pub written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    pub dir: String,
    pub exports: Vec<Export>,
}

/// Rebuilds every derived table from the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LedgerRebuild {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rebuilt {
    /// Number of entries read.
    pub entries: u64,
    /// Number of rows written.
    pub rows: u64,
    /// Number of rows that differed from the ledger.
    pub differences: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TablesRebuilt {
    pub rebuilt: Rebuilt,
}
