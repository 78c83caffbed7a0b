//! `midwatch schedule import`: schedules from what people had before.
//!
//! A line of a crontab is a time and a text for a shell. Midwatch runs no such text by itself, so the
//! text becomes the prompt of an agent; one that is a shell runs it as cron did. What other schedulers
//! have stored is read by a module for each; what is made of it is the same for all.

mod agent_blob;
mod astra;
mod command;
mod crontab;
mod names;
mod page;
mod plan;
mod promptyoself;
mod settings;
mod source;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{AgentShow, Code, Error, Schedule, ScheduleAdd, ScheduleAddAll};
use calendar::{Advice, UnknownZone, Zone, format_instant};
use clap::{Args, ValueEnum};
use compat::promptyoself::view::number_in;
use kernel::Timestamp;
use kernel::agent::AgentName;
use serde::Serialize;

use crate::access::ask;
use crate::cli::promptyoself::agents;
use crate::cli::promptyoself::schedules;
use crate::cli::promptyoself::settings::Letta;
use crate::context::Context;
use crontab::Refusal;
use plan::{LeftOut, Place, Plan, Planned, Terrain, plan};

/// The exit code when there was nothing to do.
const NOTHING_TO_DO: u8 = 10;
/// The agent that is meant when none is named, and how it becomes what cron was.
const AGENT: &str = "cron";
const AGENT_HINT: &str = "`midwatch agent add cron --backend command -- /bin/sh -s` registers one \
                          that runs each line as cron did; `--time-limit 24h` before the `--` lets \
                          it take longer than ten minutes";

pub(super) const EXAMPLES: &str = "\
Examples:
  midwatch agent add cron --backend command -- /bin/sh -s
  crontab -l | midwatch schedule import --from crontab - --tz Europe/Berlin --dry-run
  midwatch schedule import --from crontab /etc/crontab --system --tz UTC
  midwatch schedule import --from promptyoself promptyoself.db --dry-run
  midwatch schedule import --from astra var/schedules
  midwatch schedule import --from agent-blob data --agent ada";

#[derive(Debug, Args)]
pub(in crate::cli) struct Import {
    /// What it is that is imported
    #[arg(long, value_name = "FORMAT")]
    from: Source,

    /// The crontab (`-` reads stdin), the database of promptyoself, or the directory of Astra or Agent
    /// Blob that holds the schedules
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Show what would be added and what cannot be carried over, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// The time zone that cron used, such as `Europe/Berlin`; there is no default, but `CRON_TZ` in
    /// the file counts from there on (crontab)
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// The agent that gets each command or text as its prompt (crontab, agent-blob)
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,

    /// The lines have a column for the user, as in /etc/crontab; those of others are left out (crontab)
    #[arg(long)]
    system: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    Crontab,
    Promptyoself,
    Astra,
    AgentBlob,
}

#[derive(Debug, Serialize)]
struct Report {
    imported: Vec<Imported>,
    left_out: Vec<LeftOut>,
    dry_run: bool,
}

/// A line that became a schedule, or would.
#[derive(Debug, Serialize)]
struct Imported {
    #[serde(flatten)]
    place: Place,
    /// Absent in a dry run, as is `created`.
    id: Option<String>,
    name: String,
    /// False when it was there already.
    created: Option<bool>,
    next: Vec<String>,
    describe: String,
    tz: String,
    agent: String,
    prompt: String,
    warnings: Vec<String>,
}

