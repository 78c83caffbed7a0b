//! A watch whose time stands still until the test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use api::{AgentAdd, Ask, Call, Error, Event, LedgerTail, ask};
use kernel::{Actor, Role, Timestamp};
use runtime::{Clock, Settings, Watch};
use store::{Memory, Store};
use tempfile::TempDir;

/// The first instant of 2026-10.
pub(crate) const OCTOBER_US: i64 = 1_790_812_800_000_000;
pub(crate) const DAY_US: i64 = 86_400_000_000;

#[derive(Debug)]
pub(crate) struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct World {
    pub(crate) data: TempDir,
    pub(crate) store: Arc<Memory>,
    pub(crate) clock: Arc<SetClock>,
    pub(crate) watch: Watch,
}

impl World {
    pub(crate) async fn new() -> World {
        let data = tempfile::tempdir().unwrap();
        let (store, clock) =
            (Arc::new(Memory::new()), Arc::new(SetClock(AtomicI64::new(OCTOBER_US))));
        let watch = open(&data, &store, &clock).await.unwrap();
        World { data, store, clock, watch }
    }

    /// Another store in the same place.
    pub(crate) async fn lose_the_store(&mut self) -> Result<(), Error> {
        self.store = Arc::new(Memory::new());
        self.reopen().await
    }

    /// The same data, opened again.
    pub(crate) async fn reopen(&mut self) -> Result<(), Error> {
        self.watch = open(&self.data, &self.store, &self.clock).await?;
        Ok(())
    }

    pub(crate) fn set_now(&self, micros: i64) {
        self.clock.0.store(micros, Ordering::SeqCst);
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

async fn open(data: &TempDir, store: &Arc<Memory>, clock: &Arc<SetClock>) -> Result<Watch, Error> {
    let settings = Settings {
        data: data.path().to_owned(),
        version: "test".into(),
        posture: "staging".into(),
        config_hash: "none".into(),
        checkpoint_copy: Some(data.path().join("elsewhere.log")),
        heartbeat: Duration::from_secs(60),
    };
    let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (store.clone(), clock.clone());
    Watch::open(store, clock, settings).await
}

pub(crate) fn builtin(name: &str) -> AgentAdd {
    AgentAdd { name: name.to_owned(), backend: "builtin".into(), ..AgentAdd::default() }
}
