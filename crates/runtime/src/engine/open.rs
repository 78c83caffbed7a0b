//! Opening a data directory: the key and first entry of a new ledger, the identity of an existing one, and the one place
//! that builds every part of an [`Engine`].

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use agents::{AgentBackend, NoBackend};
use api::{Code, Error, ProgressSink};
use kernel::authority::Authority;
use kernel::installation::{Event as InstallationEvent, Genesis, Identity, LEDGER_FORMAT};
use kernel::posture::{self, Posture};
use kernel::{Actor, Counter, EventBody, Noun};
use ledger::SigningKey;
use metrics::Registry;
use store::Store;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::authorize::approval_files::ApprovalFiles;
use crate::authorize::approvals::Approvals;
use crate::authorize::audit::{Audit, Refusals};
use crate::authorize::authenticate::Authenticator;
use crate::authorize::authority::AuthorityControl;
use crate::authorize::budgets::Budgets;
use crate::authorize::devices::Devices;
use crate::authorize::policy::Policy;
use crate::authorize::references::References;
use crate::authorize::scope::Scope;
use crate::authorize::stop_markers::StopMarkers;
use crate::authorize::stop_switch::StopSwitch;
use crate::authorize::tokens::{Tokens, has_maintainer};
use crate::authorize::tool_catalog::{NoTools, ToolCatalog, Tools};
use crate::clock::{Clock, Time};
use crate::commit::codec;
use crate::commit::identity::{commit_identity, identity as stored_identity};
use crate::commit::transaction::{TransactionParts, Transactions};
use crate::config::{ActiveConfig, Config, ReloadableConfig};
use crate::damage::{self, WriteGuard};
use crate::dispatch::dispatcher::Dispatcher;
use crate::engine::after_commit::AfterCommit;
use crate::engine::clock_monitor::ClockMonitor;
use crate::engine::lifecycle::Lifecycle;
use crate::engine::reload::{ConfigReader, Reloader};
use crate::engine::startup_checks::ConfiguredSecrets;
use crate::engine::{Engine, Parts};
use crate::errors::{self, internal};
use crate::execute::executor::Executor;
use crate::execute::tool_call::ToolCalls;
use crate::execute::tool_metrics::ToolMetrics;
use crate::installation::{Installation, Settings};
use crate::ledger::checkpoints::{self, Checkpoints};
use crate::ledger::export::{Exports, FinishedMonths};
use crate::ledger::feed::Feed;
use crate::ledger::integrity_check::IntegrityCheck;
use crate::ledger::rebuild::rebuild;
use crate::node::NodeId;
use crate::notify::{Deliveries, Notifier};
use crate::schedule::compiled::{ScheduleCache, Schedules};
use crate::schedule::dependents::Dependents;
use crate::schedule::timer::{Timer, WakeSignal};
use crate::schedule::zones::Zones;
use crate::secrets::key_files;
use crate::secrets::sealing::Sealing;
use crate::shutdown::Shutdown;

/// What the caller of [`Engine::open`] supplies.
#[derive(Debug)]
pub struct Components {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// Runs the attempts of agents.
    pub backend: Arc<dyn AgentBackend>,
    /// The tools that schedules may call.
    pub tools: Arc<dyn Tools>,
    /// The base URL of the pages for people, without a slash at its end.
    pub http_url: Option<String>,
    /// Where secrets are read, for the check that none has two purposes.
    pub secrets: Option<ConfiguredSecrets>,
    /// Reads configuration and rules again. Only a daemon can reload.
    pub config_reader: Option<Arc<dyn ConfigReader>>,
}

impl Components {
    /// A store and a clock, and nothing that reaches outside: no agents, no tools, no secrets.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Components {
        Components {
            store,
            clock,
            backend: Arc::new(NoBackend),
            tools: Arc::new(NoTools),
            http_url: None,
            secrets: None,
            config_reader: None,
        }
    }
}

