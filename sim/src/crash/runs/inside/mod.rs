//! The campaign of runs whose work is done in the process that is killed: hundreds of schedules each
//! second, and their effects in a pipe whose reading end is here.
//!
//! That process is a [`host`]: the real store and the real watch, with somebody of ours who does the work.
//! What it has written into the pipe before it is killed stays there, and what it has not is never
//! written: other than a program, its work ends with it.

mod host;
mod pipe;
mod writing;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use super::account::Account;
use super::person::Answers;
use super::summary::Summary;
use super::{CYCLES_DEFAULT, Life, Promise, check_all};
use crate::crash::audit::Audit;
use crate::crash::daemon::{Daemon, Program};
use crate::crash::{Kill, Options, Verdict};
pub(crate) use host::{HostOptions, host};
use host::{Part, READY};
use pipe::Pipe;

/// Of each agent.
const SCHEDULES: u64 = 150;
const PROMISES: [Promise; 2] = [Promise::Once, Promise::Repeatable];
const SCHEDULES_ALL: u64 = SCHEDULES * PROMISES.len() as u64;

#[derive(Debug)]
struct Campaign {
    /// Verifies the log in the end.
    program: Program,
    /// Is killed, in the same directory.
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
    campaign.summary.told(&campaign.audit, started.elapsed(), outcome, options)
}

impl Campaign {
    async fn run(&mut self, cycles: u64) -> Result<()> {
        for cycle in 1..=cycles {
            self.summary.cycles = cycle;
            self.cycle(cycle).await?;
            self.audit.check(&[]).await?;
        }
        self.up(Part::Last)?.ends().await?;
        self.audit.check(&[]).await?;
        let counted = self.pipe.read()?;
        let account = Account::of(self.audit.tables(), &counted, &Answers::new());
        self.summary.take(account)?;
        check_all(&mut self.audit, &self.program).await
    }

    /// One life of the host. The first one makes the schedules.
    async fn cycle(&mut self, cycle: u64) -> Result<()> {
        let life = Life::of(self.summary.seed, cycle);
        sleep(life.down).await;
        let mut host = self.up(if cycle == 1 { Part::First } else { Part::Next })?;
        let delay = match life.kill {
            Kill::AfterStart(delay) => {
                self.summary.early += 1;
                delay
            }
            Kill::AfterReady(delay) => {
                let line = host.says().await?;
                ensure!(line == READY, "the host said `{line}`");
                delay
            }
        };
        host.kill_after(delay).await
    }

    fn up(&self, part: Part) -> Result<Daemon> {
        let (data, seed) = (self.host.data(), self.summary.seed.to_string());
        let data = data.to_str().with_context(|| unnamed(&data))?;
        let arguments = ["host", "--data", data, "--part", part.name(), "--seed", &seed];
        self.host.host(&arguments, self.pipe.way_in()?)
    }
}

fn unnamed(data: &Path) -> String {
    format!("`{}` cannot be an argument", data.display())
}
