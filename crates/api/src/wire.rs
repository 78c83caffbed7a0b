//! Frames on the daemon's socket: one JSON document per line, a hello from each side first, then
//! one call at a time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Answer, Error, Progress, Request};

/// Both ends must speak the same one.
pub const PROTOCOL: u32 = 4;
/// Longest line, either way.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// The first line of each side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    /// The run from whose process the client speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// With which the client wants to be let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// Whether the client speaks for an agent, whoever has started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assistant: bool,
}

impl Hello {
    pub fn new(version: &str) -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: version.to_owned(),
            run: None,
            token: None,
            assistant: false,
        }
    }
}

/// Does not show itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub request: Request,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tool that makes the call, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// Any number of `progress`, then one of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "there is one for each call")]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Progress(Progress),
    Answer(Answer),
    Error(Error),
}
