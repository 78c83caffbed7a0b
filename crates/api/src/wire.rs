//! Frames on the daemon's socket: one JSON document per line. Each side first sends a [`Hello`]; then
//! the client makes one call at a time.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Progress, Request, Response, ToolReport};

/// The protocol version; client and daemon must have the same.
pub const PROTOCOL: u32 = 5;
/// Most bytes in a line, in both directions.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// The first line that each side sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    /// The run whose process is the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The token that authenticates the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// Whether the client acts for an agent, even if a person started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assistant: bool,
    /// Whether a person runs the client at a terminal. It keeps the lease from expiring and gives no rights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_terminal: bool,
}

impl Hello {
    pub fn new(version: &str) -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: version.to_owned(),
            run: None,
            token: None,
            assistant: false,
            at_terminal: false,
        }
    }
}

/// A secret text; `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// A line from the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "one exists per call")]
#[serde(untagged, try_from = "FrameFields")]
pub enum ClientFrame {
    Call(RequestFrame),
    /// A tool call to record, which the daemon acknowledges with `recorded`.
    Report {
        report: ToolReport,
    },
}

impl ClientFrame {
    /// Whether it stops something.
    pub const fn stops(&self) -> bool {
        match self {
            ClientFrame::Call(frame) => frame.request.stops(),
            ClientFrame::Report { .. } => false,
        }
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestFrame {
    pub request: Request,
    /// The idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The tool that makes the call, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// The fields of any frame. An untagged enum would parse each frame twice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameFields {
    request: Option<Request>,
    key: Option<String>,
    tool: Option<String>,
    report: Option<ToolReport>,
}

impl TryFrom<FrameFields> for ClientFrame {
    type Error = &'static str;

    fn try_from(frame: FrameFields) -> Result<ClientFrame, &'static str> {
        match frame {
            FrameFields { request: Some(request), key, tool, report: None } => {
                Ok(ClientFrame::Call(RequestFrame { request, key, tool }))
            }
            FrameFields { request: None, key: None, tool: None, report: Some(report) } => {
                Ok(ClientFrame::Report { report })
            }
            _ => Err("a line has either a `request` or a `report`"),
        }
    }
}

/// A line from the daemon: any number of `progress` for each call, then one `answer` or `error`; or `recorded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "one exists per call")]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Progress(Progress),
    #[serde(rename = "answer")]
    Response(Response),
    Error(Error),
    Recorded,
}