impl Engine {
    /// Opens a data directory whose lock the caller holds. A new one gets its key and the first entry of its ledger.
    pub async fn open(
        components: Components,
        settings: Settings,
        config: ReloadableConfig,
    ) -> Result<Engine, Error> {
        let store = Arc::clone(&components.store);
        let mut active = ActiveConfig::load(settings.posture, &settings.data, config.clone())?;
        checkpoints::check_not_rewound(&*store, &settings).await?;
        let is_empty = store.head().await.map_err(errors::store)?.size() == 0;
        let write_guard = WriteGuard::new(Arc::clone(&store), &settings.data);
        let time = Time::new(Arc::clone(&store), Arc::clone(&components.clock));
        let (identity, signing_key) = match is_empty && write_guard.stopped_writing().is_none() {
            true => create(&*store, &time, &settings).await?,
            false => load(&*store, &time, &settings).await?,
        };
        time.set_accepted(identity.clock);
        let posture = effective_posture(&*store, &identity.instance, settings.posture).await?;
        if posture != settings.posture {
            active = ActiveConfig::load(posture, &settings.data, config)?;
        }
        let installation = Installation {
            instance: identity.instance,
            signing_key,
            posture,
            location: store.location_id(),
            settings,
            http_url: components.http_url.clone(),
        };
        let node = NodeId::new(&installation.settings.data);
        let base = Base {
            time: Arc::new(time),
            installation: Arc::new(installation),
            write_guard: Arc::new(write_guard),
            config: Arc::new(Config::new(active)),
            node,
        };
        let engine = Engine(Arc::new(build(components, base)));
        engine.stop_switch.obey_markers(engine.time.now());
        checkpoints::check_newest(&*engine.store, &engine.installation).await?;
        Ok(engine)
    }
}

/// What every part may need.
struct Base {
    time: Arc<Time>,
    installation: Arc<Installation>,
    write_guard: Arc<WriteGuard>,
    config: Arc<Config>,
    node: NodeId,
}

