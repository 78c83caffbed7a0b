//! The slots of a schedule, as a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Disposition;

/// Lists the decided slots of a schedule, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSlots {
    /// The id of the schedule, `sch_…`.
    pub id: String,
    /// Most items, 1 to 1000. Default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A slot, or several in a row with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// The nominal time of the slot; of several, that of the last one.
    pub slot: String,
    /// Number of slots in a row.
    pub slots: u64,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slots {
    pub schedule_id: String,
    pub slots: Vec<Slot>,
}