/// A dry run opens no store.
pub(super) async fn run(
    context: &Context,
    import: Import,
    now: Timestamp,
) -> Result<ExitCode, Error> {
    import.agent.parse::<AgentName>().map_err(|invalid| {
        Error::new(Code::InvalidInput, invalid).hint("`midwatch agent list` shows the agents")
    })?;
    let plan = match import.from {
        Source::Crontab => crontab_plan(context, &import, now)?,
        Source::Promptyoself => promptyoself::plan(promptyoself::read(&import.path)?, now),
        Source::Astra => astra::plan(&import.path, now)?,
        Source::AgentBlob => agent_blob::plan(&import.path, &import.agent, now)?,
    };
    if plan::SCHEDULES_MAX < plan.schedules.len() {
        return Err(plan::too_many());
    }
    let report = match import.dry_run {
        true => would_be(plan),
        false => carry_out(context, plan).await?,
    };
    context.output.show(&report, page::report);
    match report.imported.is_empty() {
        true => Ok(ExitCode::from(NOTHING_TO_DO)),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Imports a database of promptyoself; what cannot be carried over is returned, in words.
pub(in crate::cli) async fn promptyoself_database(
    context: &Context,
    path: &Path,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let report = carry_out(context, promptyoself::plan(promptyoself::read(path)?, now)).await?;
    let left_out = report.left_out.into_iter();
    Ok(left_out.map(|LeftOut { place, why, .. }| format!("{place}: {}", why.reason)).collect())
}

fn crontab_plan(context: &Context, import: &Import, now: Timestamp) -> Result<Plan, Error> {
    let zone = import.tz.as_deref().map(str::parse::<Zone>).transpose();
    let zone = zone.map_err(|error: UnknownZone| {
        Error::new(Code::InvalidInput, error.reason()).hint(error.advice())
    })?;
    let text = source::read(&import.path)?;
    let user = import.system.then(|| source::user_name(context));
    let terrain = Terrain { agent: &import.agent, user: user.as_deref(), now };
    plan(&text, zone.map(|zone| zone.name().to_owned()), &terrain)
}

fn would_be(Plan { schedules, left_out }: Plan) -> Report {
    let imported = schedules.into_iter().map(Imported::from).collect();
    Report { imported, left_out, dry_run: true }
}

/// All in one request, so that either all of them are there afterwards or none. What is there under the
/// same name and does the same is not added again, whatever became of it since.
async fn carry_out(context: &Context, plan: Plan) -> Result<Report, Error> {
    let Plan { schedules: planned, mut left_out } = plan;
    if planned.is_empty() {
        return Ok(Report { imported: Vec::new(), left_out, dry_run: false });
    }
    let planned = with_agents(context, planned).await?;
    let there = schedules(context).await?;
    let there: HashMap<String, &Schedule> =
        there.iter().map(|schedule| (identity(&schedule.name), schedule)).collect();
    let (mut imported, mut new) = (Vec::new(), Vec::new());
    for planned in planned {
        match there.get(&identity(&planned.request.name)) {
            // A crontab has no names of its own: the same line is the same schedule, another one is new.
            None => new.push(planned),
            Some(_) if matches!(planned.place, Place::Line(_)) => new.push(planned),
            Some(found) if found.action == planned.request.action => imported.push(Imported {
                id: Some(found.id.clone()),
                created: Some(false),
                ..Imported::from(planned)
            }),
            Some(found) => left_out.push(LeftOut {
                text: planned.request.name.clone(),
                why: Refusal::new(
                    format!("schedule {} has this name, and does something else", found.id),
                    format!("`midwatch schedule edit {} --name NAME` makes room for it", found.id),
                ),
                place: planned.place,
            }),
        }
    }
    imported.extend(added(context, new).await?);
    Ok(Report { imported, left_out, dry_run: false })
}

async fn added(context: &Context, new: Vec<Planned>) -> Result<Vec<Imported>, Error> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let request = |it: &Planned| ScheduleAdd { paused: it.is_paused, ..it.request.clone() };
    let mut answers = Vec::new();
    for portion in new.chunks(plan::SCHEDULES_MAX) {
        let schedules = portion.iter().map(request).collect();
        answers.extend(ask(context, ScheduleAddAll { schedules, dry_run: false }).await?.schedules);
    }
    let mut imported = Vec::new();
    for (planned, added) in new.into_iter().zip(answers) {
        imported.push(Imported {
            id: Some(added.id),
            created: Some(added.created),
            next: added.next,
            ..Imported::from(planned)
        });
    }
    Ok(imported)
}

/// What tells imported schedules apart: what promptyoself knows has a number.
fn identity(name: &str) -> String {
    number_in(name).map_or_else(|| name.to_owned(), |number| number.to_string())
}

/// The same, with names of agents that are registered. One of Letta is registered if it is not.
async fn with_agents(context: &Context, planned: Vec<Planned>) -> Result<Vec<Planned>, Error> {
    let known = agents::registered(context).await?;
    let letta = Letta::of(&context.environment);
    let mut names: HashMap<String, String> = HashMap::new();
    for planned in &planned {
        let Planned { request, remote_id, .. } = planned;
        let (Some(agent), Some(meant)) = (&request.action.agent, planned.agent()) else { continue };
        if names.contains_key(meant) {
            continue;
        }
        let name = match remote_id {
            Some(id) => match known.find(id) {
                Some(found) => found.name.clone(),
                None => agents::register(context, id, &letta).await?,
            },
            None => {
                let found = ask(context, AgentShow { name: agent.clone() }).await;
                let found = found.map_err(|error| match (error.code, agent.as_str()) {
                    (Code::NotFound, AGENT) => error.hint(AGENT_HINT),
                    _ => error,
                });
                found?.agent.name
            }
        };
        names.insert(meant.to_owned(), name);
    }
    let with_agent = planned.into_iter().map(|mut planned| {
        if let Some(name) = planned.agent().and_then(|meant| names.get(meant)) {
            planned.request.action.agent = Some(name.clone());
        }
        planned
    });
    Ok(with_agent.collect())
}

impl From<Planned> for Imported {
    fn from(planned: Planned) -> Imported {
        let Planned { place, request, describe, zone, next_us, warnings, .. } = planned;
        Imported {
            place,
            id: None,
            name: request.name,
            created: None,
            next: next_us.into_iter().map(format_instant).collect(),
            describe,
            tz: zone.name().to_owned(),
            agent: request.action.agent.unwrap_or_default(),
            prompt: request.action.prompt.or(request.action.tool).unwrap_or_default(),
            warnings,
        }
    }
}
