//! Agents that are reached over HTTP: an agent of a Letta server, or a webhook.
//!
//! Default values are not stored, so a default must never change.

use std::ops::Not;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::backend::{Invalid, Url};
use crate::program::TimeLimit;

/// Longer than the App Server's own limit of 15 minutes for a turn, so that its limit applies first.
const TURN_SECONDS: u32 = 16 * 60;

/// One agent of a Letta server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Letta {
    pub url: Url,
    /// The agent's id on its server. Names are not used because they can be reassigned.
    pub remote_id: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: LettaApi,
    #[serde(default, skip_serializing_if = "is_default")]
    pub sending: Sending,
    #[serde(rename = "time_limit_seconds", default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimit>,
    /// Allow a server in a private network. This machine is always allowed if the url names it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
}

/// A service that receives prompts at a url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: Url,
    #[serde(rename = "time_limit_seconds", default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimit>,
    /// Allow a url on this machine or in a private network.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
}

/// Which of Letta's two servers the url leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LettaApi {
    /// The V1 server.
    #[default]
    Rest,
    /// The App Server, where every agent is a model.
    Openai,
}

/// How a prompt is sent and its response received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sending {
    /// One response at the end.
    #[default]
    Wait,
    /// The response is streamed.
    Stream,
    /// The server works in the background and is polled.
    Background,
}

impl Letta {
    pub fn time_limit(&self) -> TimeLimit {
        let default = match self.api {
            LettaApi::Rest => TimeLimit::default(),
            LettaApi::Openai => TimeLimit::try_from(TURN_SECONDS).unwrap_or_default(),
        };
        self.time_limit.unwrap_or(default)
    }
}

impl LettaApi {
    pub const fn name(self) -> &'static str {
        match self {
            LettaApi::Rest => "rest",
            LettaApi::Openai => "openai",
        }
    }
}

impl Sending {
    pub const fn name(self) -> &'static str {
        match self {
            Sending::Wait => "wait",
            Sending::Stream => "stream",
            Sending::Background => "background",
        }
    }
}

impl FromStr for LettaApi {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<LettaApi, Invalid> {
        let found = [LettaApi::Rest, LettaApi::Openai].into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| Invalid::Api(text.to_owned()))
    }
}

impl FromStr for Sending {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Sending, Invalid> {
        let all = [Sending::Wait, Sending::Stream, Sending::Background];
        let found = all.into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| Invalid::Sending(text.to_owned()))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
