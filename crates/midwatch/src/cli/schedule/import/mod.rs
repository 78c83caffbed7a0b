//! `midwatch schedule import`: schedules from other schedulers.
//!
//! Each source is read into entries (`crontab_entries.rs`, `astra.rs`, … and `compat::import`). From there all sources go
//! the same way: `plan.rs` checks the entries, `compare.rs` compares them with the installation, and `report.rs` reports the
//! result or applies it first. A crontab has commands for a shell. Midwatch does not run them itself: each becomes the
//! prompt of an agent, and an agent that is a shell runs it as cron did.

mod agent_blob;
mod agent_runtimes;
mod astra;
mod compare;
mod cron_command;
mod crontab;
mod crontab_entries;
mod crontab_file;
mod crontab_settings;
mod machine_zone;
mod names;
mod plan;
mod promptyoself;
mod render;
mod report;
mod systemd_files;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Code, Error, StatusShow};
use clap::{Args, ValueEnum};
use compat::import::systemd::{self, TimerOptions};
use compat::import::{Entry, Users};
use kernel::Timestamp;
use kernel::agent::AgentName;

use crate::access::send;
use crate::cli::support::NOTHING_TO_DO;
use crate::cli::support::lease::{configured_terms, terms};
use crate::context::Context;
use agent_runtimes::RuntimeSource;
use compare::{Comparison, compare};
use crontab_entries::{CrontabContext, shell_agent_hint};
use machine_zone::ZoneSource;
use plan::plan;
use report::{Report, apply};

/// The agent that runs commands, unless `--agent` names another.
const SHELL_AGENT: &str = "cron";
/// How to register that agent.
const AGENT_HINT: &str = "register an agent that runs each command as cron did: `midwatch agent add {agent} \
                          --backend command -- /bin/sh -s`; put `--time-limit 24h` before the `--` if a \
                          command takes longer than ten minutes";

const EXAMPLES: &str = "\
Examples:
  midwatch agent add cron --backend command -- /bin/sh -s
  crontab -l | midwatch schedule import --from crontab - \\
      --tz Europe/Berlin --dry-run
  midwatch schedule import --from crontab /etc/crontab /etc/cron.d --tz UTC
  midwatch schedule import --from promptyoself promptyoself.db --dry-run
  midwatch schedule import --from astra var/schedules
  midwatch schedule import --from agent-blob data --agent ada
  midwatch schedule import --from openclaw --agent ada --dry-run
  midwatch schedule import --from systemd backup.timer --dry-run";

/// Import schedules from another scheduler
///
/// Prompts become schedules that prompt the same agent. Commands of crontabs and systemd timers become
/// prompts of an agent that is a shell. Every entry of the source is reported: as added, as unchanged if it
/// exists already, or as left out, with the reason. A dry run reports exactly what the import does. All new
/// schedules are added together. The exit code is 10 if nothing can be imported.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Import {
    /// The format of the source
    #[arg(long, value_name = "FORMAT")]
    from: Source,

    /// Crontabs (`-` reads stdin) and directories of crontabs; timers of systemd, by name or file; else the
    /// file or directory of the other program [default: for openclaw, hermes, letta-code and systemd, where
    /// that program keeps it]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Show what would be added and what cannot be imported, without changing anything
    #[arg(long)]
    dry_run: bool,

    /// The time zone of entries that name none, such as `Europe/Berlin`; required for a crontab without
    /// `CRON_TZ` [default: that of the other program's configuration, or of this machine]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// The agent to prompt [default: `cron` for commands, else the agent with the name or id that an
    /// entry has]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The user whose entries to import (crontab, systemd); without PATH, their crontab [default: you]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// The crontabs have a user column, as /etc/crontab and the files of /etc/cron.d do (crontab)
    #[arg(long)]
    system: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    Crontab,
    Promptyoself,
    Astra,
    AgentBlob,
    Openclaw,
    Hermes,
    LettaCode,
    Systemd,
}

/// What was read from a source.
struct Entries {
    entries: Vec<Entry>,
    /// The highest number of a promptyoself database.
    numbers_max: Option<u64>,
}

