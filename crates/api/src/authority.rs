//! Requests about freeze and lease, which limit whether any run may start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Run;
use crate::words::words;

words! {
    /// What may start without a human.
    pub enum LeaseState "state" {
        /// Every run that the policy allows.
        Full "full",
        /// No run: every one needs approval.
        Ask "ask",
        /// No run, not even with approval.
        Paused "paused",
    }
}

/// Cancels every running run and starts none until a [`Thaw`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    #[serde(default)]
    pub note: Option<String>,
}

/// Ends a freeze.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thaw {
    #[serde(default)]
    pub note: Option<String>,
}

/// Renews the lease: a human confirms that runs may start unattended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseRenew {
    #[serde(default)]
    pub note: Option<String>,
}

/// Whether runs may start: the freeze and the lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Authority {
    /// Who froze the installation; absent unless it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Attribution>,
    pub lease: Lease,
}

/// How long runs may start without a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    #[serde(rename = "step")]
    pub state: LeaseState,
    /// Who last renewed the lease, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Attribution>,
    /// From this instant every run needs approval, unless the lease is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_from: Option<String>,
    /// From this instant no run starts, unless the lease is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses_from: Option<String>,
    /// The span without a human after which every run needs approval, such as `14d`; absent if that never happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_after: Option<String>,
    /// The span without a human after which no run starts; absent if that never happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<String>,
}

/// Who did something, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attribution {
    pub by: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthorityChanged {
    pub authority: Authority,
    /// Whether the request changed something.
    pub changed: bool,
    /// False for a freeze that is in effect, but that the ledger does not have yet.
    pub recorded: bool,
    /// The runs that waited for approval only because the lease had expired, and that the renewal queues again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Run>,
}
