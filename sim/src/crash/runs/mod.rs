//! The campaign of runs: schedules run programs every second, the daemon is killed under them, and
//! what the programs did is counted in a file that the daemon knows nothing of.
//!
//! One agent must take effect once at most, one may be repeated, and one is asked about: it takes effect once
//! for each yes of a person, who answers beside the kills. The programs of a daemon that
//! is killed live on and meet those of the next one, as they would elsewhere; only the last count
//! waits for them. In [`inside`] there are no programs: the work is done in the process that is killed.

mod account;
mod effects;
pub(super) mod inside;
mod person;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::wire::Hello;
use api::{Action, AgentAdd, Handle, ScheduleAdd, SchedulePause, Terms, When, ask};
use api::{LIST_ITEMS_MAX, Schedule, ScheduleList};
use client::{Socket, connect};
use futures::future::join;
use tokio::time::{sleep, timeout};

use super::audit::Audit;
use super::daemon::{Daemon, PATIENCE, Program};
use super::{Kill, Options, Verdict};
use crate::dice::Dice;
use account::Account;
use effects::Effects;
use person::{Answers, Person};
use summary::Summary;

const CYCLES_DEFAULT: u64 = 40;
/// Of each agent, …
const SCHEDULES: u64 = 40;
/// … but of the one that is asked about.
const SCHEDULES_ASKED: u64 = 8;
const SCHEDULES_ALL: u64 = 2 * SCHEDULES + SCHEDULES_ASKED;
/// The daemon lives this long at least after it said that it is ready, …
const AFTER_READY_US_MIN: u64 = 50_000;
/// … and this long at most.
const AFTER_READY_US_MAX: u64 = 1_500_000;
/// But in one cycle of this many …
const EARLY_ONE_IN: u64 = 5;
/// … only this long at most after it was started: it dies while it takes up what the last one left.
const EARLY_US_MAX: u64 = 200_000;
/// Before every cycle whose number is a multiple of this …
const DOWN_EVERY: u64 = 4;
/// … there is no daemon for this long at least, so that slots are missed, …
const DOWN_US_MIN: u64 = 2_000_000;
/// … and for this long at most.
const DOWN_US_MAX: u64 = 3_000_000;
/// One program of this many takes no time.
const HASTY_ONE_IN: u64 = 4;
/// The others at most this long before they take effect, and again after it.
const PROGRAM_MS_MAX: u64 = 200;
/// Before another look at something that is waited for.
const PAUSE: Duration = Duration::from_millis(10);

/// Each schedule has one of these for slots that come while its run is at work, …
const OVERLAPS: &[&str] = &["skip", "buffer_one", "buffer_all:3", "allow:2"];
/// … and one of these for slots without a daemon.
const MISSED: &[&str] = &["latest", "earliest", "all:3", "skip"];

/// What the name of an agent promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// It takes effect once at most.
    Once,
    /// It may be repeated.
    Repeatable,
    /// It takes effect once at most, and only if a person has said yes to that.
    Asked,
}

/// When a daemon is started, and when it is killed.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// There is none for this long before it.
    down: Duration,
    kill: Kill,
}

#[derive(Debug)]
struct Campaign {
    program: Program,
    effects: Effects,
    audit: Audit,
    /// What the person has said, as far as that was acknowledged.
    answers: Answers,
    summary: Summary,
}

