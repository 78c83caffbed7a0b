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
    /// The keys that the file has, and that go by the daemon's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    /// What the checks have to say about it.
    pub warnings: Vec<Finding>,
}

/// Asks which values are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigAsk {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigInForce {
    pub values: Vec<ConfigValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    /// Its path, such as `log.level`.
    pub key: String,
    /// As TOML; secrets are hidden.
    pub value: String,
    /// Where it came from: `default`, `FILE:LINE` or the name of a variable.
    pub origin: String,
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
