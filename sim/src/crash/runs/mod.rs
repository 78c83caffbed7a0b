//! The campaign of runs: schedules run programs every second, the daemon is killed meanwhile, and the effects of the
//! programs are counted in a file that the daemon does not know.
//!
//! The runs of one agent may take effect once, those of another may be repeated, and those of the third take effect once for
//! each approval; an approver decides while the daemon is killed. The programs of a killed daemon keep running beside those
//! of the next one; only the final count waits for them. In [`in_process`] there are no programs: the process that is
//! killed executes the runs.

mod approver;
mod effects;
pub(super) mod in_process;
mod reconcile;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::wire::Hello;
use api::{Action, AgentAdd, AgentSettings, Handle, ScheduleAdd, SchedulePause, Terms, When, send};
use api::{LIST_ITEMS_MAX, Schedule, ScheduleList};
use futures::future::join;
use tokio::time::{sleep, timeout};
use transport::{Socket, connect};

use super::audit::Audit;
use super::daemon::{Daemon, Program, TIMEOUT};
use super::{Kill, Options, Verdict};
use crate::dice::Dice;
use approver::{Approver, Decisions};
use effects::Effects;
use reconcile::Reconciliation;
use summary::Summary;

const CYCLES_DEFAULT: u64 = 40;
/// Schedules of each agent that needs no approval.
const SCHEDULES: u64 = 40;
/// Schedules of the agent that needs approval.
const SCHEDULES_NEEDING_APPROVAL: u64 = 8;
const SCHEDULES_ALL: u64 = 2 * SCHEDULES + SCHEDULES_NEEDING_APPROVAL;
/// The daemon is killed at least this long after it is ready.
const AFTER_READY_US_MIN: u64 = 50_000;
/// The daemon is killed at most this long after it is ready.
const AFTER_READY_US_MAX: u64 = 1_500_000;
/// In one cycle of this many, the daemon is killed early: within [`EARLY_US_MAX`] of its start.
const EARLY_ONE_IN: u64 = 5;
/// Short enough that the daemon is killed while it recovers the runs of the last one.
const EARLY_US_MAX: u64 = 200_000;
/// Before every cycle whose number is a multiple of this, no daemon runs for a while, so that slots are missed.
const DOWN_EVERY: u64 = 4;
/// The shortest downtime.
const DOWN_US_MIN: u64 = 2_000_000;
/// The longest downtime.
const DOWN_US_MAX: u64 = 3_000_000;
/// One program of this many does not sleep.
const INSTANT_ONE_IN: u64 = 4;
/// The others sleep at most this long before their effect, and again after it.
const PROGRAM_MS_MAX: u64 = 200;
/// Between two checks while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The `overlap` terms of the schedules.
const OVERLAPS: &[&str] = &["skip", "buffer_one", "buffer_all:3", "allow:2"];
/// The `missed` terms of the schedules.
const MISSED: &[&str] = &["latest", "earliest", "all:3", "skip"];

/// What the campaign checks for the runs of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarantee {
    /// A run takes effect at most once.
    Once,
    /// A run may be repeated.
    Repeatable,
    /// A run takes effect at most once, and only if it was approved.
    NeedsApproval,
}

/// When a daemon is started and killed.
#[derive(Clone, Copy, Debug)]
struct Lifetime {
    /// The downtime before its start.
    down: Duration,
    kill: Kill,
}

#[derive(Debug)]
struct Campaign {
    program: Program,
    effects: Effects,
    audit: Audit,
    decisions: Decisions,
    summary: Summary,
}

