//! The daemon: locks the data directory, serves the socket and HTTP, and runs the engine until it is stopped.

mod admission;
mod config_reader;
mod device_sessions;
mod frame_memory;
mod http;
mod metrics;
mod notification_channels;
mod peer;
mod process_tree;
mod rest;
mod service_manager;
mod socket_server;
mod stop_progress;
mod stop_watchdog;
pub(crate) mod tcp_sockets;

use std::sync::Arc;
use std::time::Duration;

use agents::EnvironmentOf;
use api::wire::Hello;
use api::{Code, Error};
use futures::future::{FutureExt, join, pending};
use gateway::Services;
use kernel::posture::{Check, Finding};
use mcp::Server;
use runtime::Engine;
use serde::Serialize;
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};
use transport::connect;

use self::device_sessions::DeviceSessions;
use self::http::HttpListener;
use self::metrics::EngineMetrics;
use self::peer::PeerScanner;
use self::stop_progress::StopProgress;
use self::stop_watchdog::StopWatchdog;
use crate::access::directory_in_use;
use crate::config::Config;
use crate::context::{Context, VERSION, display_path};
use crate::directory::Lock;
use crate::engine::{Surroundings, agent_backend, open_engine};
use crate::wrap::fit;
use crate::{local_checks, logs};

/// How long to wait for a command to release the directory.
const OWNER_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long the daemon may take to stop, beyond the time in which runs may finish: 15 s until cancelled runs have ended, and
/// the rest for the last entries.
const STOP_WITHIN: Duration = Duration::from_secs(25);
const OWNER_POLL: Duration = Duration::from_millis(10);

/// Printed on stdout when the daemon is ready.
#[derive(Debug, Serialize)]
pub struct Ready {
    version: &'static str,
    data: String,
    socket: String,
    /// Base url of the HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<String>,
}

/// How to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Start even if the clock seems to be wrong.
    pub accept_clock: bool,
    /// Say on stdout what a stop waits for.
    pub narrates: bool,
}

/// Runs the daemon until a signal stops it; `ready_sender` is notified when it is ready.
pub async fn up(
    context: &Context,
    start: Start,
    ready_sender: oneshot::Sender<()>,
) -> Result<(), Error> {
    let ready = |ready: &Ready| {
        announce(context, start, ready);
        // The receiver may be dropped.
        let _ = ready_sender.send(());
    };
    run(context, start, stop_signal()?, ready).await
}

/// Runs the daemon until `stop_requested` resolves to the reason to stop; calls `on_ready` when it is ready.
pub async fn run(
    context: &Context,
    start: Start,
    stop_requested: impl Future<Output = String>,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), Error> {
    context.directory.create()?;
    let loaded = context.load_config()?;
    let lock = lock_directory(context).await?;
    let is_level_chosen = loaded.is_set("log.level");
    let logs = logs::init(&loaded.config.log, is_level_chosen, context.directory.path())
        .map_err(|error| Error::new(Code::Failed, format!("cannot start the log: {error}")))?;
    let mut hangup_signals = listen_for_hangups()?;
    let mut found = local_checks::check_files_and_process(context, &loaded.config);
    found.extend(local_checks::check_environment(context));
    refuse_unsafe_start(&loaded.config, &found, start)?;
    let channels = notification_channels::from_config(context, &loaded.config, logs.redactor())?;
    let http_address = http::ReservedAddress::bind(&loaded);
    let address = http_address.address();
    let redactor = Arc::clone(logs.redactor());
    let config_files = config_reader::ConfigFiles::new(context, &loaded, Arc::clone(&redactor));
    let own_port = address.map(|address| address.port());
    let environment_of = EnvironmentOf::Daemon { pid: std::process::id() };
    let surroundings = Surroundings {
        backend: agent_backend(context, environment_of, redactor, own_port),
        http_url: address.map(|address| format!("http://{address}")),
        config_reader: Some(Arc::new(config_files)),
    };
    let engine = open_engine(context, &loaded, surroundings).await?;
    found.extend(engine.findings().await?);
    refuse_unsafe_start(&loaded.config, &found, start)?;
    if start.accept_clock {
        engine.accept_clock();
    }
    for Finding { check, problem, fix } in &found {
        warn!(check = check.name(), fix, "{problem}");
    }
    process_tree::adopt_orphans();
    // A task of its own, so that it works whatever the others wait for. It ends when the set is dropped.
    let mut stop_markers = JoinSet::new();
    stop_markers.spawn({
        let engine = engine.clone();
        async move { engine.watch_stop_markers().await }
    });
    let socket = context.directory.socket()?;
    let listener = socket_server::listen(&socket)?;
    let http_listener = http_address.listen(&loaded)?;

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let ready = Ready {
        version: VERSION,
        data: display_path(context.directory.path()),
        socket: display_path(&socket),
        http: http_listener.as_ref().and(address).map(|address| format!("http://{address}")),
    };
    info!(version = ready.version, data = ready.data, "daemon started");
    let serve_http = {
        let stopped = stopped.clone();
        let peers = Arc::new(PeerScanner::new());
        let services = Services {
            authenticator: Arc::new(http::TokenAuthenticator::new(
                engine.clone(),
                Arc::clone(&peers),
            )),
            api: Some(Arc::new(rest::RestService::new(engine.clone()))),
            devices: Some(Arc::new(DeviceSessions::new(engine.clone()))),
            metrics: Some(Arc::new(EngineMetrics::new(engine.clone(), Arc::clone(&peers)))),
            peers,
        };
        let selection = http::selection(&loaded);
        async move {
            if let Some(HttpListener { listener, other_loopback }) = http_listener {
                let server = move || Server::with_handle_per_request(selection.clone(), VERSION);
                gateway::serve(listener, services, server, stopped).await;
                drop(other_loopback);
            }
        }
    };
    let served = socket_server::serve(listener, engine.clone(), stopped);
    let served = join(served, serve_http).map(drop).shared();
    let mut stop_watchdog = StopWatchdog::new(loaded.config.runs.drain + STOP_WITHIN);
    // Runs that finish can still be followed and cancelled. Serving ends before the last entry is signed, so that every
    // acknowledged change comes before it.
    let serve_until_stopped = async {
        let reason = select! {
            reason = stop_requested => reason,
            reason = reopen_logs_on_hangup(&mut hangup_signals) => reason,
            reason = engine.stop_requested() => reason,
        };
        service_manager::stopping();
        stop_watchdog.stop_requested();
        engine.request_stop(reason.clone());
        engine.stop_agent_tests();
        let progress = StopProgress { context, is_shown: start.narrates };
        drain_runs(&engine, &stop_watchdog, progress).await;
        stop.send_replace(true);
        served.clone().await;
        reason
    };
    let running = async {
        on_ready(&ready);
        let result = engine.run(&found, channels, serve_until_stopped).await;
        stop.send_replace(true);
        result
    };
    let (result, ()) = select! {
        ended = join(running, served.clone()) => ended,
        never = service_manager::feed_watchdog() => match never {},
        never = process_tree::reap() => match never {},
        never = engine.follow_approval_files() => match never {},
    };
    process_tree::end_orphans().await;
    // If it fails, the next daemon replaces the socket.
    let _ = std::fs::remove_file(&socket);
    drop((stop_markers, engine, lock));
    match &result {
        Ok(()) => info!("daemon stopped"),
        Err(error) => error!(%error, "daemon failed"),
    }
    result
}

