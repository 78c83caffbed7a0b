//! What can happen to an approval. These are stored formats.

use serde::{Deserialize, Serialize};

use super::{Lapse, Plan};
use crate::agent::AgentName;
use crate::budget::Charge;
use crate::id::{RunId, TokenId};
use crate::ruling::{Facts, Request, Ruling};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Asked(Box<Asked>),
    Assented(Assented),
    Decided(Decided),
    Consumed(Consumed),
    Lapsed(Lapsed),
}

/// The run waits from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub plan: Plan,
    pub plan_hash: String,
    /// Of the plan without its run and try: another question about the same has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    pub request: Request,
    /// What was so then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    pub ruling: Ruling,
    /// Who wrote the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// What it is counted for among the questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    pub approve_by: Timestamp,
    pub at: Timestamp,
}

/// One has said yes, and others have to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assented {
    pub run: RunId,
    /// The hash of what was shown.
    pub plan_hash: String,
    pub decision: Decision,
}

/// No more need be said: the last has said yes, or one no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    pub run: RunId,
    /// The hash of what was shown.
    pub plan_hash: String,
    pub decision: Decision,
    /// Until when its run must begin, if it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_by: Option<Timestamp>,
    /// Whose open questions are one less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<AgentName>,
    /// How often in a row it was no, where that has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streak: Option<Streak>,
}

/// Questions about an agent that were denied one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streak {
    pub agent: AgentName,
    pub denials: u32,
}

/// What a human said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub by: String,
    pub is_approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    pub at: Timestamp,
}

/// Made with the key of a person, over the approval, its plan, the watch and the time to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// That the key belongs to.
    pub token: TokenId,
    pub text: String,
    /// Until when it could be given.
    pub expires_at: Timestamp,
}

/// Its run begins, in the same commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumed {
    pub run: RunId,
    pub epoch: u32,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lapsed {
    pub run: RunId,
    pub why: Lapse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whose open questions are one less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<AgentName>,
    /// What of the footing of its plan is not as it was, if that is why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    pub at: Timestamp,
}
