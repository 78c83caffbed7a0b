//! `midwatch schedule …`

mod add;
mod add_file;
mod backfill;
mod edit;
mod fire;
mod flags;
mod import;
mod list;
pub(super) mod next;
mod pause;
mod remove;
mod resume;
mod show;
mod trigger;
mod upcoming;

use std::process::ExitCode;

use api::{Bounds, Error, Schedule, StoredAction};
use clap::Subcommand;
use runtime::{Clock, SystemClock};

use super::support::render::count_of;
use crate::context::Context;
pub(super) use import::import_promptyoself;

const ID: &str = "The schedule: its name, its id, or the beginning of its id";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Add(Box<add::Add>),
    Edit(Box<edit::Edit>),
    List(list::List),
    Show(show::Show),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Remove(remove::Remove),
    Fire(fire::Fire),
    Backfill(backfill::Backfill),
    Import(import::Import),
    Next(next::Next),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Add(add) => add::run(context, *add).await,
        Command::Edit(edit) => edit::run(context, *edit).await,
        Command::List(list) => list::run(context, list).await,
        Command::Show(show) => show::run(context, show).await,
        Command::Pause(pause) => pause::run(context, pause).await,
        Command::Resume(resume) => resume::run(context, resume).await,
        Command::Remove(remove) => remove::run(context, remove).await,
        Command::Fire(fire) => fire::run(context, fire).await,
        Command::Backfill(backfill) => backfill::run(context, backfill).await,
        Command::Import(import) => import::run(context, import, SystemClock.now()).await,
        Command::Next(next) => next::run(next, &context.view, &context.output),
    }
}

/// The name of a schedule, and the id that other commands take.
pub(super) fn name_and_id(schedule: &Schedule) -> String {
    format!("`{}` ({})", schedule.name, schedule.id)
}

/// The agent or tool that a schedule calls.
fn target(action: &StoredAction) -> String {
    match (&action.agent, &action.tool) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(tool)) => format!("tool {tool}"),
        (None, None) => String::new(),
    }
}

/// The limits of a schedule on one line.
fn limits(Bounds { window, per_day }: &Bounds) -> String {
    let runs = count_of((*per_day).into(), "run", "runs");
    match window {
        Some(window) => format!("missed slots are caught up within {window}; at most {runs} a day"),
        None => format!("at most {runs} a day"),
    }
}

#[cfg(test)]
mod tests {
    use api::{Paused, PolicyPreview, Posture, ScheduleStatus, Verdict};
    use serde_json::json;

    use super::*;
    use crate::view::View;

    /// A reader in the zone of the first schedule.
    pub(super) fn view() -> View {
        View::fixed(80, "Europe/Berlin", "2026-03-28T12:00:00Z")
    }

    /// Two slots, one before and one after the start of daylight saving time.
    pub(super) fn next_slots() -> Vec<String> {
        ["2026-03-28T12:30:00Z", "2026-03-29T11:30:00Z"].map(str::to_owned).to_vec()
    }

    pub(super) fn agent_schedule() -> Schedule {
        let document = json!({
            "id": "sch_0a1b2c3d",
            "name": "standup",
            "trigger": {"kind": "daily", "times": ["13:30"]},
            "tz": "Europe/Berlin",
            "describe": "at 13:30 every day",
            "action": {"agent": "ada", "prompt": "What changed?\nBe brief."},
            "terms": {"overlap": "skip", "pause_after": 1, "per_day": 4},
            "status": "active",
            "next_run_at": "2026-03-28T12:30:00Z",
            "live": [],
            "fires": 0,
            "failures": 0,
            "revision": 1,
            "created_at": "2026-03-27T08:00:00Z",
            "changed_at": "2026-03-27T08:00:00Z",
        });
        serde_json::from_value(document).unwrap()
    }

    pub(super) fn paused_tool_schedule() -> Schedule {
        let tool = Some("fs.list".to_owned());
        let payload = Some("{}".to_owned());
        Schedule {
            id: "sch_ffffffff".into(),
            name: "look".into(),
            tz: "UTC".into(),
            describe: "every hour".into(),
            action: StoredAction { tool, payload, ..StoredAction::default() },
            tier: Some(1),
            status: ScheduleStatus::Paused,
            paused: Some(Paused {
                by: "uid:1000".into(),
                at: "2026-03-28T09:00:00Z".into(),
                note: Some("holidays".into()),
            }),
            next_run_at: None,
            last_run_id: Some("run_1".into()),
            last_run_at: Some("2026-03-28T08:00:00Z".into()),
            live: vec!["run_1".into(), "run_2".into()],
            fires: 7,
            failures: 2,
            terms: api::Terms::default(),
            ..agent_schedule()
        }
    }

    pub(super) fn approval_preview() -> PolicyPreview {
        let ruling = api::PolicyDecision {
            verdict: Verdict::Ask,
            rules: vec!["@tier-2".into(), "own/x".into()],
            posture: Posture::Staging,
            policy: "0123abcd".into(),
        };
        let sentence = "each run needs approval (`@tier-2`)".to_owned();
        PolicyPreview { by_itself: false, ruling: Some(ruling), sentence }
    }
}
