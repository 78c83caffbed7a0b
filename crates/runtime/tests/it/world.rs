//! An engine whose clock only the test moves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents::{AgentBackend, Attempt, AttemptResult, Failure, Outcome, Output, Reason};
use api::{AgentAdd, ApiRequest, Call, ConfigValue, Error, Event, LedgerTail, send};
use futures::future::{BoxFuture, FutureExt};
use kernel::authority::Lease;
use kernel::budget::{Limits, Usage};
use kernel::posture::Flags;
use kernel::run::FailureKind;
use kernel::{Actor, Role, Timestamp};
use runtime::{
    Channel, Clock, Components, ConfigReader, Engine, NoTools, ReloadableConfig, Reread,
    ResolvedCall, Retention, ScheduledCall, Settings, Tools,
};
use store::Memory;
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The first instant of 2026-10.
pub(crate) const OCTOBER_US: i64 = 1_790_812_800_000_000;
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// The time of day, which the test sets, and the elapsed monotonic time.
#[derive(Debug)]
pub(crate) struct TestClock(watch::Sender<(i64, Duration)>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.borrow().0)
    }

    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut shown = self.0.subscribe();
        async move {
            let start = shown.borrow().0;
            let reached = shown.wait_for(|(now, _)| at.as_micros() <= *now || *now < start).await;
            reached.map(drop).unwrap_or_default();
        }
        .boxed()
    }

    fn steady(&self) -> Option<Duration> {
        Some(self.0.borrow().1)
    }
}

/// Does what each prompt says: `fail`, `fail for good`, `lose` (an indeterminate failure), `hang` until it is stopped,
/// `wait` until it is released, or `use N` tokens. Any other prompt succeeds. Its output is the prompt.
#[derive(Debug)]
pub(crate) struct ScriptedBackend {
    pub(crate) started: Mutex<Vec<Attempt>>,
    released: Semaphore,
}

impl Default for ScriptedBackend {
    fn default() -> ScriptedBackend {
        ScriptedBackend { started: Mutex::default(), released: Semaphore::new(0) }
    }
}

impl ScriptedBackend {
    /// Lets `count` present or later `wait` attempts end.
    pub(crate) fn release(&self, count: usize) {
        self.released.add_permits(count);
    }
}

impl AgentBackend for ScriptedBackend {
    fn run(&self, attempt: Attempt, stop: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        async move {
            let (prompt, text) = (attempt.prompt.clone(), attempt.prompt.clone());
            self.started.lock().unwrap().push(attempt);
            let failed = |kind| {
                let (reason, message) = (Reason::Script, "scripted failure".to_owned());
                Outcome::Failed(Failure { reason, message, kind })
            };
            let outcome = match prompt.as_str() {
                "fail" => failed(FailureKind::Transient { wait_us: 0 }),
                "fail for good" => failed(FailureKind::Permanent),
                "lose" => failed(FailureKind::Indeterminate),
                "hang" => {
                    stop.cancelled().await;
                    Outcome::Cancelled
                }
                "wait" => {
                    self.released.acquire().await.unwrap().forget();
                    Outcome::Done
                }
                _ => Outcome::Done,
            };
            let bytes = text.len() as u64;
            let usage = prompt
                .strip_prefix("use ")
                .map(|tokens| Usage { input_tokens: tokens.parse().unwrap(), output_tokens: 1 });
            AttemptResult { outcome, output: Output { text, bytes, file: None }, usage }
        }
        .boxed()
    }
}

pub(crate) struct World {
    pub(crate) backend: Arc<ScriptedBackend>,
    pub(crate) data: TempDir,
    pub(crate) store: Arc<Memory>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) engine: Engine,
    /// The operator's rules; takes effect at the next [`World::reopen`].
    pub(crate) policy: String,
    /// Takes effect at the next [`World::reopen`].
    pub(crate) lease: Lease,
    pub(crate) limits: Limits,
    /// Delivers notifications from the next [`run_engine`] on.
    pub(crate) channel: Option<Arc<dyn Channel>>,
    pub(crate) tools: Arc<SwitchedTools>,
    /// What a reload reads; `None`: the engine cannot reload.
    pub(crate) files: Option<Arc<Files>>,
}

impl World {
    pub(crate) async fn new() -> World {
        World::with_pages_at(None).await
    }

    /// A world whose engine knows that a daemon serves pages.
    pub(crate) async fn with_http() -> World {
        World::with_pages_at(Some("http://127.0.0.1:7400".to_owned())).await
    }

    async fn with_pages_at(http_url: Option<String>) -> World {
        let data = tempfile::tempdir().unwrap();
        let (store, clock) = (
            Arc::new(Memory::new()),
            Arc::new(TestClock(watch::Sender::new((OCTOBER_US, Duration::ZERO)))),
        );
        let (policy, lease, limits) = (String::new(), Lease::default(), Limits::default());
        let (backend, tools): (Arc<ScriptedBackend>, _) =
            (Arc::default(), Arc::<SwitchedTools>::default());
        let components = Components {
            backend: backend.clone(),
            tools: tools.clone(),
            http_url,
            ..Components::new(store.clone(), clock.clone())
        };
        let engine = open(&data, components, (&policy, lease, limits)).await.unwrap();
        let (channel, files) = (None, None);
        World { backend, data, store, clock, engine, policy, lease, limits, channel, tools, files }
    }

    /// Opens an empty store in the same data directory.
    pub(crate) async fn replace_store(&mut self) -> Result<(), Error> {
        self.store = Arc::new(Memory::new());
        self.reopen().await
    }