/// Builds every part from those above it.
fn build(components: Components, base: Base) -> Parts {
    let Components { store, backend, tools, secrets, config_reader, .. } = components;
    let Base { time, installation, write_guard, config, node } = base;
    let sealing = Arc::new(Sealing::new(&installation.settings.data));
    let dependents = Arc::new(Dependents { time: time.clone() });
    let dispatcher = Arc::new(Dispatcher::default());
    let schedule_cache = Arc::new(ScheduleCache::default());
    let metrics = Arc::new(Registry::default());
    let wake = Arc::new(WakeSignal::default());
    let (approvals_changed, authority_changed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let transactions = Arc::new(Transactions::new(TransactionParts {
        store: store.clone(),
        time: time.clone(),
        config: config.clone(),
        write_guard: write_guard.clone(),
        instance: installation.instance.clone(),
        consequences: dependents.clone(),
        observer: Arc::new(AfterCommit {
            dispatcher: dispatcher.clone(),
            schedule_cache: schedule_cache.clone(),
            wake: wake.clone(),
            approvals_changed: approvals_changed.clone(),
            authority_changed: authority_changed.clone(),
            metrics: metrics.clone(),
        }),
        metrics: metrics.clone(),
    }));
    let integrity = Arc::new(IntegrityCheck {
        store: store.clone(),
        time: time.clone(),
        write_guard: write_guard.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        found: Mutex::new("not run".to_owned()),
        has_failed: AtomicBool::new(false),
    });
    let checkpoints = Arc::new(Checkpoints {
        store: store.clone(),
        write_guard: write_guard.clone(),
        installation: installation.clone(),
        integrity: integrity.clone(),
        signing: tokio::sync::Mutex::default(),
        copy_confirmed: tokio::sync::OnceCell::new(),
        is_copied: AtomicBool::new(true),
    });
    let exports = Arc::new(Exports {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        exporting: tokio::sync::Mutex::new(FinishedMonths::none()),
    });
    let feed = Arc::new(Feed {
        instance: installation.instance.clone(),
        store: store.clone(),
        transactions: transactions.clone(),
    });
    let tools = Arc::new(ToolCatalog { sealing: sealing.clone(), tools });
    let tokens = Arc::new(Tokens { store: store.clone() });
    let audit = Arc::new(Audit {
        time: time.clone(),
        transactions: transactions.clone(),
        refusals: Refusals::default(),
    });
    let authenticator = Arc::new(Authenticator {
        store: store.clone(),
        config: config.clone(),
        transactions: transactions.clone(),
        tokens: tokens.clone(),
        audit: audit.clone(),
    });
    let devices = Arc::new(Devices {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        authenticator: authenticator.clone(),
        audit: audit.clone(),
        links: Mutex::default(),
        used: Mutex::default(),
    });
    let policy = Arc::new(Policy {
        time: time.clone(),
        config: config.clone(),
        installation: installation.clone(),
        backend: backend.clone(),
        sealing: sealing.clone(),
    });
    let scope = Arc::new(Scope {
        config: config.clone(),
        transactions: transactions.clone(),
        policy: policy.clone(),
        tools: tools.clone(),
    });
    let budgets = Arc::new(Budgets {
        store: store.clone(),
        time: time.clone(),
        config: config.clone(),
        transactions: transactions.clone(),
    });
    let approvals = Arc::new(Approvals {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        changed: approvals_changed,
    });
    let stop_switch = Arc::new(StopSwitch {
        dispatcher: dispatcher.clone(),
        backend: backend.clone(),
        markers: StopMarkers::new(&installation.settings.data),
        unrecorded: watch::Sender::new(None),
    });
    let authority = Arc::new(AuthorityControl {
        store: store.clone(),
        time: time.clone(),
        config: config.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        dispatcher: dispatcher.clone(),
        backend: backend.clone(),
        stop_switch: stop_switch.clone(),
        last_known: Mutex::default(),
        changed: authority_changed,
        approvals: approvals.clone(),
        released_after: Mutex::default(),
    });
    let approval_files = Arc::new(ApprovalFiles {
        store: store.clone(),
        config: config.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        approvals: approvals.clone(),
        authority: authority.clone(),
        audit: audit.clone(),
    });
    let tool_calls = Arc::new(ToolCalls { scope: scope.clone(), tools: tools.clone() });
    let tool_metrics = Arc::new(ToolMetrics {
        time: time.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        tools: tools.clone(),
        unwritten: Mutex::default(),
        metrics: metrics.clone(),
    });
    let shutdown = Arc::<Shutdown>::default();
    let executor = Arc::new(Executor {
        stop_switch: stop_switch.clone(),
        store: store.clone(),
        time: time.clone(),
        config: config.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        sealing: sealing.clone(),
        backend: backend.clone(),
        dispatcher: dispatcher.clone(),
        policy: policy.clone(),
        budgets: budgets.clone(),
        approvals: approvals.clone(),
        authority: authority.clone(),
        tool_calls: tool_calls.clone(),
        tool_metrics: tool_metrics.clone(),
        node,
        shutdown: shutdown.clone(),
    });
    let schedules =
        Arc::new(Schedules { transactions: transactions.clone(), cache: schedule_cache });
    let timer = Arc::new(Timer {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        schedules: schedules.clone(),
        executor: executor.clone(),
        wake,
    });
    let zones = Arc::new(Zones {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        schedules,
        installation: installation.clone(),
    });
    let notifier = Arc::new(Notifier {
        store: store.clone(),
        time: time.clone(),
        config: config.clone(),
        installation: installation.clone(),
        transactions: transactions.clone(),
        deliveries: Deliveries::default(),
        metrics: metrics.clone(),
        channels: tokio::sync::watch::Sender::new(Vec::new()),
    });
    let clock_monitor = ClockMonitor {
        store: store.clone(),
        time: time.clone(),
        transactions: transactions.clone(),
        installation: installation.clone(),
        accepts_clock: AtomicBool::new(false),
    };
    let references = References { store: store.clone(), scope: scope.clone() };
    Parts {
        store,
        time,
        installation,
        write_guard,
        config,
        sealing,
        backend,
        secrets,
        dependents,
        dispatcher,
        transactions,
        integrity,
        checkpoints,
        exports,
        feed,
        tools,
        tokens,
        audit,
        authenticator,
        devices,
        policy,
        references,
        scope,
        budgets,
        approvals,
        stop_switch,
        authority,
        approval_files,
        tool_calls,
        tool_metrics,
        executor,
        timer,
        zones,
        notifier,
        clock_monitor,
        lifecycle: Lifecycle::default(),
        shutdown,
        reloader: Reloader::new(config_reader),
        agent_tests: CancellationToken::new(),
        metrics,
    }
}

/// Writes the first entry of a new ledger. A key that exists already is from a start that was cut short.
async fn create(
    store: &dyn Store,
    time: &Time,
    settings: &Settings,
) -> Result<(Identity, SigningKey), Error> {
    let key = match key_files::read(&settings.data)? {
        Some(key) => key,
        None => key_files::create(&settings.data, &key_files::new_instance())?,
    };
    let instance = key_files::instance(&key)?;
    let public = key.verifying_key().to_text();
    let tzdata = Some(calendar::tzdata_version().to_owned());
    let genesis = Genesis {
        instance: instance.clone(),
        key: public.clone(),
        format: LEDGER_FORMAT,
        tzdata: tzdata.clone(),
    };
    let body = EventBody::Installation(instance.clone(), InstallationEvent::Genesis(genesis));
    commit_identity(store, time.now(), body).await?;
    Ok((Identity { instance, key: public, tzdata, clock: None }, key))
}

/// The identity of an existing ledger and the key that belongs to it. If the tables do not have it or cannot be read, they
/// are rebuilt.
async fn load(
    store: &dyn Store,
    time: &Time,
    settings: &Settings,
) -> Result<(Identity, SigningKey), Error> {
    let agents = Counter::Objects(Noun::Agent).name();
    let identity = match (stored_identity(store).await, store.counter(&agents).await) {
        (Ok(Some(identity)), Ok(_)) => identity,
        _ => {
            if let Some(reason) = damage::read_verdict(&settings.data) {
                return Err(errors::store(store::Error::Damaged(reason)));
            }
            let reason = "the tables did not say whose ledger this is, or could not be read";
            rebuild(store, &Actor::system(), time.now(), reason, &ProgressSink::default()).await?;
            let missing = || internal("the ledger does not say whose it is");
            stored_identity(store).await?.ok_or_else(missing)?
        }
    };
    let wrong = |what: String| {
        Error::new(Code::KeyMissing, what)
            .hint("restore the key file of this data directory from your copy")
    };
    let path = key_files::path(&settings.data);
    let key = key_files::read(&settings.data)?
        .ok_or_else(|| wrong(format!("the signing key `{}` is missing", path.display())))?;
    match key.verifying_key().to_text() == identity.key {
        true => Ok((identity, key)),
        false => Err(wrong(format!("`{}` is not the key that signs this ledger", path.display()))),
    }
}

/// The posture that applies, whatever configuration this process has: a stricter one stays until a maintainer has left it.
async fn effective_posture(
    store: &dyn Store,
    instance: &str,
    configured: Posture,
) -> Result<Posture, Error> {
    let found = store.load(Noun::Authority.name(), instance).await.map_err(errors::store)?;
    let row = codec::decode_row(Noun::Authority, found)?;
    let last = row.get::<Authority>().and_then(|authority| authority.posture);
    match posture::effective_posture(configured, last) {
        other if other != configured && has_maintainer(store).await? => Ok(other),
        _ => Ok(configured),
    }
}
