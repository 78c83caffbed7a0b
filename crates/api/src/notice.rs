//! What a receiver is given when a human is needed. The serde names are the format that hooks read.

use serde::{Deserialize, Serialize};

/// The version of the format; a receiver that knows it can read all of a digest.
pub const DIGEST_FORMAT: u16 = 1;
/// Notices in one digest; of the others it says how many.
pub const DIGEST_ITEMS_MAX: usize = 20;

/// Everything since the last one that needs a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    pub format: u16,
    /// The same for a delivery that is repeated, and never for another.
    pub id: String,
    /// The installation that it comes from.
    pub instance: String,
    /// All of it in words: a line for each item.
    pub text: String,
    pub items: Vec<Notice>,
    /// Notices that had no room.
    pub more: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The entry of the log that it comes from.
    pub seq: u64,
    pub kind: String,
    /// What it is about.
    pub id: String,
    pub at: String,
    pub text: String,
    /// What a human would type next.
    pub command: String,
    /// Where they would decide, in a browser on the machine of the watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A way to call a human, and how that went since the daemon was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    pub channel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Untold>,
}

/// A delivery that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untold {
    pub at: String,
    pub what: String,
}
