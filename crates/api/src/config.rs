//! Requests about the configuration and the setup checks of a running daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reloads the configuration and the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigReload {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReloaded {
    pub reloaded: Reloaded,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    pub config_hash: String,
    /// The version of the active policy.
    pub policy: String,
    /// Keys and files whose changes are now active.
    pub changed: Vec<String>,
    /// Changed keys that take effect after a restart.
    pub waiting: Vec<String>,
    /// Keys of the file that the daemon's environment overrides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
    /// Findings of the setup checks.
    pub warnings: Vec<Finding>,
}

/// Returns the active configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigShow {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveConfigValues {
    pub values: Vec<ConfigValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigValue {
    /// The path of the key, such as `log.level`.
    pub key: String,
    /// The value as TOML; secrets are hidden.
    pub value: String,
    /// Where the value comes from: `default`, `FILE:LINE` or the name of a variable.
    pub origin: String,
}

/// Repeats the startup checks, as far as the daemon can do so itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupCheck {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetupChecked {
    pub findings: Vec<Finding>,
}

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The name of the check.
    pub check: String,
    /// Whether the daemon refuses to start because of it.
    pub refuses: bool,
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}