/// Waits until no run is running: until all have ended or the drain time is over. A second signal cuts them off at once.
async fn drain_runs(engine: &Engine, stop_watchdog: &StopWatchdog, progress: StopProgress<'_>) {
    let cut_short = async {
        match stop_signal() {
            Ok(signal) => select! {
                _ = signal => engine.stop_at_once(),
                () = engine.stops_at_once() => {}
            },
            Err(_) => engine.stops_at_once().await,
        }
        stop_watchdog.set_limit(STOP_WITHIN);
        pending::<()>().await
    };
    let drained = async {
        progress.waits_for(&engine.running_runs().await);
        engine.wait_for_runs().await;
        progress.cut_off(&engine.runs_cut_off().await);
    };
    select! {
        () = drained => {}
        () = cut_short => {}
    }
}

/// Locks the directory. Waits for a command that owns it, but not for another daemon.
async fn lock_directory(context: &Context) -> Result<Lock, Error> {
    let directory = &context.directory;
    let deadline = Instant::now() + OWNER_WAIT_MAX;
    loop {
        if let Some(lock) = directory.try_lock()? {
            return Ok(lock);
        }
        // The process id in the lock file may be outdated, so try to connect.
        let is_daemon = connect(&directory.socket()?, &Hello::new(VERSION)).await?.is_some();
        if is_daemon || deadline <= Instant::now() {
            return Err(directory_in_use(directory));
        }
        sleep(OWNER_POLL).await;
    }
}

fn announce(context: &Context, start: Start, ready: &Ready) {
    #[derive(Serialize)]
    struct Announced<'a> {
        ready: &'a Ready,
    }
    // A closed stdout is no reason to stop.
    let _ = context.output.show_line(&Announced { ready }, |_| {
        let Ready { version, data, http, .. } = ready;
        let http = http.as_ref().map_or(String::new(), |http| format!(", MCP at {http}/mcp"));
        let line = format!("ready: midwatch {version} is running in {data}{http}");
        // A program waits for one line.
        if start.narrates { fit(&line, context.output.width) } else { line }
    });
    service_manager::ready();
}

/// Fails if the findings forbid a start in this posture. What was accepted stays a warning, which the ledger records.
fn refuse_unsafe_start(config: &Config, found: &[Finding], start: Start) -> Result<(), Error> {
    let is_accepted =
        |check: Check| start.accept_clock && matches!(check, Check::Clock | Check::ClockAhead);
    let mut found = found.to_vec();
    found.retain(|finding| !is_accepted(finding.check));
    runtime::refusal(config.posture, &found).map_or(Ok(()), Err)
}

/// Reopens the log file at every `SIGHUP`. Returns when one means that the daemon's terminal was closed.
async fn reopen_logs_on_hangup(hangup_signals: &mut HangupSignals) -> String {
    loop {
        hangup_signals.signal.recv().await;
        if hangup_signals.had_terminal && !has_terminal() {
            return "SIGHUP".to_owned();
        }
        // Any process of this user can send the signal, so it changes nothing. The next line opens the file again.
        info!("reopened the log file; `midwatch config reload` reloads the configuration");
    }
}

/// `SIGHUP`, which asks to reopen the log file, and is also sent when the terminal is closed.
struct HangupSignals {
    signal: Signal,
    had_terminal: bool,
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Listens for the signals that stop the daemon; the future resolves to the name of the first.
pub fn stop_signal() -> Result<impl Future<Output = String>, Error> {
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        select! {
            _ = terminate.recv() => "SIGTERM".to_owned(),
            _ = interrupt.recv() => "SIGINT".to_owned(),
        }
    })
}

fn listen_for_hangups() -> Result<HangupSignals, Error> {
    Ok(HangupSignals { signal: listen(SignalKind::hangup())?, had_terminal: has_terminal() })
}

fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|error| Error::new(Code::Failed, error))
}
