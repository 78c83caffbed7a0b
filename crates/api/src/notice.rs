//! Notices that a human is needed, as channels deliver them. The serde names are the format that hooks read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the digest format.
pub const DIGEST_FORMAT: u16 = 1;
/// Most notices in one digest; it only counts the others.
pub const DIGEST_ITEMS_MAX: usize = 20;

/// One delivery: the notices since the previous digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digest {
    /// The version of this format.
    pub format: u16,
    /// The id of the digest; only a repeated delivery has the same id.
    pub id: String,
    /// The installation that sent it.
    pub instance: String,
    /// The whole digest as text, one line per notice.
    pub text: String,
    pub items: Vec<Notice>,
    /// Number of notices that `items` leaves out.
    pub more: u64,
}

/// Something that needs a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The ledger entry that caused the notice.
    pub seq: u64,
    pub kind: String,
    /// The id of the object that the notice is about.
    pub id: String,
    pub at: String,
    pub text: String,
    /// The command that handles or shows it.
    pub command: String,
    /// The schedule that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    /// The name of that schedule, if only people have written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    /// The page where a human decides, for a browser on the daemon's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A notification channel, and its deliveries since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<DeliveryFailure>,
    /// The first failure since the last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
    /// Notices in the delivery under way.
    #[serde(default)]
    pub pending: u64,
}

/// Lists the notification channels of the running daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoticeList {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeChannels {
    pub channels: Vec<Channel>,
}

/// Sends a test message through every notification channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoticeTest {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeTested {
    pub results: Vec<TestDelivery>,
}

/// What became of a test message in one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestDelivery {
    pub channel: String,
    /// Why the message was not delivered; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A failed delivery of a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryFailure {
    pub at: String,
    pub what: String,
}
