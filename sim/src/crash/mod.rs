//! The crash campaigns: the real daemon is killed with -9 again and again on one data directory, while
//! writers change things over its socket, or, in [`runs`], while schedules run programs or do their work
//! in its process; after each death the directory is audited.
//!
//! A seed gives the same calls and the same delays again, not the same interleaving. kill -9 does not
//! test power loss: what the daemon handed to the operating system survives it.

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
use api::Answer;
use clap::Args;
use futures::future::{join, try_join_all};
use serde::Serialize;

use crate::dice::Dice;
use audit::Audit;
use daemon::Program;
use database::Database;
pub(crate) use runs::inside::{HostOptions, host};
use summary::Summary;
use writers::{Attempt, Ending, History, Made, Report, Work, write};

const CYCLES_DEFAULT: u64 = 2_000;
/// The daemon lives this long at most after it said that it is ready …
const AFTER_READY_US_MAX: u64 = 30_000;
/// … and, in one cycle of this many, …
const EARLY_ONE_IN: u64 = 5;
/// … only this long at most after it was started, which is mostly before it is ready.
const EARLY_US_MAX: u64 = 25_000;
/// Each time after this many cycles a new directory is begun, …
const BIRTH_EVERY: u64 = 20;
/// … and its first daemon is killed this long at most after it was started.
const BIRTH_US_MAX: u64 = 60_000;
/// Everything is verified, and not only what is new, each time after this many cycles.
const CHECK_ALL_EVERY: u64 = 100;
/// Of one writer in one cycle.
const OWN_CALLS_MAX: u64 = 100_000;
/// As many as the daemon takes connections.
const WRITERS_MAX: u64 = 256;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often to kill the daemon [default: 2000, and 40 with `--runs`]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,
    /// Let schedules run programs, and count what those did outside, instead of writers
    #[arg(long, conflicts_with = "writers")]
    runs: bool,
    /// Do their work in the process that is killed, and let it write into a pipe, instead of programs
    #[arg(long, requires = "runs", conflicts_with = "postgres")]
    inside: bool,
    /// Keep the data in a PostgreSQL that is started for it
    #[arg(long, requires = "runs")]
    postgres: bool,
    /// Repeats the calls and delays of an earlier campaign [default: a random one]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Writers at the same time, each with its own connection
    #[arg(long, value_name = "W", default_value_t = 16,
          value_parser = clap::value_parser!(u64).range(1..=WRITERS_MAX))]
    writers: u64,
    /// The program [default: `midwatch` beside this one]
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
    /// Calls without an answer, to be tried again.
    pending: Vec<Attempt>,
    /// The changes that were acknowledged last.
    acknowledged: Vec<(Attempt, Answer)>,
    summary: Summary,
}

/// When a daemon is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    AfterStart(Duration),
    AfterReady(Duration),
}

/// How a campaign ended, and in which cycle.
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
        (true, true) => runtime.block_on(runs::inside::run(program, seed, options))?,
        (true, false) => runtime.block_on(runs::run(program, seed, options))?,
        (false, _) => runtime.block_on(changes(program, seed, options))?,
    };
    let Err(wrong) = outcome else { return Ok(ExitCode::SUCCESS) };
    eprintln!("seed {seed}, cycle {cycle}: {wrong:#}");
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
    campaign.conclude(started.elapsed(), options)?;
    Ok(Verdict { cycle: campaign.summary.cycles, outcome })
}

fn binary(options: &Options) -> Result<PathBuf> {
    let beside = || Ok(std::env::current_exe()?.with_file_name("midwatch"));
    let binary = options.program.clone().map_or_else(beside, anyhow::Ok)?;
    let what = format!("there is no program `{}`: build it first", binary.display());
    binary.canonicalize().context(what)
}

impl Campaign {
    async fn run(&mut self, cycles: u64) -> Result<()> {
        for cycle in 1..=cycles {
            self.summary.cycles = cycle;
            self.cycle(cycle).await?;
            if cycle.is_multiple_of(BIRTH_EVERY) {
                self.birth(cycle).await.context("in a new directory")?;
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

    /// One life of the daemon, and what it left.
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
                let work = self.hand_out(cycle, OWN_CALLS_MAX, &mut dice);
                let writers = try_join_all(work.into_iter().map(|work| write(&socket, work)));
                let (reports, killed) = join(writers, daemon.kill_after(delay)).await;
                killed?;
                reports?
            }
        };
        self.settle(reports).await
    }

