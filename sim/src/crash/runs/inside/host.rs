//! The process that is killed: a watch over a store in a data directory, as the daemon keeps it, without
//! a socket. It tells itself what to do.

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::{AgentAdd, ask};
use clap::{Args, ValueEnum};
use futures::future::try_join;
use kernel::Actor;
use runtime::{Local, Settings, Standing, SystemClock, Engine};
use store_sqlite::Sqlite;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::writing::Writing;
use super::{PROMISES, SCHEDULES, SCHEDULES_ALL};
use crate::crash::runs::{PAUSE, Promise, is_any_live, pause_all, schedule};
use crate::dice::Dice;

/// The line that says that a host is at work.
pub(super) const READY: &str = "ready";

/// What our agents are said to play by.
const SCRIPT: &str = "/nowhere/script";

#[derive(Debug, Args)]
pub(crate) struct HostOptions {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    part: Part,
    #[arg(long)]
    seed: u64,
}

/// What a host has to do beside keeping the watch.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Part {
    /// Makes the schedules.
    First,
    Next,
    /// Takes no slot any more, and ends when every run has.
    Last,
}

pub(crate) fn host(options: &HostOptions) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(keep(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn keep(options: &HostOptions) -> Result<()> {
    let watch = open(&options.data).await?;
    let handle = watch.handle(Actor::local_user(rustix::process::getuid().as_raw()));
    let over = CancellationToken::new();
    let told = async {
        over.cancelled().await;
        "every run has ended".to_owned()
    };
    let kept = async { Ok(watch.keep(Arc::new(Writing::handed()?), Vec::new(), told).await?) };
    let played = async {
        options.play(&handle).await?;
        over.cancel();
        anyhow::Ok(())
    };
    try_join(kept, played).await.map(|((), ())| ())
}

async fn open(data: &Path) -> Result<Engine> {
    fs::create_dir_all(data)?;
    let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
    let settings = Settings {
        data: data.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        posture: kernel::ruling::Posture::Staging,
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
        drain: Duration::ZERO,
        secret_variables: Vec::new(),
    };
    Ok(Engine::open(store, Arc::new(SystemClock), settings, Standing::default()).await?)
}

impl HostOptions {
    /// Returns when the watch is to end.
    async fn play(&self, handle: &Local) -> Result<()> {
        match self.part {
            Part::First => {
                self.prepare(handle).await?;
                announce();
                pending().await
            }
            Part::Next => {
                announce();
                pending().await
            }
            Part::Last => {
                pause_all(handle, SCHEDULES_ALL).await?;
                while is_any_live(handle).await? {
                    sleep(PAUSE).await;
                }
                Ok(())
            }
        }
    }

    async fn prepare(&self, handle: &Local) -> Result<()> {
        let mut dice = Dice::of(self.seed, 0);
        for promise in PROMISES {
            ask(handle, agent(promise)).await?;
        }
        for number in 0..SCHEDULES {
            for promise in PROMISES {
                ask(handle, schedule(promise, number, &mut dice)).await?;
            }
        }
        Ok(())
    }
}

fn agent(promise: Promise) -> AgentAdd {
    AgentAdd {
        name: promise.agent().to_owned(),
        backend: "builtin".to_owned(),
        repeatable: promise == Promise::Repeatable,
        // One that plays no part only echoes, and may always be repeated. Nobody opens the script.
        script: Some(SCRIPT.to_owned()),
        ..AgentAdd::default()
    }
}

#[expect(clippy::print_stdout, reason = "the campaign waits for it")]
fn announce() {
    println!("{READY}");
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::First => "first",
            Part::Next => "next",
            Part::Last => "last",
        }
    }
}
