//! The report of an import: what became of each entry of the source. A dry run has the same report, without the ids of
//! schedules that do not exist yet.

use api::{AddedSchedule, Error, ScheduleAdd, ScheduleAddAll};
use calendar::format_instant;
use compat::import::{LeftOut, Position};
use serde::Serialize;

use super::compare::{Compared, ComparedEntry, Comparison, new_schedules};
use super::plan::{Planned, SCHEDULES_MAX};
use crate::access::{Access, IfMissing, send};
use crate::cli::promptyoself::settings::Letta;
use crate::cli::promptyoself::{has_no_data, registered_agents};
use crate::context::Context;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// In the order of the source.
    pub entries: Vec<ReportedEntry>,
    /// Letta agents that are registered for the new schedules.
    pub agents: Vec<NewAgent>,
    /// Numbers up to this one are not given out to new prompts (promptyoself).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_numbers: Option<u64>,
    pub added: usize,
    pub unchanged: usize,
    pub left_out: usize,
    pub dry_run: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ReportedEntry {
    #[serde(flatten)]
    pub position: Position,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Outcome {
    Added(Imported),
    /// It exists already.
    Unchanged(Imported),
    LeftOut {
        text: String,
        #[serde(flatten)]
        why: LeftOut,
    },
}

/// The schedule of an entry.
#[derive(Debug, Serialize)]
pub(super) struct Imported {
    /// Absent in a dry run that would add it.
    pub id: Option<String>,
    pub name: String,
    pub next: Vec<String>,
    pub describe: String,
    pub tz: String,
    pub agent: Option<String>,
    /// The prompt, or the tool that is called.
    pub prompt: String,
    pub paused: bool,
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct NewAgent {
    pub name: String,
    pub remote_id: String,
    pub url: String,
}

/// Adds everything that is new, all or nothing, and reports it.
pub(super) async fn apply(context: &Context, comparison: Comparison) -> Result<Report, Error> {
    let new = new_schedules(&comparison.entries).map(|it| it.schedule.request.clone());
    let reservation = comparison.reservation.iter().map(|it| it.request.clone());
    let requests: Vec<ScheduleAdd> = new.chain(reservation).collect();
    if requests.is_empty() {
        return Ok(Report::new(context, comparison, Vec::new(), false));
    }
    if has_no_data(context)? {
        Access::open(context, IfMissing::Create).await?.close().await;
    }
    let letta = Letta::from_environment(&context.environment);
    for (id, name) in &comparison.new_agents {
        registered_agents::register_as(context, name, id, &letta).await?;
    }
    let mut added = Vec::new();
    for chunk in requests.chunks(SCHEDULES_MAX) {
        let request = ScheduleAddAll { schedules: chunk.to_vec(), dry_run: false };
        added.extend(send(context, request).await?.schedules);
    }
    Ok(Report::new(context, comparison, added, false))
}

impl Report {
    pub(super) fn of_dry_run(context: &Context, comparison: Comparison) -> Report {
        Report::new(context, comparison, Vec::new(), true)
    }

    /// `added` has the new schedules in their order.
    fn new(
        context: &Context,
        comparison: Comparison,
        added: Vec<AddedSchedule>,
        dry_run: bool,
    ) -> Report {
        let url = Letta::from_environment(&context.environment).url;
        let mut added = added.into_iter();
        let entries = comparison.entries.into_iter().map(|entry| {
            let ComparedEntry { position, text, outcome } = entry;
            let outcome = match outcome {
                Err(why) => Outcome::LeftOut { text, why },
                Ok(Compared { planned, existing: Some(id) }) => {
                    Outcome::Unchanged(Imported::new(planned, Some(id)))
                }
                Ok(Compared { planned, existing: None }) => match added.next() {
                    // Another process has added it since the comparison.
                    Some(answer) if !answer.created => {
                        Outcome::Unchanged(Imported::new(planned, Some(answer.id)))
                    }
                    answer => Outcome::Added(Imported::new(planned, answer.map(|it| it.id))),
                },
            };
            ReportedEntry { position, outcome }
        });
        let entries: Vec<ReportedEntry> = entries.collect();
        let count = |is: fn(&Outcome) -> bool| entries.iter().filter(|it| is(&it.outcome)).count();
        let agents = comparison.new_agents.into_iter();
        Report {
            added: count(|it| matches!(it, Outcome::Added(_))),
            unchanged: count(|it| matches!(it, Outcome::Unchanged(_))),
            left_out: count(|it| matches!(it, Outcome::LeftOut { .. })),
            agents: agents
                .map(|(remote_id, name)| NewAgent { name, remote_id, url: url.clone() })
                .collect(),
            reserved_numbers: comparison.reservation.map(|it| it.number),
            entries,
            dry_run,
        }
    }
}

impl Imported {
    fn new(planned: Planned, id: Option<String>) -> Imported {
        let Planned { schedule, describe, zone, next_us } = planned;
        let action = schedule.request.action;
        Imported {
            id,
            name: schedule.request.name,
            next: next_us.into_iter().map(format_instant).collect(),
            describe,
            tz: zone.name().to_owned(),
            agent: action.agent,
            prompt: action.prompt.or(action.tool).unwrap_or_default(),
            paused: schedule.request.paused,
            warnings: schedule.warnings,
        }
    }
}
