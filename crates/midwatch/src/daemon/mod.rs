//! The daemon: takes the directory, serves its socket, keeps the watch until it is told to stop.

mod descent;
mod messengers;
mod notify;
mod serve;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use agents::Backends;
use api::wire::Hello;
use api::{Code, Error};
use client::connect;
use futures::future::{FutureExt, join};
use kernel::ruling::Posture;
use runtime::Watch;
use serde::Serialize;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::{error, info};

use crate::access::{held, open_watch};
use crate::config::Config;
use crate::context::{Context, VERSION, shown};
use crate::directory::Lock;
use crate::logs;

/// How long to wait for a command that is at work in the directory.
const OWNER_WAIT_MAX: Duration = Duration::from_secs(10);
/// What runs have said and is too long for the log, in the data directory.
const OUTPUTS: &str = "outputs";
const OWNER_POLL: Duration = Duration::from_millis(10);

/// Told on stdout once the daemon serves.
#[derive(Debug, Serialize)]
pub struct Ready {
    version: &'static str,
    data: String,
    socket: String,
}

/// Keeps the watch until a signal ends it; `told` learns when it is ready.
pub async fn up(context: &Context, told: oneshot::Sender<()>) -> Result<(), Error> {
    let ready = |ready: &Ready| {
        announce(context, ready);
        // Nobody need want to know.
        let _ = told.send(());
    };
    keep(context, signals()?, ready).await
}

/// Keeps the watch until `told_to_stop` says why to end; `when_ready` is called once it serves.
pub async fn keep(
    context: &Context,
    told_to_stop: impl Future<Output = String>,
    when_ready: impl FnOnce(&Ready),
) -> Result<(), Error> {
    context.directory.create()?;
    let loaded = context.load_config()?;
    let lock = own(context).await?;
    let logs = logs::init(&loaded.config.log, Some(context.directory.path())).map_err(|error| {
        Error::new(Code::Failed, format!("the log file cannot be used: {error}"))
    })?;
    let messengers = messengers::configured(context, &loaded.config, logs.redactor())?;
    let watch = open_watch(context).await?;
    descent::adopt_orphans();
    let outputs = context.directory.path().join(OUTPUTS);
    let doer = Arc::new(Backends::new(outputs, context.environment.clone()));
    let socket = context.directory.socket()?;
    let listener = serve::listen(&socket)?;

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let ready =
        Ready { version: VERSION, data: shown(context.directory.path()), socket: shown(&socket) };
    info!(version = ready.version, data = ready.data, "the watch is kept");
    let served = serve::serve(listener, watch.clone(), stopped).shared();
    // What is acknowledged is in the log before its last entry, and signed with it.
    let served_to_the_end = async {
        let reason = told_to_stop.await;
        notify::stopping();
        stop.send_replace(true);
        served.clone().await;
        reason
    };
    let kept = async {
        when_ready(&ready);
        let kept = watch.keep(doer, messengers, served_to_the_end).await;
        stop.send_replace(true);
        kept
    };
    let (kept, ()) = select! {
        ended = join(kept, served.clone()) => ended,
        never = notify::feed_watchdog() => match never {},
        never = descent::bury() => match never {},
        never = token_files(&watch, &loaded.config) => match never {},
    };
    // A socket that stays behind is found to be nobody's.
    let _ = std::fs::remove_file(&socket);
    drop((watch, lock));
    match &kept {
        Ok(()) => info!("the watch has ended"),
        Err(failed) => error!(%failed, "the watch has failed"),
    }
    kept
}

/// In strict-prod no file approves anything: whoever can write one need not be a human.
async fn token_files(watch: &Watch, config: &Config) -> Infallible {
    match config.approval.token_file && config.posture != Posture::StrictProd {
        true => watch.take_token_files().await,
        false => pending().await,
    }
}

/// Takes the directory. A command that is at work in it is waited for, another daemon is not.
async fn own(context: &Context) -> Result<Lock, Error> {
    let directory = &context.directory;
    let deadline = Instant::now() + OWNER_WAIT_MAX;
    loop {
        if let Some(lock) = directory.try_lock()? {
            return Ok(lock);
        }
        // What the file says may be of an earlier owner; a daemon that is up answers.
        let is_daemon = connect(&directory.socket()?, &Hello::new(VERSION)).await?.is_some();
        if is_daemon || deadline <= Instant::now() {
            return Err(held(directory));
        }
        sleep(OWNER_POLL).await;
    }
}

fn announce(context: &Context, ready: &Ready) {
    #[derive(Serialize)]
    struct Announced<'a> {
        ready: &'a Ready,
    }
    // A reader that has gone away is no reason to stop.
    let _ = context.output.show_line(&Announced { ready }, |_| {
        let Ready { version, data, .. } = ready;
        format!("ready: midwatch {version} keeps the watch in {data}")
    });
    notify::ready();
}

/// Listens for the signals that ask to stop, from now on; gives the name of the first.
pub fn signals() -> Result<impl Future<Output = String>, Error> {
    let listen = |kind| signal(kind).map_err(|error| Error::new(Code::Failed, error));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        select! {
            _ = terminate.recv() => "SIGTERM".to_owned(),
            _ = interrupt.recv() => "SIGINT".to_owned(),
        }
    })
}
