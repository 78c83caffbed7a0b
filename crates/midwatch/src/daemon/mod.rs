//! The daemon: takes the directory, serves its socket, keeps the watch until it is told to stop.

mod descent;
mod http;
mod messengers;
mod notify;
mod peer;
mod reread;
mod serve;
mod sockets;

use std::sync::Arc;
use std::time::Duration;

use api::wire::Hello;
use api::{Code, Error};
use client::connect;
use futures::future::{FutureExt, join};
use kernel::Actor;
use kernel::posture::Finding;
use mcp::Server;
use runtime::Engine;
use serde::Serialize;
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::access::{doer, held, open_watch};
use crate::config::Config;
use crate::context::{Context, VERSION, shown};
use crate::directory::Lock;
use crate::{checks, logs};

/// How long to wait for a command that is at work in the directory.
const OWNER_WAIT_MAX: Duration = Duration::from_secs(10);
const OWNER_POLL: Duration = Duration::from_millis(10);

/// Told on stdout once the daemon serves.
#[derive(Debug, Serialize)]
pub struct Ready {
    version: &'static str,
    data: String,
    socket: String,
    /// Where it is reached over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<String>,
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
    let mut hangups = hangups()?;
    let mut found = checks::around(context, &loaded.config);
    found.extend(checks::environment(context));
    refuse(&loaded.config, &found)?;
    let messengers = messengers::configured(context, &loaded.config, logs.redactor())?;
    let watch = open_watch(context, &loaded).await?;
    found.extend(watch.findings().await?);
    refuse(&loaded.config, &found)?;
    for Finding { check, what, fix } in &found {
        warn!(check = check.name(), fix, "{what}");
    }
    watch.started_with(found);
    watch.reread_from(Arc::new(reread::Files::new(context, &loaded)));
    descent::adopt_orphans();
    let socket = context.directory.socket()?;
    let listener = serve::listen(&socket)?;
    let web = http::listen(&loaded).await?;
    let address = web.as_ref().and_then(|web| web.local_addr().ok());
    if let Some(address) = address {
        watch.set_pages(format!("http://{address}"));
    }
    let own_port = address.map(|address| address.port());
    let redactor = Arc::clone(logs.redactor());
    let doer = doer(context, context.environment.clone(), redactor, own_port);

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let ready = Ready {
        version: VERSION,
        data: shown(context.directory.path()),
        socket: shown(&socket),
        http: address.map(|address| format!("http://{address}")),
    };
    info!(version = ready.version, data = ready.data, "the watch is kept");
    let over_http = {
        let (door, stopped) = (Arc::new(http::ByToken::new(watch.clone())), stopped.clone());
        let selection = http::selection(&loaded);
        async move {
            if let Some(web) = web {
                let server = move || Server::of_requests(selection.clone(), VERSION);
                gateway::serve(web, door, server, stopped).await;
            }
        }
    };
    let served = serve::serve(listener, watch.clone(), stopped);
    let served = join(served, over_http).map(drop).shared();
    // What is acknowledged is in the log before its last entry, and signed with it.
    let served_to_the_end = async {
        let reason = select! {
            reason = told_to_stop => reason,
            reason = reload_on(&mut hangups, &watch) => reason,
        };
        notify::stopping();
        stop.send_replace(true);
        watch.stop_tests();
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
        never = watch.take_token_files() => match never {},
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
        let Ready { version, data, http, .. } = ready;
        let http = http.as_ref().map_or(String::new(), |http| format!(", MCP at {http}/mcp"));
        format!("ready: midwatch {version} keeps the watch in {data}{http}")
    });
    notify::ready();
}

/// What would make it unsafe to go on.
fn refuse(config: &Config, found: &[Finding]) -> Result<(), Error> {
    runtime::refusal(config.posture, found).map_or(Ok(()), Err)
}

/// Reloads at every `SIGHUP`, until one says that the terminal has gone in which this was started.
async fn reload_on(hangups: &mut Hangups, watch: &Engine) -> String {
    loop {
        hangups.signal.recv().await;
        if hangups.had_terminal && !has_terminal() {
            return "SIGHUP".to_owned();
        }
        // What comes of it is in both logs.
        let _ = watch.reload(&Actor::system()).await;
    }
}

/// The signal that asks to read everything again, and comes too when a terminal is closed.
struct Hangups {
    signal: Signal,
    had_terminal: bool,
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Listens for the signals that ask to stop, from now on; gives the name of the first.
pub fn signals() -> Result<impl Future<Output = String>, Error> {
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        select! {
            _ = terminate.recv() => "SIGTERM".to_owned(),
            _ = interrupt.recv() => "SIGINT".to_owned(),
        }
    })
}

fn hangups() -> Result<Hangups, Error> {
    Ok(Hangups { signal: listen(SignalKind::hangup())?, had_terminal: has_terminal() })
}

fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|error| Error::new(Code::Failed, error))
}
