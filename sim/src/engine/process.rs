//! A process of a simulation: an open engine and the task that runs it, until it stops or dies.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::Error;
use futures::future::pending;
use kernel::budget::Limits;
use kernel::money::Money;
use runtime::{Components, Engine, ReloadableConfig, Settings};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::clock::SimClock;
use super::faults::FaultyStore;
use super::generate::POLICY;
use super::scripted_backend::{ScriptedBackend, backend_of_process};

/// Low enough that a simulation reaches them.
pub(super) const LIMITS: Limits = Limits {
    runs: 60,
    runs_per_agent: 40,
    asks_per_agent: 30,
    pending_per_agent: 3,
    denied_for_us: 600_000_000,
    tokens: 12_000,
    tokens_per_agent: 8_000,
    money: micros(20_000),
    money_per_agent: micros(12_000),
    changes_per_agent: 0,
    bytes_per_agent: 0,
};

const fn micros(micros: i64) -> Money {
    match Money::from_micros(micros) {
        Some(money) => money,
        None => Money::ZERO,
    }
}

#[derive(Debug)]
pub(super) struct Process {
    /// Counted from 1 in each simulation.
    pub(super) number: u64,
    pub(super) engine: Engine,
    running: JoinSet<Result<(), Error>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Process {
    /// Opens the engine without faults and delays; running it has both.
    pub(super) async fn start(
        number: u64,
        data: &Path,
        store: &Arc<FaultyStore>,
        clock: &Arc<SimClock>,
        backend: &Arc<ScriptedBackend>,
    ) -> Result<Process> {
        let settings = Settings {
            data: data.to_owned(),
            version: "sim".to_owned(),
            posture: kernel::posture::Posture::Staging,
            checkpoint_copy: None,
            heartbeat: Duration::ZERO,
            drain: Duration::from_secs(5),
            secret_variables: Vec::new(),
        };
        let config = ReloadableConfig {
            policy: vec![(runtime::POLICY_FILE.to_owned(), POLICY.to_owned())],
            keys: Vec::new(),
            config_hash: "none".to_owned(),
            lease: kernel::authority::Lease::default(),
            limits: LIMITS,
            flags: kernel::posture::Flags::default(),
            retention: runtime::Retention::default(),
        };
        let components = Components {
            backend: backend_of_process(backend, number),
            ..Components::new(store.clone(), clock.clone())
        };
        store.set_instant(true);
        let opened = Engine::open(components, settings, config).await;
        store.set_instant(false);
        let engine = opened?;
        let (stop, stop_requested) = oneshot::channel();
        let mut running = JoinSet::new();
        let own = engine.clone();
        running.spawn(async move {
            let stop_reason = async {
                match stop_requested.await {
                    Ok(()) => "stop requested".to_owned(),
                    Err(_) => pending().await,
                }
            };
            own.run(&[], vec![], stop_reason).await
        });
        Ok(Process { number, engine, running, stop: Some(stop) })
    }

    /// Whether it ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.running.try_join_next().is_some() || self.running.is_empty()
    }

    /// Kills it at once.
    pub(super) async fn die(mut self) {
        self.running.shutdown().await;
    }

    pub(super) fn request_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits until it ends.
    pub(super) async fn wait(&mut self) -> Option<Result<(), Error>> {
        self.running.join_next().await?.ok()
    }
}
