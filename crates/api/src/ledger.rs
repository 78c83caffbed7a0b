//! Requests about the log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
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
    /// What people and programs wrote, apart from the facts in the body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    pub hash: String,
}

/// Events after a place in the log, or the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerTail {
    /// Absent: the last `limit` events.
    #[serde(default)]
    pub after: Option<u64>,
    #[serde(default)]
    pub limit: Option<u32>,
    /// When there is nothing after the place yet, wait this long for something.
    #[serde(default)]
    pub wait_ms: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Events {
    pub events: Vec<Event>,
    /// Ask for what comes after this.
    pub cursor: u64,
}

/// What the log says of a run, from its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEvents {
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTold {
    pub run_id: String,
    /// All that changed it: what became of it, and of the questions about it.
    pub events: Vec<Event>,
    /// There may be more, after this place in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_after: Option<u64>,
}

/// Whether the log says something about these that is new. What it says is asked for elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct News {
    /// A place in the log. Absent: its end.
    #[serde(default)]
    pub after: Option<u64>,
    /// Ids of schedules and runs.
    #[serde(default)]
    pub about: Vec<String>,
    /// Whatever happens is news.
    #[serde(default)]
    pub any: bool,
    /// When there is no news yet, wait this long for some.
    #[serde(default)]
    pub wait_ms: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Those of which there is news.
    pub about: Vec<String>,
    /// Ask for what comes after this.
    pub cursor: u64,
}

/// Signs the log as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerCheckpoint {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub size: u64,
    pub root: String,
    /// The signed text, to be kept elsewhere.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMade {
    pub checkpoint: Checkpoint,
}

/// Writes the log to files, one pair for each month.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerExport {
    /// Absent: `exports` in the data directory.
    #[serde(default)]
    pub dir: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    pub month: String,
    pub file: String,
    pub first: u64,
    pub last: u64,
    /// False when the month's files were there already and still right.
    pub written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    pub dir: String,
    pub exports: Vec<Export>,
}

/// Makes every derived table anew from the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerRebuild {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    pub entries: u64,
    pub rows: u64,
    /// Rows that were not what the log says.
    pub differences: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablesRebuilt {
    pub rebuilt: Rebuilt,
}
