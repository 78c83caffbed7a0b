//! Agents that are reached over HTTP: one of a Letta server's, and whoever listens at a url.
//!
//! Whatever has a default is left out of what is stored when it has it; so a default never changes.

use std::ops::Not;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::backend::{Invalid, Url};
use crate::program::TimeLimit;

/// A turn at the App Server may take 15 minutes, and then its own limit speaks first.
const TURN_SECONDS: u32 = 16 * 60;

/// One agent of a Letta server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Letta {
    pub url: Url,
    /// By which its server knows it. A name may be another's tomorrow.
    pub remote_id: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: LettaApi,
    #[serde(default, skip_serializing_if = "is_default")]
    pub sending: Sending,
    #[serde(rename = "time_limit_seconds", default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimit>,
    /// Its server may be in a private network. This machine always may be, if the url says so.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
}

/// Whoever listens at a url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: Url,
    #[serde(rename = "time_limit_seconds", default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<TimeLimit>,
    /// It may be on this machine or in a private network.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
}

/// Which of its two servers it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LettaApi {
    /// The V1 server.
    #[default]
    Rest,
    /// The App Server, where every agent is a model.
    Openai,
}

/// How a prompt is sent and its answer received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sending {
    /// One answer, when all is over.
    #[default]
    Wait,
    /// The answer while it comes to be.
    Stream,
    /// The server works on by itself and is asked how it stands.
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
