//! Requests about devices: the browsers in which people have signed in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ActorRole;
use crate::words::words;

words! {
    /// Why a device ended.
    pub enum DeviceEnd "reason" {
        Revoked "revoked",
        Expired "expired",
        Idle "idle",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    pub id: String,
    /// The person who signed in.
    pub person: String,
    /// The most that the device may do.
    pub role: ActorRole,
    /// Such as `Firefox on Linux`.
    pub browser: String,
    /// Whether its pages have a key, so that they can decide without a token in the form.
    pub can_sign: bool,
    /// The token that opened it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    pub added_at: String,
    pub expires_at: String,
    /// When it was last used, since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<DeviceEnd>,
}

/// Creates a link that signs a browser in, once and within ten minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceLink {
    /// A person at a terminal asks for it. A link for anyone else opens a device that can only view.
    pub at_terminal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLinked {
    pub url: String,
    pub expires_at: String,
}

/// Lists devices, newest first: all of them for operators, for others their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceList {
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    pub devices: Vec<Device>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Ends a device, and with it its open pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRevoke {
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRevoked {
    pub device: Device,
    /// False if the device had already ended.
    pub changed: bool,
}
