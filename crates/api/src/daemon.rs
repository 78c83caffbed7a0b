//! Requests about the daemon itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Run;

/// Stops the daemon: no run starts any more, and running runs have the time of `runs.drain` to finish.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonStop {
    /// Do not wait for running runs.
    pub now: bool,
    /// Answer only when no run is running any more.
    pub wait: bool,
}

/// The daemon stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStopping {
    /// The daemon's process.
    pub pid: u32,
    /// How long running runs may continue, in seconds.
    pub drain_s: u64,
    /// The runs that are running.
    pub running: Vec<Run>,
    /// The runs that were still running when that time was over, and what became of them.
    pub cut_off: Vec<Run>,
}
