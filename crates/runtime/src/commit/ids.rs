//! Ids as callers write them, and the rows that they name.

use api::{Code, Error};
use kernel::agent::{AgentName, NAME_BYTES_MAX};
use kernel::{ApprovalId, Noun, RunId, ScheduleId, TokenId};

use crate::commit::rows::RowKey;

pub(crate) fn agent_row(name: &AgentName) -> RowKey {
    (Noun::Agent, name.to_string())
}

pub(crate) fn approval_row(id: &ApprovalId) -> RowKey {
    (Noun::Approval, id.to_string())
}

pub(crate) fn run_row(id: &RunId) -> RowKey {
    (Noun::Run, id.to_string())
}

pub(crate) fn token_row(id: &TokenId) -> RowKey {
    (Noun::Token, id.to_string())
}

pub(crate) fn agent_name(text: &str) -> Result<AgentName, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::InvalidInput, invalid).hint(format!(
            "use 1 to {NAME_BYTES_MAX} of a-z, 0-9, `-`, `_` and `.`, beginning with a letter or digit"
        ))
    })
}

pub(crate) fn approval_id(text: &str) -> Result<ApprovalId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch approval list` shows the approvals")
    })
}

pub(crate) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch run list` shows the runs")
    })
}

pub(crate) fn schedule_id(text: &str) -> Result<ScheduleId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch schedule list` shows the schedules")
    })
}
