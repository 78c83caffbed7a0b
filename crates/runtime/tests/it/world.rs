//! A watch whose time stands still until the test moves it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents::{AgentBackend, Ended, Failure, Outcome, Output, Reason, Work};
use api::{AgentAdd, Ask, Call, ConfigValue, Error, Event, LedgerTail, ask};
use futures::future::{BoxFuture, FutureExt};
use kernel::authority::Lease;
use kernel::budget::{Limits, Usage};
use kernel::posture::Flags;
use kernel::run::Kind;
use kernel::{Actor, Role, Timestamp};
use runtime::{Clock, Messenger, Reader, Reread, Settings, Standing, Engine};
use store::{Memory, Store};
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The first instant of 2026-10.
pub(crate) const OCTOBER_US: i64 = 1_790_812_800_000_000;
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// What it shows, and how much time has passed by a clock that nobody sets.
#[derive(Debug)]
pub(crate) struct SetClock(watch::Sender<(i64, Duration)>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.borrow().0)
    }

    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut shown = self.0.subscribe();
        async move {
            let begun = shown.borrow().0;
            let reached = shown.wait_for(|(now, _)| at.as_micros() <= *now || *now < begun).await;
            reached.map(drop).unwrap_or_default();
        }
        .boxed()
    }

    fn steady(&self) -> Option<Duration> {
        Some(self.0.borrow().1)
    }
}

/// Does what each prompt says: `fail`, `fail for good`, `hang` until it is told to stop, `wait` until it
/// is let go, or anything else, which it says again.
#[derive(Debug)]
pub(crate) struct Hands {
    pub(crate) begun: Mutex<Vec<Work>>,
    let_go: Semaphore,
}

impl Default for Hands {
    fn default() -> Hands {
        Hands { begun: Mutex::default(), let_go: Semaphore::new(0) }
    }
}

impl Hands {
    /// So many of those that wait may end, also later ones.
    pub(crate) fn let_go(&self, count: usize) {
        self.let_go.add_permits(count);
    }
}

impl AgentBackend for Hands {
    fn work(&self, work: Work, stop: CancellationToken) -> BoxFuture<'_, Ended> {
        async move {
            let (prompt, text) = (work.prompt.clone(), work.prompt.clone());
            self.begun.lock().unwrap().push(work);
            let failed = |kind| {
                let (reason, message) = (Reason::Script, "it said so".to_owned());
                Outcome::Failed(Failure { reason, message, kind })
            };
            let outcome = match prompt.as_str() {
                "fail" => failed(Kind::Passing { wait_us: 0 }),
                "fail for good" => failed(Kind::Permanent),
                "lose" => failed(Kind::Doubtful),
                "hang" => {
                    stop.cancelled().await;
                    Outcome::Cancelled
                }
                "wait" => {
                    self.let_go.acquire().await.unwrap().forget();
                    Outcome::Done
                }
                _ => Outcome::Done,
            };
            let bytes = text.len() as u64;
            let usage = prompt
                .strip_prefix("use ")
                .map(|tokens| Usage { input_tokens: tokens.parse().unwrap(), output_tokens: 1 });
            Ended { outcome, output: Output { text, bytes, file: None }, usage }
        }
        .boxed()
    }
}

pub(crate) struct World {
    pub(crate) hands: Arc<Hands>,
    pub(crate) data: TempDir,
    pub(crate) store: Arc<Memory>,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) watch: Engine,
    /// The operator's own rules, from the next opening on.
    pub(crate) policy: String,
    /// From the next opening on.
    pub(crate) lease: Lease,
    pub(crate) limits: Limits,
    /// Who calls humans, from the next keeping on.
    pub(crate) messenger: Option<Arc<dyn Messenger>>,
}

impl World {
    pub(crate) async fn new() -> World {
        let data = tempfile::tempdir().unwrap();
        let (store, clock) = (
            Arc::new(Memory::new()),
            Arc::new(SetClock(watch::Sender::new((OCTOBER_US, Duration::ZERO)))),
        );
        let (policy, lease, limits) = (String::new(), Lease::default(), Limits::default());
        let watch = open(&data, &store, &clock, (&policy, lease, limits)).await.unwrap();
        let hands = Arc::default();
        World { hands, data, store, clock, watch, policy, lease, limits, messenger: None }
    }

    /// Another store in the same place.
    pub(crate) async fn lose_the_store(&mut self) -> Result<(), Error> {
        self.store = Arc::new(Memory::new());
        self.reopen().await
    }

