//! The process that is killed: an engine over a store in a data directory, like the daemon, without a socket. It adds its
//! own agents and schedules.

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::{AgentAdd, AgentSettings, send};
use clap::{Args, ValueEnum};
use futures::future::try_join;
use kernel::Actor;
use runtime::{Components, Engine, LocalHandle, ReloadableConfig, Settings, SystemClock};
use store_sqlite::Sqlite;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::pipe_backend::PipeBackend;
use super::{GUARANTEES, SCHEDULES, SCHEDULES_ALL};
use crate::crash::runs::{Guarantee, POLL_INTERVAL, is_any_live, pause_all, schedule};
use crate::dice::Dice;

/// The line with which a host reports that it is running.
pub(super) const READY: &str = "ready";

/// The script of the agents. The backend never opens it.
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

/// What a host does beside running the engine.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Part {
    /// Adds the schedules.
    First,
    Next,
    /// Pauses the schedules, and ends when every run has.
    Last,
}

pub(crate) fn host(options: &HostOptions) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn run(options: &HostOptions) -> Result<()> {
    let engine = open(&options.data, Arc::new(PipeBackend::from_stdin()?)).await?;
    let handle = engine.handle(Actor::local_user(rustix::process::getuid().as_raw()));
    let all_ended = CancellationToken::new();
    let stop_reason = async {
        all_ended.cancelled().await;
        "every run has ended".to_owned()
    };
    let running = async { Ok(engine.run(&[], Vec::new(), stop_reason).await?) };
    let part = async {
        options.do_part(&handle).await?;
        all_ended.cancel();
        anyhow::Ok(())
    };
    try_join(running, part).await.map(|((), ())| ())
}

async fn open(data: &Path, backend: Arc<PipeBackend>) -> Result<Engine> {
    fs::create_dir_all(data)?;
    let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
    let settings = Settings {
        data: data.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        posture: kernel::posture::Posture::Staging,
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
        drain: Duration::ZERO,
        secret_variables: Vec::new(),
    };
    let components = Components { backend, ..Components::new(store, Arc::new(SystemClock)) };
    Ok(Engine::open(components, settings, ReloadableConfig::default()).await?)
}

impl HostOptions {
    /// Returns when the engine is to stop.
    async fn do_part(&self, handle: &LocalHandle) -> Result<()> {
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
                    sleep(POLL_INTERVAL).await;
                }
                Ok(())
            }
        }
    }

    async fn prepare(&self, handle: &LocalHandle) -> Result<()> {
        let mut dice = Dice::of(self.seed, 0);
        for guarantee in GUARANTEES {
            send(handle, agent(guarantee)).await?;
        }
        for number in 0..SCHEDULES {
            for guarantee in GUARANTEES {
                send(handle, schedule(guarantee, number, &mut dice)).await?;
            }
        }
        Ok(())
    }
}

fn agent(guarantee: Guarantee) -> AgentAdd {
    AgentAdd {
        name: guarantee.agent().to_owned(),
        backend: "builtin".to_owned(),
        settings: AgentSettings {
            repeatable: Some(guarantee == Guarantee::Repeatable),
            // A builtin agent without a script only echoes, and would always be repeatable.
            script: Some(SCRIPT.to_owned()),
            ..AgentSettings::default()
        },
        look: false,
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
