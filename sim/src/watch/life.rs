//! One life: processes that come and go over one store, people, and time that passes or jumps.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{Ask, Request, ScheduleShow, ask};
use futures::future::FutureExt;
use ledger::SigningKey;
use store::Memory;
use tempfile::TempDir;
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::sleep;

use super::Options;
use super::check::Audit;
use super::clock::SimClock;
use super::faults::{Faulty, LANDING_MS_MAX};
use super::hands::Hands;
use super::history::History;
use super::mood::Mood;
use super::peek::Peek;
use super::people::{self, Made, NAME};
use super::plan;
use super::process::Process;
use super::summary::Summary;
use crate::dice::Dice;

/// Days on which a clock changes somewhere, and one on which none does.
const BEGINNINGS_S: [i64; 4] = [1_772_900_000, 1_774_650_000, 1_792_850_000, 1_780_000_000];
/// Schedules that a life begins with.
const BUSY: u64 = 4;

#[derive(Debug)]
pub(super) struct Life {
    pub(super) dice: Dice,
    data: TempDir,
    pub(super) store: Arc<Faulty>,
    pub(super) clock: Arc<SimClock>,
    pub(super) hands: Arc<Hands>,
    pub(super) process: Option<Process>,
    /// A process that does not know that another has taken its place, and until which step.
    pub(super) ghost: Option<(Process, u64)>,
    processes: u64,
    pub(super) calls: JoinSet<(u64, Made)>,
    calls_made: u64,
    /// Calls that were not answered when somebody last looked.
    under_way: Vec<UnderWay>,
    /// Calls of which nobody knows whether they were carried out.
    in_doubt: Vec<(String, (&'static str, Request))>,
    pub(super) audit: Audit,
    pub(super) summary: Summary,
    pub(super) step: u64,
    /// By how much the clock is wrong.
    pub(super) wrong_us: i64,
}

/// A call that may be left.
#[derive(Debug)]
struct UnderWay {
    call: AbortHandle,
    key: String,
    asked: (&'static str, Request),
}

/// Lives through one life. The message of an error names the step.
pub(super) async fn live(seed: u64, life: u64, options: &Options) -> Result<(History, Summary)> {
    let mut world = Life::new(seed, life).await?;
    world.begin();
    for step in 1..=options.steps {
        world.step = step;
        let did = world.step().await.with_context(|| format!("step {step}"))?;
        let checked = world.check();
        if options.trace {
            world.audit.history.tell(&format!("step {step}: {did}"));
        }
        checked.with_context(|| format!("step {step}, {did}"))?;
    }
    // What threads do from here on may come in any order.
    let history = std::mem::take(&mut world.audit.history);
    let rested = world.rest().await;
    if options.trace {
        world.audit.history.tell("the end");
    }
    rested.context("at the end, when everything was to come to rest")?;
    Ok((history, world.summary))
}

impl Life {
    pub(super) async fn new(seed: u64, life: u64) -> Result<Life> {
        // Not the same as that of another seed with the two exchanged.
        let mut dice = Dice::of(seed, life << 32 | 1);
        let own = dice.next();
        let data = tempfile::Builder::new().prefix("midwatch-sim-").tempdir()?;
        let key = SigningKey::from_seed("midwatch/sim", [7; 32])?;
        let path = data.path().join("signing.key");
        fs::write(&path, key.to_text())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        fs::write(data.path().join("node"), "sim")?;
        let begins_s = dice.one(1_780_000_000, &BEGINNINGS_S) + dice.below(86_400) as i64;
        // Either another process may take over while one goes on, or what one remembers is true.
        let is_shared = dice.is_one_in(2);
        let memory = Arc::new(Memory::new());
        let peek = Peek(memory.clone());
        let mut life = Life {
            dice,
            data,
            store: Arc::new(Faulty::new(memory, own, is_shared)),
            clock: Arc::new(SimClock::new(own, begins_s * 1_000_000)),
            hands: Arc::new(Hands::new(own, peek.clone())),
            process: None,
            ghost: None,
            processes: 0,
            calls: JoinSet::new(),
            calls_made: 0,
            under_way: Vec::new(),
            in_doubt: Vec::new(),
            audit: Audit::new(peek),
            summary: Summary::default(),
            step: 0,
            wrong_us: 0,
        };
        life.start().await?;
        for agent in plan::agents() {
            life.ask(agent.into_request());
        }
        sleep(Duration::from_millis(100)).await;
        Ok(life)
    }

    /// Schedules that are busy, so that whatever happens happens in the middle of something.
    fn begin(&mut self) {
        for _ in 0..BUSY {
            let request = plan::busy(&mut self.dice, self.clock.now_us()).into_request();
            self.ask(request);
        }
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        self.processes += 1;
        self.store.lose_landing();
        let (data, number) = (self.data.path(), self.processes);
        let process = Process::start(number, data, &self.store, &self.clock, &self.hands).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Something happens. Says what it was.
    async fn step(&mut self) -> Result<String> {
        if self.process.as_mut().is_none_or(Process::has_ended) {
            self.summary.ended += u64::from(self.process.take().is_some());
            self.start().await?;
        }
        if let Some((ghost, _)) = self.ghost.take_if(|(_, until)| *until <= self.step) {
            ghost.die().await;
        }
        if self.dice.is_one_in(3) {
            self.store.set_mood(Mood::draw(&mut self.dice));
        }
        // A clock that is behind keeps everything waiting, so it is not left so for long.
        if self.wrong_us < 0 && self.dice.is_one_in(5) {
            self.clock.jump(-std::mem::take(&mut self.wrong_us));
        }
        match self.dice.below(100) {
            0..36 => {
                let count = 1 + self.dice.below(3);
                (0..count).for_each(|_| self.think());
                let ms = self.dice.below(40);
                sleep(Duration::from_millis(ms)).await;
                Ok(format!("{count} calls"))
            }
            36..58 => self.pass(20_000).await,
            58..72 => self.pass(200_000).await,
            72..75 => self.pass(1_500_000).await,
            75..84 => Ok(self.jump()),
            84..90 => self.crash().await,
            90..92 => self.stop().await,
            92..94 => self.overtake().await,
            94..97 => self.lose_patience().await,
            _ => Ok(self.read()?),
        }
    }

    pub(super) async fn pass(&mut self, ms_max: u64) -> Result<String> {
        let span = Duration::from_millis(1 + self.dice.below(ms_max));
        sleep(span).await;
        Ok(format!("{span:?} pass"))
    }

    fn read(&mut self) -> Result<String> {
        let Some(process) = &self.process else { return Ok("nobody to ask".to_owned()) };
        // What is made and not acknowledged may be shown or not.
        if self.store.is_answering() {
            return Ok("too early to read".to_owned());
        }
        self.audit.follow(&self.hands.tries())?;
        self.store.set_instant(true);
        let handle = process.watch.handle(people::actor(NAME));
        let read = self.audit.check_reads(&handle, self.clock.now_us());
        self.store.set_instant(false);
        read?;
        self.summary.reads += 1;
        Ok("reading".to_owned())
    }

    /// Somebody looks at everything while nobody knows what is true.
    fn glance(&self) {
        let Some(process) = &self.process else { return };
        self.store.set_instant(true);
        for id in self.audit.known(self.clock.now_us()).schedules {
            let handle = process.watch.handle(people::actor(NAME));
            let _ = ask(&handle, ScheduleShow { id }).now_or_never();
        }
        self.store.set_instant(false);
    }

    pub(super) fn think(&mut self) {
        let known = self.audit.known(self.clock.now_us());
        let repeat = match self.dice.is_one_in(2) {
            true => self.in_doubt.pop(),
            false => None,
        };
        match repeat {
            Some((key, request)) => self.call((key, true), request),
            None => {
                if let Some(request) = people::think(&mut self.dice, &known) {
                    for by in people::who(&mut self.dice, &request) {
                        self.ask_as(by, request.clone());
                    }
                }
            }
        }
    }

    pub(super) fn ask(&mut self, request: Request) {
        self.ask_as(NAME, request);
    }

    fn ask_as(&mut self, by: &'static str, request: Request) {
        self.calls_made += 1;
        self.call((format!("k{}", self.calls_made), false), (by, request));
    }

    /// With a key, and whether that was used before.
    fn call(&mut self, key: (String, bool), request: (&'static str, Request)) {
        let Some(process) = &self.process else { return };
        let (number, handle) = (process.number, process.watch.handle(people::actor(request.0)));
        let (name, asked) = (key.0.clone(), request.clone());
        let made = async move { (number, people::make(handle, key, request).await) };
        let call = self.calls.spawn(made);
        self.under_way.push(UnderWay { call, key: name, asked });
    }

    /// The store is slow, and somebody does not wait for an answer any more; what was on its way arrives all the
    /// same. What was read before must not be taken for true then.
    async fn lose_patience(&mut self) -> Result<String> {
        self.store.set_mood(Mood { slow: 100, ..Mood::default() });
        self.think();
        self.pass(LANDING_MS_MAX).await?;
        self.under_way.retain(|it| !it.call.is_finished());
        let Some(UnderWay { call, key, asked }) = self.under_way.pop() else {
            return Ok("nobody waits".to_owned());
        };
        self.store.set_landing(true);
        call.abort();
        while !call.is_finished() {
            yield_now().await;
        }
        self.store.set_landing(false);
        self.summary.hung_up += 1;
        self.in_doubt.push((key, asked));
        self.store.set_mood(Mood::default());
        self.glance();
        self.pass(2 * LANDING_MS_MAX).await?;
        let read = self.read()?;
        Ok(format!("somebody hangs up, {read}"))
    }

    /// Everything that must be so.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(wrong) = self.hands.take_wrong() {
            anyhow::bail!(wrong);
        }
        let hands = self.hands.clone();
        let tries = hands.tries();
        self.audit.follow(&tries)?;
        let passed = u128::try_from(self.clock.passed_us()).unwrap_or_default();
        while let Some(answered) = self.calls.try_join_next() {
            let Ok((process, made)) = answered else { continue };
            let promise = self.audit.check_promise(&made, &tries, process, passed);
            promise.with_context(|| format!("{:?} ({})", made.request, made.key))?;
            match &made.result {
                Ok(_) => self.summary.acknowledged += 1,
                Err(_) if made.is_in_doubt() => {
                    self.summary.in_doubt += 1;
                    self.in_doubt.push((made.key, (made.by, made.request)));
                }
                Err(_) => self.summary.refused += 1,
            }
        }
        self.summary.tries = tries.len() as u64;
        Ok(())
    }
}
