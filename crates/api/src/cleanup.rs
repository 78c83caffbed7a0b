//! Removal of files that are older or larger than the configuration allows, and what uses the disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Removes outputs, logs and exports beyond the limits of `[retention]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cleanup {
    /// Only report what would be removed.
    pub dry_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanedUp {
    pub dry_run: bool,
    pub removed: Removed,
}

/// Numbers of removed files, and their bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// Output files of ended runs.
    pub outputs: u64,
    /// Rotated files of the daemon's log.
    pub logs: u64,
    /// Exported months, whose manifests are kept.
    pub exports: u64,
    /// Folders of interrupted backups.
    pub leftovers: u64,
    pub bytes: u64,
}

impl Removed {
    pub fn is_empty(&self) -> bool {
        let Removed { outputs, logs, exports, leftovers, .. } = self;
        [outputs, logs, exports, leftovers].into_iter().all(|count| *count == 0)
    }
}

/// Bytes that the data directory uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Absent if the data is in PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<u64>,
    pub outputs: u64,
    pub logs: u64,
    pub exports: u64,
    /// Growth of database, outputs and exports, on average over the last week.
    pub bytes_per_day: u64,
    /// Growth of the ledger, on average over the last week.
    pub entries_per_day: u64,
}
