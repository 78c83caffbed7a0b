//! The campaign of runs that the killed process itself executes: hundreds of schedules each second, and their effects in a
//! pipe that the campaign reads.
//!
//! That process is a [`host`]: the real store and the real engine with a backend of the campaign. Unlike a program, an
//! attempt ends with the process, so no line is written after the kill.

mod host;
mod pipe;
mod pipe_backend;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::approver::Decisions;
use super::reconcile::Reconciliation;
use super::summary::Summary;
use super::{CYCLES_DEFAULT, Guarantee, Lifetime, check_all};
use crate::crash::audit::Audit;
use crate::crash::daemon::{Daemon, Program};
use crate::crash::{Kill, Options, Verdict};
pub(crate) use host::{HostOptions, host};
use host::{Part, READY};
use pipe::Pipe;

/// Schedules of each agent.
const SCHEDULES: u64 = 150;
const GUARANTEES: [Guarantee; 2] = [Guarantee::Once, Guarantee::Repeatable];
const SCHEDULES_ALL: u64 = SCHEDULES * GUARANTEES.len() as u64;

#[derive(Debug)]
struct Campaign {
    /// Verifies the ledger at the end.
    program: Program,
    /// The process that is killed, in the same directory.
    host: Program,
    pipe: Pipe,
    audit: Audit,
    summary: Summary,
}

#[expect(clippy::disallowed_methods, reason = "measures how long the campaign took")]
pub(in crate::crash) async fn run(
    program: Program,
    seed: u64,
    options: &Options,
) -> Result<Verdict> {
    let mut campaign = Campaign {
        host: Program {
            binary: std::env::current_exe()?,
            root: program.root.clone(),
            database: None,
        },
        pipe: Pipe::new()?,
        audit: Audit::new(&program),
        program,
        summary: Summary { seed, schedules: SCHEDULES_ALL, ..Summary::default() },
    };
    let started = Instant::now();
    let outcome = campaign.run(options.cycles.unwrap_or(CYCLES_DEFAULT)).await;
    campaign.summary.conclude(&campaign.audit, started.elapsed(), outcome, options)
}

impl Campaign {
    async fn run(&mut self, cycles: u64) -> Result<()> {
        for cycle in 1..=cycles {
            self.summary.cycles = cycle;
            self.cycle(cycle).await?;
            self.audit.check(&[]).await?;
        }
        self.up(Part::Last)?.wait().await?;
        self.audit.check(&[]).await?;
        let counts = self.pipe.read()?;
        let found = Reconciliation::of(self.audit.tables(), &counts, &Decisions::new());
        self.summary.set_reconciliation(found)?;
        check_all(&mut self.audit, &self.program).await
    }

    /// Starts the host and kills it. The first one adds the schedules.
    async fn cycle(&mut self, cycle: u64) -> Result<()> {
        let lifetime = Lifetime::of(self.summary.seed, cycle);
        sleep(lifetime.down).await;
        let mut host = self.up(if cycle == 1 { Part::First } else { Part::Next })?;
        let delay = match lifetime.kill {
            Kill::AfterStart(delay) => {
                self.summary.early += 1;
                delay
            }
            Kill::AfterReady(delay) => {
                let line = host.next_line().await?;
                ensure!(line == READY, "unexpected output of the host: `{line}`");
                delay
            }
        };
        host.kill_after(delay).await
    }

    fn up(&self, part: Part) -> Result<Daemon> {
        let (data, seed) = (self.host.data(), self.summary.seed.to_string());
        let data = data.to_str().with_context(|| not_utf8(&data))?;
        let arguments = ["host", "--data", data, "--part", part.name(), "--seed", &seed];
        self.host.start_with_stdin(&arguments, self.pipe.writer()?)
    }
}

fn not_utf8(data: &Path) -> String {
    format!("`{}` is not UTF-8", data.display())
}
