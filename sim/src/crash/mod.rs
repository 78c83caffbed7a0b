//! The crash campaigns: they kill the real daemon with -9 again and again on one data directory, while writers send changes
//! over its socket, or, in [`runs`], while schedules run; after each kill they audit the directory.
//!
//! A seed repeats the calls and delays, not their interleaving. kill -9 does not test power loss: data that the daemon
//! passed to the operating system survives it.

mod audit;
mod daemon;
mod database;
mod runs;
mod summary;
mod writers;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::Response;
use clap::Args;
use futures::future::{join, try_join_all};
use serde::Serialize;

use crate::dice::Dice;
use audit::Audit;
use daemon::Program;
use database::Database;
pub(crate) use runs::in_process::{HostOptions, host};
use summary::Summary;
use writers::{
    CallResult, ChangeCall, EarlierResult, FinishedCall, WriterReport, WriterTask, write,
};

const CYCLES_DEFAULT: u64 = 2_000;
/// The daemon is killed at most this long after it is ready.
const AFTER_READY_US_MAX: u64 = 30_000;
/// In one cycle of this many, the daemon is killed early: within [`EARLY_US_MAX`] of its start.
const EARLY_ONE_IN: u64 = 5;
/// Mostly shorter than the daemon takes to be ready.
const EARLY_US_MAX: u64 = 25_000;
/// After each this many cycles, the first start of a daemon in a new directory is tested.
const FIRST_START_EVERY: u64 = 20;
/// That first daemon is killed at most this long after its start.
const FIRST_START_US_MAX: u64 = 60_000;
/// After each this many cycles, the whole ledger is verified, not only the new entries.
const CHECK_ALL_EVERY: u64 = 100;
/// Calls of one writer in one cycle.
const OWN_CALLS_MAX: u64 = 100_000;
/// The connection limit of the daemon.
const WRITERS_MAX: u64 = 256;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often to kill the daemon [default: 2000, and 40 with `--runs`]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,
    /// Instead of writers: let schedules run programs, and count the effects of the programs
    #[arg(long, conflicts_with = "writers")]
    runs: bool,
    /// Instead of programs: execute the runs in the process that is killed, and let it write into a pipe
    #[arg(long, requires = "runs", conflicts_with = "postgres")]
    inside: bool,
    /// Store the data in a PostgreSQL server that the campaign starts
    #[arg(long, requires = "runs")]
    postgres: bool,
    /// Repeat the calls and delays of an earlier campaign [default: random]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Concurrent writers, each with its own connection
    #[arg(long, value_name = "W", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=WRITERS_MAX))]
    writers: u64,
    /// The binary to test [default: `midwatch` in the folder of this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug)]
struct Campaign {
    program: Program,
    audit: Audit,
    /// Calls without a response, to be retried.
    pending: Vec<ChangeCall>,
    /// The changes that were acknowledged in the last cycle with any.
    acknowledged: Vec<(ChangeCall, Response)>,
    summary: Summary,
}

/// When a daemon is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    AfterStart(Duration),
    AfterReady(Duration),
}

/// The result of a campaign, and its last cycle.
#[derive(Debug)]
struct Verdict {
    cycle: u64,
    outcome: Result<()>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let seed = options.seed.map_or_else(|| getrandom::u32().map(u64::from), Ok)?;
    eprintln!("seed {seed}");
    let root = tempfile::Builder::new().prefix("midwatch-crash-").tempdir()?;
    let database = options.postgres.then(Database::start).transpose()?.map(Arc::new);
    let program = Program { binary: binary(options)?, root: root.path().to_owned(), database };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Verdict { cycle, outcome } = match (options.runs, options.inside) {
        (true, true) => runtime.block_on(runs::in_process::run(program, seed, options))?,
        (true, false) => runtime.block_on(runs::run(program, seed, options))?,
        (false, _) => runtime.block_on(changes(program, seed, options))?,
    };
    let Err(error) = outcome else { return Ok(ExitCode::SUCCESS) };
    eprintln!("seed {seed}, cycle {cycle}: {error:#}");
    eprintln!("the data directory is kept: {}", root.keep().display());
    Ok(ExitCode::FAILURE)
}

#[expect(clippy::disallowed_methods, reason = "measures how long the campaign took")]
async fn changes(program: Program, seed: u64, options: &Options) -> Result<Verdict> {
    let mut campaign = Campaign {
        audit: Audit::new(&program),
        program,
        pending: Vec::new(),
        acknowledged: Vec::new(),
        summary: Summary { seed, writers: options.writers, ..Summary::default() },
    };
    let started = Instant::now();
    let outcome = campaign.run(options.cycles.unwrap_or(CYCLES_DEFAULT)).await;
    campaign.print_summary(started.elapsed(), options)?;
    Ok(Verdict { cycle: campaign.summary.cycles, outcome })
}

fn binary(options: &Options) -> Result<PathBuf> {
    let beside = || Ok(std::env::current_exe()?.with_file_name("midwatch"));
    let binary = options.program.clone().map_or_else(beside, anyhow::Ok)?;
    let missing = format!("`{}` does not exist; build it first", binary.display());
    binary.canonicalize().context(missing)
}

impl Campaign {
    async fn run(&mut self, cycles: u64) -> Result<()> {
        for cycle in 1..=cycles {
            self.summary.cycles = cycle;
            self.cycle(cycle).await?;
            if cycle.is_multiple_of(FIRST_START_EVERY) {
                self.first_start(cycle).await.context("at a first start")?;
            }
            if cycle.is_multiple_of(CHECK_ALL_EVERY) {
                self.check_all().await?;
                let (entries, acknowledged) = (self.audit.entries(), self.summary.acknowledged);
                eprintln!("cycle {cycle}: {acknowledged} acknowledged, {entries} entries");
            }
        }
        self.finish().await?;
        self.check_all().await
    }

