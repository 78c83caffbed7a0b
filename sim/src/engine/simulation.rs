//! One simulation: processes that start and die over one store, operators, and time that passes or jumps.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{ApiRequest, Request, ScheduleShow, send};
use futures::future::FutureExt;
use ledger::SigningKey;
use store::Memory;
use tempfile::TempDir;
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::sleep;

use super::Options;
use super::check::Audit;
use super::clock::SimClock;
use super::fault_rates::FaultRates;
use super::faults::{ABANDONED_COMMIT_MS_MAX, FaultyStore};
use super::generate;
use super::history::History;
use super::operators::{self, AUTHOR, SentCall};
use super::process::Process;
use super::scripted_backend::ScriptedBackend;
use super::store_view::StoreView;
use super::summary::Summary;
use crate::dice::Dice;

/// Three days on which daylight saving changes somewhere, and one without a change.
const START_TIMES_S: [i64; 4] = [1_772_900_000, 1_774_650_000, 1_792_850_000, 1_780_000_000];
/// Schedules that fire often, added at the start.
const BUSY_SCHEDULES: u64 = 4;

#[derive(Debug)]
pub(super) struct Simulation {
    pub(super) dice: Dice,
    pub(super) data: TempDir,
    pub(super) store: Arc<FaultyStore>,
    pub(super) clock: Arc<SimClock>,
    pub(super) backend: Arc<ScriptedBackend>,
    pub(super) process: Option<Process>,
    /// A process that does not know that another took over, and the step at which it is killed.
    pub(super) stale_process: Option<(Process, u64)>,
    processes: u64,
    pub(super) calls: JoinSet<(u64, SentCall)>,
    calls_sent: u64,
    /// Calls without an answer at the last check.
    pending_calls: Vec<PendingCall>,
    /// Calls that may or may not have been executed.
    in_doubt: Vec<(String, (&'static str, Request))>,
    pub(super) audit: Audit,
    pub(super) summary: Summary,
    pub(super) step: u64,
    /// How far the clock is ahead of the simulated time.
    pub(super) clock_error_us: i64,
}

/// A call that the simulation may abandon.
#[derive(Debug)]
struct PendingCall {
    task: AbortHandle,
    key: String,
    request: (&'static str, Request),
}

/// Runs one simulation. An error names the step.
pub(super) async fn simulate(
    seed: u64,
    number: u64,
    options: &Options,
) -> Result<(History, Summary)> {
    let mut simulation = Simulation::new(seed, number).await?;
    simulation.add_busy_schedules();
    for step in 1..=options.steps {
        simulation.step = step;
        let event = simulation.step().await.with_context(|| format!("step {step}"))?;
        let checked = simulation.check();
        if options.trace {
            simulation.audit.history.print_new(&format!("step {step}: {event}"));
        }
        checked.with_context(|| format!("step {step}, {event}"))?;
    }
    // From here on, the order of the entries depends on threads.
    let history = std::mem::take(&mut simulation.audit.history);
    let drained = simulation.drain().await;
    if options.trace {
        simulation.audit.history.print_new("the end");
    }
    drained.context("at the end, when every run had to end")?;
    Ok((history, simulation.summary))
}

impl Simulation {
    pub(super) async fn new(seed: u64, number: u64) -> Result<Simulation> {
        // The shift makes seed 1, number 2 differ from seed 2, number 1.
        let mut dice = Dice::of(seed, number << 32 | 1);
        let own_seed = dice.next();
        let data = tempfile::Builder::new().prefix("midwatch-sim-").tempdir()?;
        let key = SigningKey::from_seed("midwatch/sim", [7; 32])?;
        let path = data.path().join("signing.key");
        fs::write(&path, key.to_text())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        fs::write(data.path().join("node"), "sim")?;
        let start_s = dice.one(1_780_000_000, &START_TIMES_S) + dice.below(86_400) as i64;
        // A shared store allows takeovers; over an exclusive one, a process may trust its row cache.
        let is_shared = dice.is_one_in(2);
        let memory = Arc::new(Memory::new());
        let view = StoreView(memory.clone());
        let mut simulation = Simulation {
            dice,
            data,
            store: Arc::new(FaultyStore::new(memory, own_seed, is_shared)),
            clock: Arc::new(SimClock::new(own_seed, start_s * 1_000_000)),
            backend: Arc::new(ScriptedBackend::new(own_seed, view.clone())),
            process: None,
            stale_process: None,
            processes: 0,
            calls: JoinSet::new(),
            calls_sent: 0,
            pending_calls: Vec::new(),
            in_doubt: Vec::new(),
            audit: Audit::new(view),
            summary: Summary::default(),
            step: 0,
            clock_error_us: 0,
        };
        simulation.start().await?;
        for agent in generate::agents() {
            simulation.send(agent.into_request());
        }
        sleep(Duration::from_millis(100)).await;
        Ok(simulation)
    }

    /// Adds schedules that fire often, so that every disruption falls into running work.
    fn add_busy_schedules(&mut self) {
        for _ in 0..BUSY_SCHEDULES {
            let request =
                generate::busy_schedule(&mut self.dice, self.clock.now_us()).into_request();
            self.send(request);
        }
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        // A daemon refuses to start by such a clock.
        if self.is_clock_untrusted() {
            self.correct_clock();
        }
        self.processes += 1;
        self.store.drop_abandoned_commits();
        let (data, number) = (self.data.path(), self.processes);
        let process = Process::start(number, data, &self.store, &self.clock, &self.backend).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Does one random thing and returns its description.
    async fn step(&mut self) -> Result<String> {
        if self.process.as_mut().is_none_or(Process::has_ended) {
            self.summary.ended += u64::from(self.process.take().is_some());
            self.start().await?;
        }
        if let Some((process, _)) = self.stale_process.take_if(|(_, until)| *until <= self.step) {
            process.die().await;
        }
        if self.dice.is_one_in(3) {
            self.store.set_fault_rates(FaultRates::draw(&mut self.dice));
        }
        // A clock that is behind delays every fire, and one that is not trusted stops them, so both are soon corrected.
        if (self.clock_error_us < 0 || self.is_clock_untrusted()) && self.dice.is_one_in(5) {
            self.correct_clock();
        }
        match self.dice.below(100) {
            0..36 => {
                let count = 1 + self.dice.below(3);
                (0..count).for_each(|_| self.send_random_call());
                let ms = self.dice.below(40);
                sleep(Duration::from_millis(ms)).await;
                Ok(format!("{count} calls"))
            }
            36..58 => self.advance(20_000).await,
            58..72 => self.advance(200_000).await,
            72..75 => self.advance(1_500_000).await,
            75..82 => Ok(self.jump()),
            82..84 => self.stop_without_store().await,
            84..90 => self.crash().await,
            90..92 => self.stop().await,
            92..94 => self.take_over().await,
            94..97 => self.abandon_call().await,
            _ => Ok(self.read()?),
        }
    }

    pub(super) async fn advance(&mut self, ms_max: u64) -> Result<String> {
        let span = Duration::from_millis(1 + self.dice.below(ms_max));
        sleep(span).await;
        Ok(format!("{span:?} pass"))
    }

    fn read(&mut self) -> Result<String> {
        let Some(process) = &self.process else { return Ok("no process to read from".to_owned()) };
        // A commit without an answer may or may not be visible, and the engine does not say which time it goes by.
        if self.store.has_unacknowledged_commit() || self.is_clock_untrusted() {
            return Ok("too early to read".to_owned());
        }
        self.audit.read_new_entries(&self.backend.attempts())?;
        self.store.set_instant(true);
        let handle = process.engine.handle(operators::actor(AUTHOR));
        let read = self.audit.check_reads(&handle, self.clock.now_us());
        self.store.set_instant(false);
        read?;
        self.summary.reads += 1;
        Ok("a read".to_owned())
    }

    /// Reads every schedule while a commit is in doubt, so that the process may cache what it reads.
    fn read_schedules(&self) {
        let Some(process) = &self.process else { return };
        self.store.set_instant(true);
        for id in self.audit.visible_state(self.clock.now_us()).schedules {
            let handle = process.engine.handle(operators::actor(AUTHOR));
            let _ = send(&handle, ScheduleShow { id }).now_or_never();
        }
        self.store.set_instant(false);
    }

    pub(super) fn send_random_call(&mut self) {
        let visible = self.audit.visible_state(self.clock.now_us());
        let repeat = match self.dice.is_one_in(2) {
            true => self.in_doubt.pop(),
            false => None,
        };
        match repeat {
            Some((key, request)) => self.spawn_call((key, true), request),
            None => {
                if let Some(request) = operators::random_request(&mut self.dice, &visible) {
                    for by in operators::senders(&mut self.dice, &request) {
                        self.send_as(by, request.clone());
                    }
                }
            }
        }
    }

    pub(super) fn send(&mut self, request: Request) {
        self.send_as(AUTHOR, request);
    }

    fn send_as(&mut self, by: &'static str, request: Request) {
        self.calls_sent += 1;
        self.spawn_call((format!("k{}", self.calls_sent), false), (by, request));
    }

    /// `key` comes with whether it was used before, `request` with the name of its sender.
    fn spawn_call(&mut self, key: (String, bool), request: (&'static str, Request)) {
        let Some(process) = &self.process else { return };
        let (number, handle) = (process.number, process.engine.handle(operators::actor(request.0)));
        let pending_key = key.0.clone();
        let pending_request = request.clone();
        let sent = async move { (number, operators::send(handle, key, request).await) };
        let task = self.calls.spawn(sent);
        let pending = PendingCall { task, key: pending_key, request: pending_request };
        self.pending_calls.push(pending);
    }

    /// The store is slow, and a caller gives up while its commit is pending; the commit is made later. Rows that were read
    /// before must not be trusted then.
    async fn abandon_call(&mut self) -> Result<String> {
        self.store.set_fault_rates(FaultRates { slow: 100, ..FaultRates::default() });
        self.send_random_call();
        self.advance(ABANDONED_COMMIT_MS_MAX).await?;
        self.pending_calls.retain(|it| !it.task.is_finished());
        let Some(PendingCall { task, key, request }) = self.pending_calls.pop() else {
            return Ok("no pending call".to_owned());
        };
        self.store.set_apply_abandoned(true);
        task.abort();
        while !task.is_finished() {
            yield_now().await;
        }
        self.store.set_apply_abandoned(false);
        self.summary.abandoned_calls += 1;
        self.in_doubt.push((key, request));
        self.store.set_fault_rates(FaultRates::default());
        self.read_schedules();
        self.advance(2 * ABANDONED_COMMIT_MS_MAX).await?;
        let read = self.read()?;
        Ok(format!("an abandoned call, {read}"))
    }

    /// Checks every invariant.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(violation) = self.backend.take_violation() {
            anyhow::bail!(violation);
        }
        let backend = self.backend.clone();
        let attempts = backend.attempts();
        self.audit.read_new_entries(&attempts)?;
        let elapsed = u128::try_from(self.clock.elapsed_us()).unwrap_or_default();
        while let Some(finished) = self.calls.try_join_next() {
            let Ok((process, sent)) = finished else { continue };
            let checked = self.audit.check_acknowledgement(&sent, &attempts, process, elapsed);
            checked.with_context(|| format!("{:?} ({})", sent.request, sent.key))?;
            match &sent.result {
                Ok(_) => self.summary.acknowledged += 1,
                Err(_) if sent.is_in_doubt() => {
                    self.summary.in_doubt += 1;
                    self.in_doubt.push((sent.key, (sent.by, sent.request)));
                }
                Err(_) => self.summary.refused += 1,
            }
        }
        self.summary.attempts = attempts.len() as u64;
        Ok(())
    }
}
