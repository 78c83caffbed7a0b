//! `midwatch schedule import`: schedules from other schedulers.
//!
//! A module per source reads it and makes a [`Plan`]; the import of a plan is the same for all. A crontab
//! has commands for a shell. Midwatch does not run them itself: each becomes the prompt of an agent, and an
//! agent that is a shell runs it as cron did.

mod agent_blob;
mod astra;
mod cron_command;
mod crontab;
mod crontab_file;
mod crontab_settings;
mod names;
mod plan;
mod promptyoself;
mod render;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{AgentShow, Code, Error, Schedule, ScheduleAdd, ScheduleAddAll};
use calendar::{Hint, UnknownZone, Zone, format_instant};
use clap::{Args, ValueEnum};
use compat::promptyoself::view::number_in_name;
use kernel::Timestamp;
use kernel::agent::AgentName;
use serde::Serialize;

use crate::access::send;
use crate::cli::NOTHING_TO_DO;
use crate::cli::promptyoself::settings::Letta;
use crate::cli::promptyoself::{registered_agents, schedules};
use crate::context::Context;
use crontab::SkipReason;
use plan::{CrontabContext, Plan, Planned, Skipped, SourcePosition, plan};

/// The default agent, and how to register it.
const DEFAULT_AGENT: &str = "cron";
const AGENT_HINT: &str = "register an agent that runs each line as cron did: `midwatch agent add cron \
                          --backend command -- /bin/sh -s`; put `--time-limit 24h` before the `--` if a \
                          command takes longer than ten minutes";

const EXAMPLES: &str = "\
Examples:
  midwatch agent add cron --backend command -- /bin/sh -s
  crontab -l | midwatch schedule import --from crontab - --tz Europe/Berlin --dry-run
  midwatch schedule import --from crontab /etc/crontab --system --tz UTC
  midwatch schedule import --from promptyoself promptyoself.db --dry-run
  midwatch schedule import --from astra var/schedules
  midwatch schedule import --from agent-blob data --agent ada";

/// Import schedules from a crontab, promptyoself, Astra or Agent Blob
///
/// Each line of a crontab becomes a schedule that prompts an agent with the line's command; an agent that is
/// a shell runs it as cron did. Entries that cannot be imported are listed with the reason; all others are
/// added together. Repeating an import adds nothing. The exit code is 10 if nothing can be imported.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Import {
    /// The format of the source
    #[arg(long, value_name = "FORMAT")]
    from: Source,

    /// The crontab (`-` reads stdin), the database of promptyoself, or the directory with the schedules
    /// of Astra or Agent Blob
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Show what would be added and what cannot be imported, without changing anything
    #[arg(long)]
    dry_run: bool,

    /// The time zone that cron used, such as `Europe/Berlin`; required, unless `CRON_TZ` in the file sets
    /// it for the lines below it (crontab)
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// The agent to prompt with each command or text (crontab, agent-blob)
    #[arg(long, value_name = "NAME", default_value = DEFAULT_AGENT)]
    agent: String,

    /// The crontab has a user column, as /etc/crontab has; lines of other users are skipped (crontab)
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
    left_out: Vec<Skipped>,
    dry_run: bool,
}

