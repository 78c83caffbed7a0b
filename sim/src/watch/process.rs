//! A process of a life: an open watch and what keeps it, until it is told to stop or dies.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::Error;
use futures::future::pending;
use kernel::budget::Limits;
use kernel::money::Money;
use runtime::{Clock, Settings, Standing, Engine};
use store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::clock::SimClock;
use super::faults::Faulty;
use super::hands::{Hands, doer};
use super::plan::POLICY;

/// Few enough for a life to come to their end.
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
};

const fn micros(micros: i64) -> Money {
    match Money::from_micros(micros) {
        Some(money) => money,
        None => Money::ZERO,
    }
}

#[derive(Debug)]
pub(super) struct Process {
    /// Counted from 1 in each life.
    pub(super) number: u64,
    pub(super) watch: Engine,
    kept: JoinSet<Result<(), Error>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Process {
    /// To open takes no time and does not fail; whatever comes then may.
    pub(super) async fn start(
        number: u64,
        data: &Path,
        store: &Arc<Faulty>,
        clock: &Arc<SimClock>,
        hands: &Arc<Hands>,
    ) -> Result<Process> {
        let settings = Settings {
            data: data.to_owned(),
            version: "sim".to_owned(),
            posture: kernel::ruling::Posture::Staging,
            checkpoint_copy: None,
            heartbeat: Duration::ZERO,
            drain: Duration::from_secs(5),
            secret_variables: Vec::new(),
        };
        let standing = Standing {
            policy: vec![(runtime::POLICY_FILE.to_owned(), POLICY.to_owned())],
            keys: Vec::new(),
            config_hash: "none".to_owned(),
            lease: kernel::authority::Lease::default(),
            limits: LIMITS,
            flags: kernel::posture::Flags::default(),
        };
        let (shared, time): (Arc<dyn Store>, Arc<dyn Clock>) = (store.clone(), clock.clone());
        store.set_instant(true);
        let opened = Engine::open(shared, time, settings, standing).await;
        store.set_instant(false);
        let (watch, doer) = (opened?, doer(hands, number));
        let (stop, told) = oneshot::channel();
        let mut kept = JoinSet::new();
        let keeper = watch.clone();
        kept.spawn(async move {
            let told = async {
                match told.await {
                    Ok(()) => "told to".to_owned(),
                    Err(_) => pending().await,
                }
            };
            keeper.keep(doer, vec![], told).await
        });
        Ok(Process { number, watch, kept, stop: Some(stop) })
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.kept.try_join_next().is_some() || self.kept.is_empty()
    }

    /// It ends in the middle of whatever it does.
    pub(super) async fn die(mut self) {
        self.kept.shutdown().await;
    }

    pub(super) fn tell_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Returns when it has ended.
    pub(super) async fn ended(&mut self) -> Option<Result<(), Error>> {
        self.kept.join_next().await?.ok()
    }
}