#[expect(clippy::disallowed_methods, reason = "measures how long the campaign took")]
pub(super) async fn run(program: Program, seed: u64, options: &Options) -> Result<Verdict> {
    let mut campaign = Campaign {
        effects: Effects::new(&program.root),
        audit: Audit::new(&program),
        decisions: Decisions::new(),
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
        self.finish().await?;
        self.effects.wait_for_programs().await?;
        self.audit.check(&[]).await?;
        self.reconcile()?;
        self.check_all().await
    }

    /// Starts the daemon and kills it. The first one gets the agents and schedules.
    async fn cycle(&mut self, cycle: u64) -> Result<()> {
        let lifetime = Lifetime::of(self.summary.seed, cycle);
        sleep(lifetime.down).await;
        let mut daemon = self.program.up()?;
        let delay = match lifetime.kill {
            Kill::AfterStart(delay) => {
                self.summary.early += 1;
                return daemon.kill_after(delay).await;
            }
            Kill::AfterReady(delay) => delay,
        };
        let socket = daemon.ready().await?;
        if cycle == 1 {
            self.prepare(&connect_to(&socket).await?).await?;
        }
        let dice = Dice::of(!self.summary.seed, cycle);
        let mut approver = Approver { dice, decisions: &mut self.decisions };
        // The kill interrupts a decision that is being sent.
        let (killed, ()) =
            join(daemon.kill_after(delay), approver.decide_until_gone(&socket)).await;
        killed
    }

    async fn prepare(&self, daemon: &Socket) -> Result<()> {
        let mut dice = Dice::of(self.summary.seed, 0);
        for guarantee in Guarantee::ALL {
            send(daemon, self.agent(guarantee)).await?;
        }
        for number in 0..SCHEDULES {
            for guarantee in Guarantee::ALL {
                if number < SCHEDULES_NEEDING_APPROVAL || guarantee != Guarantee::NeedsApproval {
                    send(daemon, schedule(guarantee, number, &mut dice)).await?;
                }
            }
        }
        Ok(())
    }

    fn agent(&self, guarantee: Guarantee) -> AgentAdd {
        AgentAdd {
            name: guarantee.agent().to_owned(),
            backend: "command".to_owned(),
            settings: AgentSettings {
                argv: self.effects.argv(),
                repeatable: Some(guarantee == Guarantee::Repeatable),
                tier: (guarantee == Guarantee::NeedsApproval).then_some(2),
                ..AgentSettings::default()
            },
            look: false,
        }
    }

    /// A last cycle: schedules are paused, every run ends, and the daemon is stopped.
    async fn finish(&mut self) -> Result<()> {
        let mut daemon: Daemon = self.program.up()?;
        let socket = connect_to(&daemon.ready().await?).await?;
        pause_all(&socket, SCHEDULES_ALL).await?;
        let dice = Dice::of(!self.summary.seed, 0);
        let mut approver = Approver { dice, decisions: &mut self.decisions };
        let all_ended = async {
            while is_any_live(&socket).await? {
                approver.decide_all(&socket).await?;
                sleep(POLL_INTERVAL).await;
            }
            anyhow::Ok(())
        };
        timeout(TIMEOUT, all_ended).await.context("some runs never end")??;
        daemon.stop().await
    }

    /// Compares the ledger with the effects.
    fn reconcile(&mut self) -> Result<()> {
        let counts = self.effects.read()?;
        let found = Reconciliation::of(self.audit.tables(), &counts, &self.decisions);
        self.summary.set_reconciliation(found)
    }

    async fn check_all(&mut self) -> Result<()> {
        check_all(&mut self.audit, &self.program).await
    }
}

/// Verifies the ledger and the tables, with the audit and with the program.
async fn check_all(audit: &mut Audit, program: &Program) -> Result<()> {
    audit.check_all().await?;
    program.verify().await?;
    let differences = program.rebuild().await?;
    ensure!(differences == 0, "`ledger rebuild` found {differences} differences");
    // The rebuild wrote an entry.
    audit.check(&[]).await
}

async fn pause_all(daemon: &dyn Handle, count: u64) -> Result<()> {
    let schedules = schedules(daemon).await?;
    ensure!(schedules.len() as u64 == count, "{} schedules", schedules.len());
    for schedule in schedules {
        send(daemon, SchedulePause { id: schedule.id, note: None }).await?;
    }
    Ok(())
}

/// Whether a schedule has a run that has not ended.
async fn is_any_live(daemon: &dyn Handle) -> Result<bool> {
    Ok(schedules(daemon).await?.iter().any(|it| !it.live.is_empty()))
}

async fn schedules(daemon: &dyn Handle) -> Result<Vec<Schedule>> {
    let all = ScheduleList { limit: Some(LIST_ITEMS_MAX), ..ScheduleList::default() };
    Ok(send(daemon, all).await?.schedules)
}

async fn connect_to(socket: &Path) -> Result<Socket> {
    connect(socket, &Hello::new(env!("CARGO_PKG_VERSION"))).await?.context("the daemon is gone")
}

fn schedule(guarantee: Guarantee, number: u64, dice: &mut Dice) -> ScheduleAdd {
    let agent = guarantee.agent();
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

/// How long the program sleeps before and after its effect, in seconds.
fn prompt(dice: &mut Dice) -> String {
    let mut pause_ms = || dice.below(PROGRAM_MS_MAX);
    let (before, after) = (pause_ms(), pause_ms());
    match dice.is_one_in(INSTANT_ONE_IN) {
        true => "0 0".to_owned(),
        false => format!("0.{before:03} 0.{after:03}"),
    }
}

impl Lifetime {
    /// The first daemon is not killed early: it gets the agents and schedules.
    fn of(seed: u64, cycle: u64) -> Lifetime {
        let mut dice = Dice::of(seed, cycle);
        let down = match cycle.is_multiple_of(DOWN_EVERY) {
            true => dice.between_us(DOWN_US_MIN, DOWN_US_MAX),
            false => Duration::ZERO,
        };
        let kill = match 1 < cycle && dice.is_one_in(EARLY_ONE_IN) {
            true => Kill::AfterStart(dice.span_us(EARLY_US_MAX)),
            false => Kill::AfterReady(dice.between_us(AFTER_READY_US_MIN, AFTER_READY_US_MAX)),
        };
        Lifetime { down, kill }
    }
}

impl Guarantee {
    const ALL: [Guarantee; 3] = [Guarantee::Once, Guarantee::Repeatable, Guarantee::NeedsApproval];

    fn agent(self) -> &'static str {
        match self {
            Guarantee::Once => "once",
            Guarantee::Repeatable => "repeatable",
            Guarantee::NeedsApproval => "needs-approval",
        }
    }

    fn of(agent: &str) -> Option<Guarantee> {
        Guarantee::ALL.into_iter().find(|it| it.agent() == agent)
    }
}