    /// The same data, opened again.
    pub(crate) async fn reopen(&mut self) -> Result<(), Error> {
        let World { data, store, clock, policy, lease, limits, .. } = self;
        self.watch = open(data, store, clock, (policy, *lease, *limits)).await?;
        Ok(())
    }

    pub(crate) fn doer(&self) -> Arc<dyn AgentBackend> {
        self.hands.clone()
    }

    pub(crate) fn messengers(&self) -> Vec<Arc<dyn Messenger>> {
        self.messenger.iter().cloned().collect()
    }

    /// Time passes until then, or the clock is set back.
    pub(crate) fn set_now(&self, micros: i64) {
        self.clock.0.send_modify(|(now, steady)| {
            *steady += Duration::from_micros(u64::try_from(micros - *now).unwrap_or_default());
            *now = micros;
        });
    }

    /// Somebody sets the clock.
    pub(crate) fn set_clock(&self, micros: i64) {
        self.clock.0.send_modify(|(now, _)| *now = micros);
    }

    pub(crate) async fn ask<R: Ask>(&self, request: R) -> Result<R::Answer, Error> {
        self.ask_as(Role::Operator, request).await
    }

    pub(crate) async fn ask_as<R: Ask>(&self, role: Role, request: R) -> Result<R::Answer, Error> {
        let actor = Actor { name: "somebody".into(), role };
        ask(&self.watch.handle(actor), request).await
    }

    pub(crate) async fn ask_with_key<R: Ask>(
        &self,
        key: &str,
        request: R,
    ) -> Result<R::Answer, Error> {
        let actor = Actor { name: "somebody".into(), role: Role::Operator };
        let call = Call { key: Some(key.to_owned()), ..Call::new(request) };
        call.ask::<R>(&self.watch.handle(actor)).await
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        let asked = LedgerTail { after: Some(0), limit: Some(1_000), wait_ms: 0 };
        self.ask(asked).await.unwrap().events
    }

    pub(crate) async fn kinds(&self) -> Vec<String> {
        self.events().await.into_iter().map(|event| event.kind).collect()
    }
}

/// Keeps the watch while `meanwhile` goes on, then stops it.
pub(crate) async fn keep(world: &World, meanwhile: impl Future<Output = ()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let told = async {
        let _ = stopped.await;
        "told to".to_owned()
    };
    let stopping = async {
        meanwhile.await;
        drop(stop);
    };
    let keeping = world.watch.keep(world.doer(), world.messengers(), told);
    let (kept, ()) = futures::future::join(keeping, stopping).await;
    kept.unwrap();
}

async fn open(
    data: &TempDir,
    store: &Arc<Memory>,
    clock: &Arc<SetClock>,
    (policy, lease, limits): (&str, Lease, Limits),
) -> Result<Engine, Error> {
    let settings = Settings {
        data: data.path().to_owned(),
        version: "test".into(),
        posture: kernel::ruling::Posture::Staging,
        checkpoint_copy: Some(data.path().join("elsewhere.log")),
        heartbeat: Duration::from_secs(60),
        drain: Duration::from_secs(5),
        secret_variables: vec!["MIDWATCH_TOKEN".to_owned()],
    };
    let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (store.clone(), clock.clone());
    Engine::open(store, clock, settings, standing(policy, lease, limits)).await
}

pub(crate) fn standing(policy: &str, lease: Lease, limits: Limits) -> Standing {
    Standing {
        policy: vec![("policy.toml".to_owned(), policy.to_owned())],
        keys: vec![ConfigValue {
            key: "lease.ask_after".to_owned(),
            value: lease.ask_after_us.to_string(),
            origin: "a test".to_owned(),
        }],
        config_hash: "none".into(),
        lease,
        limits,
        flags: Flags::default(),
    }
}

/// What is read at a reload, as the test sets it.
#[derive(Debug)]
pub(crate) struct Files(pub(crate) Mutex<Standing>);

impl Files {
    /// For a world, with what it has now.
    pub(crate) fn of(world: &World) -> Arc<Files> {
        let now = standing(&world.policy, world.lease, world.limits);
        let files = Arc::new(Files(Mutex::new(now)));
        world.watch.reread_from(files.clone());
        files
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.0.lock().unwrap());
    }
}

impl Reader for Files {
    fn read(&self) -> Result<Reread, Error> {
        Ok(Reread {
            standing: self.0.lock().unwrap().clone(),
            waiting: Vec::new(),
            overridden: Vec::new(),
        })
    }
}

pub(crate) fn builtin(name: &str) -> AgentAdd {
    AgentAdd { name: name.to_owned(), backend: "builtin".into(), ..AgentAdd::default() }
}
