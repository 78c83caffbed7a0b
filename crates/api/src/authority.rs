//! Requests about what the watch may do at all.

use serde::{Deserialize, Serialize};

/// Nothing begins any more, and what is at work is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thaw {
    #[serde(default)]
    pub note: Option<String>,
}

/// A human says that the watch may go on by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRenew {
    #[serde(default)]
    pub note: Option<String>,
}

/// What the watch may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Who has frozen it, while it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Said>,
    pub lease: Lease,
}

/// How long the watch may go on without a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// `full`, `ask` (every run is asked) or `paused` (no run begins)
    pub step: String,
    /// By whom, and when last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Said>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses_from: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub by: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorityChanged {
    pub authority: Authority,
    /// Whether it was otherwise before.
    pub changed: bool,
}
