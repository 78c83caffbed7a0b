//! `midwatch schedule import`: schedules from what people had before.
//!
//! A line of a crontab is a time and a text for a shell. Midwatch runs no such text by itself, so the
//! text becomes the prompt of an agent; one that is a shell runs it as cron did.

mod command;
mod crontab;
mod names;
mod page;
mod plan;
mod settings;
mod source;

use std::path::PathBuf;
use std::process::ExitCode;

use api::{AgentShow, Code, Error, ScheduleAddAll};
use calendar::{Advice, UnknownZone, Zone, format_instant};
use clap::{Args, ValueEnum};
use kernel::Timestamp;
use serde::Serialize;

use crate::access::ask;
use crate::context::Context;
use plan::{LeftOut, Plan, Planned, Terrain, plan};

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
  midwatch schedule import --from crontab /etc/crontab --system --tz UTC";

#[derive(Debug, Args)]
pub(in crate::cli) struct Import {
    /// What the file is
    #[arg(long, value_name = "FORMAT")]
    from: Source,

    /// The file; `-` reads stdin, as in `crontab -l | midwatch schedule import --from crontab -`
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Show what would be added and what cannot be carried over, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// The time zone that cron used, such as `Europe/Berlin`; there is no default, but `CRON_TZ` in
    /// the file counts from there on
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// The agent that gets each command as its prompt
    #[arg(long, value_name = "NAME", default_value = AGENT)]
    agent: String,

    /// The lines have a column for the user, as in /etc/crontab; those of others are left out
    #[arg(long)]
    system: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    Crontab,
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
    line: usize,
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
    let Source::Crontab = import.from;
    let zone = import.tz.as_deref().map(str::parse::<Zone>).transpose();
    let zone = zone.map_err(|error: UnknownZone| {
        Error::new(Code::InvalidInput, error.reason()).hint(error.advice())
    })?;
    let text = source::read(&import.file)?;
    let user = import.system.then(|| source::user_name(context));
    let terrain = Terrain { agent: &import.agent, user: user.as_deref(), now };
    let plan = plan(&text, zone.map(|zone| zone.name().to_owned()), &terrain)?;
    let report = match import.dry_run {
        true => would_be(plan),
        false => carry_out(context, plan, &import.agent).await?,
    };
    context.output.show(&report, page::report);
    match report.imported.is_empty() {
        true => Ok(ExitCode::from(NOTHING_TO_DO)),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn would_be(Plan { schedules, left_out }: Plan) -> Report {
    let imported = schedules.into_iter().map(Imported::from).collect();
    Report { imported, left_out, dry_run: true }
}

/// All in one request, so that either all of them are there afterwards or none.
async fn carry_out(context: &Context, plan: Plan, agent: &str) -> Result<Report, Error> {
    let Plan { schedules, left_out } = plan;
    if schedules.is_empty() {
        return Ok(Report { imported: Vec::new(), left_out, dry_run: false });
    }
    let found = ask(context, AgentShow { name: agent.to_owned() }).await;
    found.map_err(|error| match (error.code, agent) {
        (Code::NotFound, AGENT) => error.hint(AGENT_HINT),
        _ => error,
    })?;
    let requests = schedules.iter().map(|planned| planned.request.clone()).collect();
    let answer = ask(context, ScheduleAddAll { schedules: requests, dry_run: false }).await?;
    let imported = schedules.into_iter().zip(answer.schedules).map(|(planned, added)| Imported {
        id: Some(added.id),
        created: Some(added.created),
        next: added.next,
        ..Imported::from(planned)
    });
    Ok(Report { imported: imported.collect(), left_out, dry_run: false })
}

impl From<Planned> for Imported {
    fn from(planned: Planned) -> Imported {
        let Planned { line, request, describe, zone, next_us, warnings } = planned;
        Imported {
            line,
            id: None,
            name: request.name,
            created: None,
            next: next_us.into_iter().map(format_instant).collect(),
            describe,
            tz: zone.name().to_owned(),
            agent: request.action.agent.unwrap_or_default(),
            prompt: request.action.prompt.unwrap_or_default(),
            warnings,
        }
    }
}
