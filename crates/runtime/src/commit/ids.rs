//! Ids as callers write them.

use api::{Code, Error};
use kernel::agent::{AgentName, NAME_BYTES_MAX};
use kernel::{ApprovalId, RunId, ScheduleId};

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
