//! The rows that a decision about a run needs.

use kernel::agent::AgentName;
use kernel::progress::Progress;
use kernel::run::{Run, RunContext};
use kernel::schedule::Schedule;
use kernel::{Noun, RunId, ScheduleId, Timestamp};

use crate::commit::rows::{RowKey, Rows};

/// The rows that a decision about a run may change.
pub(crate) fn run_rows(id: &RunId, schedule: &ScheduleId) -> Vec<RowKey> {
    vec![(Noun::Run, id.to_string()), (Noun::Progress, schedule.to_string())]
}

/// The rows that define what a run does: its schedule and its agent.
pub(crate) fn definition_rows(schedule: &ScheduleId, agent: Option<&AgentName>) -> Vec<RowKey> {
    let mut rows = vec![(Noun::Schedule, schedule.to_string())];
    rows.extend(agent.map(|name| (Noun::Agent, name.to_string())));
    rows
}

/// `None` if the run is not among the rows.
pub(crate) fn run_context<'a>(
    rows: &'a Rows,
    id: &'a RunId,
    schedule: &ScheduleId,
    now: Timestamp,
) -> Option<RunContext<'a>> {
    let definition = rows.get::<Schedule>(schedule).map(|schedule| &schedule.definition);
    let progress = rows.get::<Progress>(schedule);
    Some(RunContext { id, run: rows.get::<Run>(id)?, definition, progress, now })
}