#[expect(clippy::disallowed_methods, reason = "measures how long the campaign took")]
pub(super) async fn run(program: Program, seed: u64, options: &Options) -> Result<Verdict> {
    let mut campaign = Campaign {
        effects: Effects::new(&program.root),
        audit: Audit::new(&program),
        answers: Answers::new(),
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
        self.finish().await?;
        self.effects.settle().await?;
        self.audit.check(&[]).await?;
        self.account()?;
        self.check_all().await
    }

    /// One life of the daemon. The first one is told what to do.
    async fn cycle(&mut self, cycle: u64) -> Result<()> {
        let life = Life::of(self.summary.seed, cycle);
        sleep(life.down).await;
        let mut daemon = self.program.up()?;
        let delay = match life.kill {
            Kill::AfterStart(delay) => {
                self.summary.early += 1;
                return daemon.kill_after(delay).await;
            }
            Kill::AfterReady(delay) => delay,
        };
        let socket = daemon.ready().await?;
        if cycle == 1 {
            self.prepare(&greet(&socket).await?).await?;
        }
        let dice = Dice::of(!self.summary.seed, cycle);
        let mut person = Person { dice, answers: &mut self.answers };
        // Somebody who is answering when the daemon dies gets no answer.
        let (killed, ()) = join(daemon.kill_after(delay), person.attend(&socket)).await;
        killed
    }

    async fn prepare(&self, daemon: &Socket) -> Result<()> {
        let mut dice = Dice::of(self.summary.seed, 0);
        for promise in Promise::ALL {
            ask(daemon, self.agent(promise)).await?;
        }
        for number in 0..SCHEDULES {
            for promise in Promise::ALL {
                if number < SCHEDULES_ASKED || promise != Promise::Asked {
                    ask(daemon, schedule(promise, number, &mut dice)).await?;
                }
            }
        }
        Ok(())
    }

    fn agent(&self, promise: Promise) -> AgentAdd {
        AgentAdd {
            name: promise.agent().to_owned(),
            backend: "command".to_owned(),
            argv: self.effects.argv(),
            repeatable: promise == Promise::Repeatable,
            tier: (promise == Promise::Asked).then_some(2),
            ..AgentAdd::default()
        }
    }

    /// A last life: no slot is taken any more, every run ends, and the daemon stops when it is told.
    async fn finish(&mut self) -> Result<()> {
        let mut daemon: Daemon = self.program.up()?;
        let socket = greet(&daemon.ready().await?).await?;
        pause_all(&socket, SCHEDULES_ALL).await?;
        let dice = Dice::of(!self.summary.seed, 0);
        let mut person = Person { dice, answers: &mut self.answers };
        let all_ended = async {
            while is_any_live(&socket).await? {
                person.answer_all(&socket).await?;
                sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, all_ended).await.context("some runs never end")??;
        daemon.stop().await
    }

    /// Compares what the log says with what happened outside.
    fn account(&mut self) -> Result<()> {
        let counted = self.effects.read()?;
        let account = Account::of(self.audit.tables(), &counted, &self.answers);
        self.summary.take(account)
    }

    async fn check_all(&mut self) -> Result<()> {
        check_all(&mut self.audit, &self.program).await
    }
}

/// Has everything verified, by us and by the program.
async fn check_all(audit: &mut Audit, program: &Program) -> Result<()> {
    audit.check_all().await?;
    program.verify().await?;
    let differences = program.rebuild().await?;
    ensure!(differences == 0, "`ledger rebuild` found {differences} differences");
    // It has written an entry.
    audit.check(&[]).await
}

/// No slot of any schedule is taken any more.
async fn pause_all(daemon: &dyn Handle, count: u64) -> Result<()> {
    let schedules = schedules(daemon).await?;
    ensure!(schedules.len() as u64 == count, "{} schedules", schedules.len());
    for schedule in schedules {
        ask(daemon, SchedulePause { id: schedule.id, note: None }).await?;
    }
    Ok(())
}

/// Whether some schedule has a run that has not ended.
async fn is_any_live(daemon: &dyn Handle) -> Result<bool> {
    Ok(schedules(daemon).await?.iter().any(|it| !it.live.is_empty()))
}

async fn schedules(daemon: &dyn Handle) -> Result<Vec<Schedule>> {
    let all = ScheduleList { limit: Some(LIST_ITEMS_MAX), ..ScheduleList::default() };
    Ok(ask(daemon, all).await?.schedules)
}

async fn greet(socket: &Path) -> Result<Socket> {
    connect(socket, &Hello::new(env!("CARGO_PKG_VERSION"))).await?.context("the daemon is gone")
}

fn schedule(promise: Promise, number: u64, dice: &mut Dice) -> ScheduleAdd {
    let agent = promise.agent();
    let term = |value: Option<&&str>| value.map(|term| (*term).to_owned());
    ScheduleAdd {
        name: format!("{agent} {number}"),
        when: When { every: Some("1s".to_owned()), ..When::default() },
        action: Action {
            agent: Some(agent.to_owned()),
            prompt: Some(prompt(dice)),
            ..Action::default()
        },
        terms: Terms {
            overlap: term(dice.pick(OVERLAPS)),
            missed: term(dice.pick(MISSED)),
            ..Terms::default()
        },
        ..ScheduleAdd::default()
    }
}

/// How long the program takes before and after its effect, in seconds.
fn prompt(dice: &mut Dice) -> String {
    let mut pause_ms = || dice.below(PROGRAM_MS_MAX);
    let (before, after) = (pause_ms(), pause_ms());
    match dice.is_one_in(HASTY_ONE_IN) {
        true => "0 0".to_owned(),
        false => format!("0.{before:03} 0.{after:03}"),
    }
}

impl Life {
    /// The first one is not cut off early: it is told what to do.
    fn of(seed: u64, cycle: u64) -> Life {
        let mut dice = Dice::of(seed, cycle);
        let down = match cycle.is_multiple_of(DOWN_EVERY) {
            true => dice.between_us(DOWN_US_MIN, DOWN_US_MAX),
            false => Duration::ZERO,
        };
        let kill = match 1 < cycle && dice.is_one_in(EARLY_ONE_IN) {
            true => Kill::AfterStart(dice.span_us(EARLY_US_MAX)),
            false => Kill::AfterReady(dice.between_us(AFTER_READY_US_MIN, AFTER_READY_US_MAX)),
        };
        Life { down, kill }
    }
}

impl Promise {
    const ALL: [Promise; 3] = [Promise::Once, Promise::Repeatable, Promise::Asked];

    fn agent(self) -> &'static str {
        match self {
            Promise::Once => "once",
            Promise::Repeatable => "repeatable",
            Promise::Asked => "asked",
        }
    }

    fn of(agent: &str) -> Option<Promise> {
        Promise::ALL.into_iter().find(|it| it.agent() == agent)
    }
}