pub(super) async fn run(
    context: &Context,
    import: Import,
    now: Timestamp,
) -> Result<ExitCode, Error> {
    if let Some(agent) = &import.agent {
        agent.parse::<AgentName>().map_err(|invalid| {
            Error::new(Code::InvalidInput, invalid).hint("`midwatch agent list` shows the agents")
        })?;
    }
    let entries = import.read(context, now)?;
    let comparison = compare_entries(context, entries, now).await?;
    let lease = lease_terms(context).await;
    let report = match import.dry_run {
        true => Report::of_dry_run(context, comparison),
        false => apply(context, comparison).await?,
    };
    let lease = lease.filter(|_| 0 < report.added);
    context.output.show(&report, |report| render::report(report, lease.as_deref(), &context.view));
    match report.added + report.unchanged {
        0 => Ok(ExitCode::from(NOTHING_TO_DO)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What the lease asks of a person who has no schedules yet.
async fn lease_terms(context: &Context) -> Option<String> {
    match send(context, StatusShow {}).await {
        Ok(status) if status.schedules == 0 => terms(&status.authority.lease),
        Ok(_) => None,
        // There is no installation yet.
        Err(_) => configured_terms(context),
    }
}

/// Imports a database of promptyoself, and returns the entries that are left out with their reasons.
pub(in crate::cli) async fn import_promptyoself(
    context: &Context,
    path: &Path,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let comparison = compare_entries(context, read_promptyoself(path, now)?, now).await?;
    let left_out = comparison.entries.iter().filter_map(|entry| {
        let why = entry.outcome.as_ref().err()?;
        Some(format!("entry {}: {}", entry.position, why.reason))
    });
    let left_out = left_out.collect();
    apply(context, comparison).await?;
    Ok(left_out)
}

async fn compare_entries(
    context: &Context,
    Entries { entries, numbers_max }: Entries,
    now: Timestamp,
) -> Result<Comparison, Error> {
    compare(context, plan(entries, now)?, numbers_max).await
}

fn read_promptyoself(path: &Path, now: Timestamp) -> Result<Entries, Error> {
    let rows = promptyoself::read(path)?;
    let numbers_max = promptyoself::highest_number(&rows);
    Ok(Entries { entries: promptyoself::entries(rows, now), numbers_max })
}

impl Import {
    fn read(&self, context: &Context, now: Timestamp) -> Result<Entries, Error> {
        let zone = ZoneSource::new(self.tz.as_deref(), &context.environment)?;
        let entries = match self.from {
            Source::Promptyoself => return read_promptyoself(self.path()?, now),
            Source::Crontab => self.read_crontabs(context, &zone)?,
            Source::Astra => astra::read(self.path()?)?,
            Source::AgentBlob => agent_blob::read(self.path()?, self.required_agent()?, zone)?,
            Source::Openclaw => agent_runtimes::read_openclaw(&self.locate(context, &zone)?)?,
            Source::Hermes => agent_runtimes::read_hermes(&self.locate(context, &zone)?)?,
            Source::LettaCode => agent_runtimes::read_letta_code(&self.locate(context, &zone)?)?,
            Source::Systemd => self.read_timers(context, &zone)?,
        };
        Ok(Entries { entries, numbers_max: None })
    }

    fn read_crontabs(&self, context: &Context, zone: &ZoneSource) -> Result<Vec<Entry>, Error> {
        let crontabs = crontab_file::read_all(&self.paths, self.user.as_deref(), self.system)?;
        let own = crontab_file::user_name(context);
        let (agent, users) = (self.shell_agent(), self.users(&own));
        crontab_entries::entries(&crontabs, &CrontabContext { agent, zone: zone.flag(), users })
    }

    fn read_timers(&self, context: &Context, zone: &ZoneSource) -> Result<Vec<Entry>, Error> {
        let units = systemd_files::read_timers(&self.paths, &context.environment)?;
        let own = crontab_file::user_name(context);
        let (zone, hint) = (zone.or_configured(None)?, shell_agent_hint(self.shell_agent()));
        let (agent, users) = (self.shell_agent(), self.users(&own));
        let options = TimerOptions { agent, agent_hint: &hint, zone: &zone, users };
        Ok(systemd::entries(&units, &options))
    }

    fn shell_agent(&self) -> &str {
        self.agent.as_deref().unwrap_or(SHELL_AGENT)
    }

    fn users<'a>(&'a self, own: &'a str) -> Users<'a> {
        Users { own, named: self.user.as_deref(), has_agent: self.agent.is_some() }
    }

    fn locate<'a>(
        &'a self,
        context: &'a Context,
        zone: &'a ZoneSource,
    ) -> Result<RuntimeSource<'a>, Error> {
        let path = if self.paths.is_empty() { None } else { Some(self.path()?) };
        let (environment, agent) = (&context.environment, self.agent.as_deref());
        Ok(RuntimeSource { path, environment, zone, agent })
    }

    /// The only path.
    fn path(&self) -> Result<&Path, Error> {
        match self.paths.as_slice() {
            [path] => Ok(path),
            paths => {
                let what = format!("one path is needed, not {}", paths.len());
                Err(Error::new(Code::BadUsage, what).hint("see `midwatch schedule import --help`"))
            }
        }
    }

    /// The agent, for a source that has only one and does not name it.
    fn required_agent(&self) -> Result<&str, Error> {
        self.agent.as_deref().ok_or_else(|| {
            Error::new(Code::BadUsage, "`--agent` is missing")
                .hint("name the agent to prompt; `midwatch agent list` shows the agents")
        })
    }
}
