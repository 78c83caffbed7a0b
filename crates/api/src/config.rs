//! Configuration and checks of a watch that is kept.

use serde::{Deserialize, Serialize};

/// Asks that configuration and rules be read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigReload {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReloaded {
    pub reloaded: Reloaded,
}

/// What holds since configuration and rules were read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    pub config_hash: String,
    /// Which rules are in force.
    pub policy: String,
    /// The keys and files that were taken up.
    pub changed: Vec<String>,
    /// The keys that are others too, and wait for a restart.
    pub waiting: Vec<String>,
    /// What the checks have to say about it.
    pub warnings: Vec<Finding>,
}

/// Asks what the checks find that are made before the watch starts, as far as it can tell itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckAsk {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub findings: Vec<Finding>,
}

/// Something that a check has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of the check.
    pub check: String,
    /// Whether it keeps the daemon from starting.
    pub refuses: bool,
    pub what: String,
    pub fix: String,
}