    /// Starts the daemon, kills it, and audits its directory.
    async fn cycle(&mut self, cycle: u64) -> Result<()> {
        let mut dice = Dice::of(self.summary.seed, cycle);
        let mut daemon = self.program.up()?;
        let reports = match Kill::choose(&mut dice) {
            Kill::AfterStart(delay) => {
                self.summary.early += 1;
                daemon.kill_after(delay).await?;
                Vec::new()
            }
            Kill::AfterReady(delay) => {
                let socket = daemon.ready().await?;
                let tasks = self.assign_tasks(cycle, OWN_CALLS_MAX, &mut dice);
                let writers = try_join_all(tasks.into_iter().map(|task| write(&socket, task)));
                let (reports, killed) = join(writers, daemon.kill_after(delay)).await;
                killed?;
                reports?
            }
        };
        self.audit_cycle(reports).await
    }

    /// Kills a daemon during its first start in a new directory; the second start must succeed.
    async fn first_start(&mut self, cycle: u64) -> Result<()> {
        let mut dice = Dice::of(!self.summary.seed, cycle);
        let program = self.program.in_subdirectory(&format!("first-start-{cycle}"))?;
        let mut audit = Audit::new(&program);
        program.up()?.kill_after(dice.span_us(FIRST_START_US_MAX)).await?;
        audit.check(&[]).await?;
        let mut daemon = program.up()?;
        daemon.ready().await?;
        daemon.kill_after(dice.span_us(AFTER_READY_US_MAX)).await?;
        audit.check(&[]).await?;
        ensure!(0 < audit.entries(), "the daemon was ready without a ledger");
        audit.check_all().await?;
        self.summary.first_starts += 1;
        program.discard()
    }

    /// A last cycle, in which every interrupted call gets its response before the kill.
    async fn finish(&mut self) -> Result<()> {
        let mut daemon = self.program.up()?;
        let socket = daemon.ready().await?;
        let mut dice = Dice::of(self.summary.seed, 0);
        let tasks = self.assign_tasks(0, 0, &mut dice);
        let reports = try_join_all(tasks.into_iter().map(|task| write(&socket, task))).await?;
        daemon.kill_after(Duration::ZERO).await?;
        self.audit_cycle(reports).await?;
        ensure!(self.pending.is_empty(), "no response to {:?}", self.pending);
        Ok(())
    }

    /// Distributes the retries, and gives each writer a change to repeat.
    fn assign_tasks(&mut self, cycle: u64, own_max: u64, dice: &mut Dice) -> Vec<WriterTask> {
        let mut tasks: Vec<WriterTask> = (0..self.summary.writers)
            .map(|writer| WriterTask {
                retries: Vec::new(),
                repeat: dice.pick(&self.acknowledged).cloned(),
                own_max,
                prefix: format!("c{cycle}-w{writer}"),
                dice: Dice::of(dice.next(), writer),
            })
            .collect();
        let mut next = (0..tasks.len()).cycle();
        for call in self.pending.drain(..) {
            if let Some(writer) = next.next().and_then(|index| tasks.get_mut(index)) {
                writer.retries.push(call);
            }
        }
        tasks
    }

    /// Audits the directory of a killed daemon, and records which calls to retry.
    async fn audit_cycle(&mut self, reports: Vec<WriterReport>) -> Result<()> {
        let mut calls: Vec<FinishedCall> = Vec::new();
        for report in reports {
            self.summary.repeated += report.repeated;
            self.pending.extend(report.unsent);
            calls.extend(report.finished);
        }
        for call in &calls {
            self.summary.count(call)?;
        }
        self.audit.check(&calls).await?;
        // Without an acknowledged change in this cycle, those of an earlier one are repeated again.
        if calls.iter().any(|call| matches!(call.result, CallResult::Acknowledged(_))) {
            self.acknowledged.clear();
        }
        for FinishedCall { mut call, result } in calls {
            match result {
                CallResult::Acknowledged(response) => self.acknowledged.push((call, *response)),
                CallResult::Refused => {}
                CallResult::Unanswered => {
                    let is_recorded = self.audit.is_recorded(&call.key);
                    call.earlier =
                        if is_recorded { EarlierResult::Recorded } else { EarlierResult::Absent };
                    self.pending.push(call);
                }
            }
        }
        Ok(())
    }

    async fn check_all(&mut self) -> Result<()> {
        self.audit.check_all().await?;
        let differences = self.program.rebuild().await?;
        ensure!(differences == 0, "`ledger rebuild` found {differences} differences");
        // The rebuild wrote an entry.
        self.audit.check(&[]).await
    }

    fn print_summary(&mut self, elapsed: Duration, options: &Options) -> Result<()> {
        let summary = &mut self.summary;
        summary.seconds = elapsed.as_secs();
        summary.entries = self.audit.entries();
        summary.checkpoints = self.audit.checkpoints();
        (summary.lost, summary.doubled) = (self.audit.lost, self.audit.doubled);
        print(summary, options)
    }
}

#[expect(clippy::print_stdout, reason = "the summary is the output of the command")]
fn print(summary: &(impl Display + Serialize), options: &Options) -> Result<()> {
    match options.json {
        true => println!("{}", serde_json::to_string(summary)?),
        false => println!("{summary}"),
    }
    Ok(())
}

impl Kill {
    fn choose(dice: &mut Dice) -> Kill {
        match dice.is_one_in(EARLY_ONE_IN) {
            true => Kill::AfterStart(dice.span_us(EARLY_US_MAX)),
            false => Kill::AfterReady(dice.span_us(AFTER_READY_US_MAX)),
        }
    }
}