/// An entry that became a schedule, or would in a dry run.
#[derive(Debug, Serialize)]
struct Imported {
    #[serde(flatten)]
    position: SourcePosition,
    /// Absent in a dry run, as is `created`.
    id: Option<String>,
    name: String,
    /// False if it existed already.
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
        true => dry_run_report(plan),
        false => import_plan(context, plan).await?,
    };
    context.output.show(&report, |report| render::report(report, &context.view));
    match report.imported.is_empty() {
        true => Ok(ExitCode::from(NOTHING_TO_DO)),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Imports a database of promptyoself, and returns the skipped entries with their reasons.
pub(in crate::cli) async fn import_promptyoself(
    context: &Context,
    path: &Path,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let report = import_plan(context, promptyoself::plan(promptyoself::read(path)?, now)).await?;
    let skipped = report.left_out.into_iter();
    Ok(skipped.map(|Skipped { position, why, .. }| format!("{position}: {}", why.reason)).collect())
}

fn crontab_plan(context: &Context, import: &Import, now: Timestamp) -> Result<Plan, Error> {
    let zone = import.tz.as_deref().map(str::parse::<Zone>).transpose();
    let zone = zone.map_err(|error: UnknownZone| {
        Error::new(Code::InvalidInput, error.reason()).hint(error.hint())
    })?;
    let text = crontab_file::read(&import.path)?;
    let user = import.system.then(|| crontab_file::user_name(context));
    let crontab = CrontabContext { agent: &import.agent, user: user.as_deref(), now };
    plan(&text, zone.map(|zone| zone.name().to_owned()), &crontab)
}

fn dry_run_report(Plan { schedules, left_out }: Plan) -> Report {
    let imported = schedules.into_iter().map(Imported::from).collect();
    Report { imported, left_out, dry_run: true }
}

/// Adds all schedules in one request, so that either all are added or none. A schedule that exists under
/// the same name with the same action is not added again, even if it was changed otherwise.
async fn import_plan(context: &Context, plan: Plan) -> Result<Report, Error> {
    let Plan { schedules: planned, mut left_out } = plan;
    if planned.is_empty() {
        return Ok(Report { imported: Vec::new(), left_out, dry_run: false });
    }
    let planned = with_agents(context, planned).await?;
    let existing = schedules(context).await?;
    let existing: HashMap<String, &Schedule> =
        existing.iter().map(|schedule| (identity(&schedule.name), schedule)).collect();
    let (mut imported, mut new) = (Vec::new(), Vec::new());
    for planned in planned {
        match existing.get(&identity(&planned.request.name)) {
            None => new.push(planned),
            // Lines of a crontab have no names of their own, so the engine compares the whole schedule.
            Some(_) if matches!(planned.position, SourcePosition::Line(_)) => new.push(planned),
            Some(found) if found.action == planned.request.action.clone().into() => {
                imported.push(Imported {
                    id: Some(found.id.clone()),
                    created: Some(false),
                    ..Imported::from(planned)
                })
            }
            Some(found) => left_out.push(Skipped {
                text: planned.request.name.clone(),
                why: name_taken(&planned.request.name, &found.id),
                position: planned.position,
            }),
        }
    }
    imported.extend(add_schedules(context, new).await?);
    Ok(Report { imported, left_out, dry_run: false })
}

async fn add_schedules(context: &Context, new: Vec<Planned>) -> Result<Vec<Imported>, Error> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let request = |it: &Planned| ScheduleAdd { paused: it.is_paused, ..it.request.clone() };
    let mut answers = Vec::new();
    for chunk in new.chunks(plan::SCHEDULES_MAX) {
        let schedules = chunk.iter().map(request).collect();
        answers
            .extend(send(context, ScheduleAddAll { schedules, dry_run: false }).await?.schedules);
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

fn name_taken(name: &str, by: &str) -> SkipReason {
    let reason = match number_in_name(name) {
        Some(number) => format!("number {number} is taken by schedule {by}"),
        None => format!("the name is taken by schedule {by}, which has another action"),
    };
    SkipReason::new(reason, format!("rename it with `midwatch schedule edit {by} --name NAME`"))
}

/// The key by which imported schedules are compared: the promptyoself number in the name, else the name.
fn identity(name: &str) -> String {
    number_in_name(name).map_or_else(|| name.to_owned(), |number| number.to_string())
}

/// Replaces agent ids with names of registered agents. Letta agents are registered if necessary.
async fn with_agents(context: &Context, planned: Vec<Planned>) -> Result<Vec<Planned>, Error> {
    let registered = registered_agents::load(context).await?;
    let letta = Letta::from_environment(&context.environment);
    let mut names: HashMap<String, String> = HashMap::new();
    for planned in &planned {
        let Planned { request, remote_id, .. } = planned;
        let (Some(agent), Some(key)) = (&request.action.agent, planned.agent_key()) else {
            continue;
        };
        if names.contains_key(key) {
            continue;
        }
        let name = match remote_id {
            Some(id) => match registered.find(id) {
                Some(found) => found.name.clone(),
                None => registered_agents::register(context, id, &letta).await?,
            },
            None => {
                let found = send(context, AgentShow { name: agent.clone() }).await;
                let found = found.map_err(|error| match (error.code, agent.as_str()) {
                    (Code::NotFound, DEFAULT_AGENT) => error.hint(AGENT_HINT),
                    _ => error,
                });
                found?.agent.name
            }
        };
        names.insert(key.to_owned(), name);
    }
    let with_agent = planned.into_iter().map(|mut planned| {
        if let Some(name) = planned.agent_key().and_then(|key| names.get(key)) {
            planned.request.action.agent = Some(name.clone());
        }
        planned
    });
    Ok(with_agent.collect())
}

impl From<Planned> for Imported {
    fn from(planned: Planned) -> Imported {
        let Planned { position, request, describe, zone, next_us, warnings, .. } = planned;
        Imported {
            position,
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