    /// Opens the same data again.
    pub(crate) async fn reopen(&mut self) -> Result<(), Error> {
        let World { data, policy, lease, limits, .. } = self;
        let components = Components {
            backend: self.backend.clone(),
            tools: self.tools.clone(),
            config_reader: self.files.clone().map(|files| files as Arc<dyn ConfigReader>),
            ..Components::new(self.store.clone(), self.clock.clone())
        };
        self.engine = open(data, components, (policy, *lease, *limits)).await?;
        Ok(())
    }

    pub(crate) fn channels(&self) -> Vec<Arc<dyn Channel>> {
        self.channel.iter().cloned().collect()
    }

    pub(crate) fn set_tools(&self, tools: Arc<dyn Tools>) {
        *self.tools.0.lock().unwrap() = tools;
    }

    /// Lets time pass until then, or sets the clock back.
    pub(crate) fn set_now(&self, micros: i64) {
        self.clock.0.send_modify(|(now, steady)| {
            *steady += Duration::from_micros(u64::try_from(micros - *now).unwrap_or_default());
            *now = micros;
        });
    }

    /// Sets the clock; no time passes.
    pub(crate) fn set_clock(&self, micros: i64) {
        self.clock.0.send_modify(|(now, _)| *now = micros);
    }

    pub(crate) async fn send<R: ApiRequest>(&self, request: R) -> Result<R::Response, Error> {
        self.send_as(Role::Operator, request).await
    }

    pub(crate) async fn send_as<R: ApiRequest>(
        &self,
        role: Role,
        request: R,
    ) -> Result<R::Response, Error> {
        let actor = Actor::token_holder("olga".parse().unwrap(), role);
        send(&self.engine.handle(actor), request).await
    }

    pub(crate) async fn send_with_key<R: ApiRequest>(
        &self,
        key: &str,
        request: R,
    ) -> Result<R::Response, Error> {
        let actor = Actor::token_holder("olga".parse().unwrap(), Role::Operator);
        let call = Call { key: Some(key.to_owned()), ..Call::new(request) };
        call.send::<R>(&self.engine.handle(actor)).await
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        let request = LedgerTail { after: Some(0), limit: Some(1_000), ..LedgerTail::default() };
        self.send(request).await.unwrap().events
    }

    pub(crate) async fn kinds(&self) -> Vec<String> {
        self.events().await.into_iter().map(|event| event.kind).collect()
    }
}

/// Runs the engine until `meanwhile` ends, then stops it.
pub(crate) async fn run_engine(world: &World, meanwhile: impl Future<Output = ()>) {
    let (stop, stop_requested) = oneshot::channel::<()>();
    let stop_reason = async {
        let _ = stop_requested.await;
        "stop requested".to_owned()
    };
    let story = async {
        meanwhile.await;
        drop(stop);
    };
    let running = world.engine.run(&[], world.channels(), stop_reason);
    let (result, ()) = futures::future::join(running, story).await;
    result.unwrap();
}

async fn open(
    data: &TempDir,
    components: Components,
    (policy, lease, limits): (&str, Lease, Limits),
) -> Result<Engine, Error> {
    let settings = Settings {
        data: data.path().to_owned(),
        version: "test".into(),
        posture: kernel::posture::Posture::Staging,
        checkpoint_copy: Some(data.path().join("elsewhere.log")),
        heartbeat: Duration::from_secs(60),
        drain: Duration::from_secs(5),
        secret_variables: vec!["MIDWATCH_TOKEN".to_owned()],
    };
    Engine::open(components, settings, reloadable_config(policy, lease, limits)).await
}

pub(crate) fn reloadable_config(policy: &str, lease: Lease, limits: Limits) -> ReloadableConfig {
    ReloadableConfig {
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
        retention: Retention::default(),
    }
}

/// Tools that a test can replace while the engine is open.
#[derive(Debug)]
pub(crate) struct SwitchedTools(Mutex<Arc<dyn Tools>>);

impl Default for SwitchedTools {
    fn default() -> SwitchedTools {
        SwitchedTools(Mutex::new(Arc::new(NoTools)))
    }
}

impl SwitchedTools {
    fn current(&self) -> Arc<dyn Tools> {
        self.0.lock().unwrap().clone()
    }
}

impl Tools for SwitchedTools {
    fn is_known(&self, tool: &str) -> bool {
        self.current().is_known(tool)
    }

    fn resolve(&self, tool: &str, payload: &str) -> Result<ResolvedCall, Error> {
        self.current().resolve(tool, payload)
    }

    fn call<'a>(&'a self, call: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>> {
        let tools = self.current();
        async move { tools.call(call).await }.boxed()
    }
}

/// What a reload reads.
#[derive(Debug)]
pub(crate) struct Files(pub(crate) Mutex<ReloadableConfig>);

impl Files {
    /// Reopens the world with its present configuration, which can be reloaded from then on.
    pub(crate) async fn of(world: &mut World) -> Arc<Files> {
        let now = reloadable_config(&world.policy, world.lease, world.limits);
        let files = Arc::new(Files(Mutex::new(now)));
        world.files = Some(files.clone());
        world.reopen().await.unwrap();
        files
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ReloadableConfig)) {
        change(&mut self.0.lock().unwrap());
    }
}

impl ConfigReader for Files {
    fn read(&self) -> Result<Reread, Error> {
        Ok(Reread {
            config: self.0.lock().unwrap().clone(),
            waiting: Vec::new(),
            overridden: Vec::new(),
            channels: Vec::new(),
        })
    }
}

pub(crate) fn builtin(name: &str) -> AgentAdd {
    AgentAdd { name: name.to_owned(), backend: "builtin".into(), ..AgentAdd::default() }
}