    /// A first start that is killed anywhere, and a second one that must find its way.
    async fn birth(&mut self, cycle: u64) -> Result<()> {
        let mut dice = Dice::of(!self.summary.seed, cycle);
        let program = self.program.at(&format!("birth-{cycle}"))?;
        let mut audit = Audit::new(&program);
        program.up()?.kill_after(dice.span_us(BIRTH_US_MAX)).await?;
        audit.check(&[]).await?;
        let mut daemon = program.up()?;
        daemon.ready().await?;
        daemon.kill_after(dice.span_us(AFTER_READY_US_MAX)).await?;
        audit.check(&[]).await?;
        ensure!(0 < audit.entries(), "the daemon was ready without a log");
        audit.check_all().await?;
        self.summary.births += 1;
        program.discard()
    }

    /// A last life, in which everything that was cut off gets its answer before the kill.
    async fn finish(&mut self) -> Result<()> {
        let mut daemon = self.program.up()?;
        let socket = daemon.ready().await?;
        let mut dice = Dice::of(self.summary.seed, 0);
        let work = self.hand_out(0, 0, &mut dice);
        let reports = try_join_all(work.into_iter().map(|work| write(&socket, work))).await?;
        daemon.kill_after(Duration::ZERO).await?;
        self.settle(reports).await?;
        ensure!(self.pending.is_empty(), "no answer to {:?}", self.pending);
        Ok(())
    }

    /// Deals what is to be done to the writers.
    fn hand_out(&mut self, cycle: u64, own_max: u64, dice: &mut Dice) -> Vec<Work> {
        let mut work: Vec<Work> = (0..self.summary.writers)
            .map(|writer| Work {
                retries: Vec::new(),
                repeat: dice.pick(&self.acknowledged).cloned(),
                own_max,
                prefix: format!("c{cycle}-w{writer}"),
                dice: Dice::of(dice.next(), writer),
            })
            .collect();
        let mut next = (0..work.len()).cycle();
        for attempt in self.pending.drain(..) {
            if let Some(writer) = next.next().and_then(|index| work.get_mut(index)) {
                writer.retries.push(attempt);
            }
        }
        work
    }

    /// Audits the directory of a dead daemon, and remembers what is to be tried again.
    async fn settle(&mut self, reports: Vec<Report>) -> Result<()> {
        let mut made: Vec<Made> = Vec::new();
        for report in reports {
            self.summary.repeated += report.repeated;
            self.pending.extend(report.unsent);
            made.extend(report.made);
        }
        for made in &made {
            self.summary.count(made)?;
        }
        self.audit.check(&made).await?;
        // A life in which nothing was answered leaves those of an earlier one to be asked for again.
        if made.iter().any(|made| matches!(made.ending, Ending::Acknowledged(_))) {
            self.acknowledged.clear();
        }
        for Made { mut attempt, ending } in made {
            match ending {
                Ending::Acknowledged(answer) => self.acknowledged.push((attempt, *answer)),
                Ending::Refused => {}
                Ending::Unanswered => {
                    let landed = self.audit.has(&attempt.key);
                    attempt.history = if landed { History::Landed } else { History::Absent };
                    self.pending.push(attempt);
                }
            }
        }
        Ok(())
    }

    async fn check_all(&mut self) -> Result<()> {
        self.audit.check_all().await?;
        let differences = self.program.rebuild().await?;
        ensure!(differences == 0, "`ledger rebuild` found {differences} differences");
        // It has written an entry.
        self.audit.check(&[]).await
    }

    fn conclude(&mut self, took: Duration, options: &Options) -> Result<()> {
        let summary = &mut self.summary;
        summary.seconds = took.as_secs();
        summary.entries = self.audit.entries();
        summary.checkpoints = self.audit.checkpoints();
        (summary.lost, summary.doubled) = (self.audit.lost, self.audit.doubled);
        print(summary, options)
    }
}

#[expect(clippy::print_stdout, reason = "the summary is the answer")]
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
