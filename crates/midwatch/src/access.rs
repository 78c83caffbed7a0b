//! How a command reaches the installation: through the daemon if one is running, otherwise by opening the data
//! directory itself.
//!
//! If another command owns the directory, it waits for a while. If the connection to the daemon is lost during a
//! call, the call is repeated once with the same idempotency key, so that no change is made twice.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agents::EnvironmentOf;
use api::wire::{self, Hello};
use api::{ApiRequest, Call, Code, Error, Handle, ProgressSink, Request, Response};
use kernel::posture::Finding;
use runtime::{Credentials, Engine, LocalHandle, ProcessOrigin, StopMarkers, StopTarget};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;
use transport::{Socket, connect};
use uuid::Uuid;

use crate::context::{Context, VERSION};
use crate::directory::{Directory, Lock};
use crate::engine::{Surroundings, agent_backend, open_engine};

/// How long to wait for another command to release the directory.
const OWNER_WAIT_MAX: Duration = Duration::from_secs(10);
/// Set for every program that a run starts.
const RUN_ID_VARIABLE: &str = "MIDWATCH_RUN_ID";
/// Holds the caller's token.
pub const TOKEN_VARIABLE: &str = "MIDWATCH_TOKEN";
const OWNER_POLL: Duration = Duration::from_millis(20);
/// How long a command waits for the answer to a stop before it leaves a marker.
const MARKER_AFTER: Duration = Duration::from_secs(2);
/// How long a command tries to get an answer to a stop.
const STOP_TRIES_MAX: Duration = Duration::from_millis(4_500);
const STOP_POLL: Duration = Duration::from_millis(50);

/// An open installation, through its daemon or in this process.
#[derive(Debug)]
pub enum Access {
    Daemon(Socket),
    Directory { handle: LocalHandle, engine: Engine, lock: Lock },
}

/// What to do about a directory without an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    Refuse,
}

impl IfMissing {
    /// Only adding an agent creates an installation. Any other request was meant for an existing one, so a mistyped
    /// directory is not created.
    pub(crate) fn for_request(request: &Request) -> IfMissing {
        match request {
            Request::AgentAdd(_) => IfMissing::Create,
            _ => IfMissing::Refuse,
        }
    }
}

impl Access {
    pub fn handle(&self) -> &dyn Handle {
        match self {
            Access::Daemon(socket) => socket,
            Access::Directory { handle, .. } => handle,
        }
    }

    pub async fn open(context: &Context, if_missing: IfMissing) -> Result<Access, Error> {
        let directory = &context.directory;
        if if_missing == IfMissing::Create {
            directory.create()?;
        }
        let deadline = Instant::now() + OWNER_WAIT_MAX;
        let ours = hello(context);
        loop {
            if let Some(socket) = connect(&directory.socket()?, &ours).await? {
                return Ok(Access::Daemon(socket));
            }
            if if_missing == IfMissing::Refuse && context.storage()?.is_missing(directory)? {
                return Err(no_installation(directory));
            }
            if let Some(lock) = directory.try_lock()? {
                let backend = agent_backend(context, EnvironmentOf::Command, Arc::default(), None);
                let command = Surroundings { backend, http_url: None, config_reader: None };
                let engine = open_engine(context, &context.load_config()?, command).await?;
                let credentials = Credentials {
                    uid: rustix::process::getuid().as_raw(),
                    origin: own_origin(),
                    run: ours.run.as_deref(),
                    token: ours.token.as_ref(),
                    assistant: ours.assistant,
                };
                if let Some(Finding { problem, fix, .. }) = engine.untrusted_clock() {
                    warn!("{problem}, so only reads and stops work; {fix}");
                }
                let actor = engine.authenticate(credentials).await?;
                if ours.at_terminal {
                    engine.record_look(&actor).await;
                }
                let handle = engine.handle(actor);
                return Ok(Access::Directory { handle, engine, lock });
            }
            if deadline <= Instant::now() {
                return Err(directory_in_use(directory));
            }
            sleep(OWNER_POLL).await;
        }
    }

    /// Closes the installation. The request is done by now, so a failure here is only logged.
    pub async fn close(self) {
        if let Access::Directory { engine, handle, lock } = self {
            if let Err(error) = engine.close().await {
                warn!(%error, "failed to sign the ledger");
            }
            drop((handle, engine, lock));
        }
    }
}

/// Makes one request, with or without a daemon.
pub async fn send<R: ApiRequest>(context: &Context, request: R) -> Result<R::Response, Error> {
    send_with_progress(context, request, ProgressSink::default()).await
}

/// Makes one request to the daemon. Returns `None` when no daemon is running.
pub async fn send_to_daemon<R: ApiRequest>(
    context: &Context,
    request: R,
) -> Result<Option<R::Response>, Error> {
    match connect(&context.directory.socket()?, &hello(context)).await? {
        Some(socket) => api::send(&socket, request).await.map(Some),
        None => Ok(None),
    }
}

pub async fn send_with_progress<R: ApiRequest>(
    context: &Context,
    request: R,
    progress: ProgressSink,
) -> Result<R::Response, Error> {
    let key = Some(Uuid::now_v7().to_string());
    send_call::<R>(context, Call { key, progress, ..Call::new(request) }).await
}

/// What became of a request that stops something.
#[derive(Debug)]
pub enum Stopped<T> {
    Answered(T),
    /// Nothing answered in time, for this reason. A marker makes the daemon obey as soon as it can.
    Marked(Error),
}

/// Makes a request that stops something. If it is not answered within [`MARKER_AFTER`], a marker stops it as well.
pub async fn send_stop<R: ApiRequest>(
    context: &Context,
    request: R,
    target: StopTarget<'_>,
    note: Option<&str>,
) -> Result<Stopped<R::Response>, Error> {
    let call = Call { key: Some(Uuid::now_v7().to_string()), ..Call::new(request) };
    let started = Instant::now();
    let mut is_marked = false;
    let mut failure = no_answer();
    loop {
        let until = started + if is_marked { STOP_TRIES_MAX } else { MARKER_AFTER };
        match timeout_at(until, call_once(context, call.clone())).await {
            Ok(Ok(answer)) => return response_of::<R>(answer).map(Stopped::Answered),
            Ok(Err(refused)) if is_refusal(refused.code) => return Err(refused),
            Ok(Err(failed)) => {
                failure = failed;
                sleep(STOP_POLL.min(until.saturating_duration_since(Instant::now()))).await;
            }
            Err(_) => {}
        }
        let elapsed = started.elapsed();
        if STOP_TRIES_MAX <= elapsed {
            return Ok(Stopped::Marked(failure));
        }
        if MARKER_AFTER <= elapsed && !is_marked {
            let markers = StopMarkers::new(context.directory.path());
            markers.leave(target, note).map_err(|error| not_stopped(&failure, &error))?;
            is_marked = true;
        }
    }
}

/// Whether the request was refused for what it is. With any other error it was not decided.
fn is_refusal(code: Code) -> bool {
    [
        Code::BadUsage,
        Code::Denied,
        Code::HumanNeeded,
        Code::InvalidInput,
        Code::KeyTaken,
        Code::NotFound,
        Code::NotNow,
        Code::RoleTooLow,
        Code::TokenInvalid,
    ]
    .contains(&code)
}

fn no_answer() -> Error {
    Error::new(Code::Unreachable, "the daemon did not answer")
}

fn not_stopped(failure: &Error, marker: &io::Error) -> Error {
    let what = format!("{}, and a marker could not be left: {marker}", failure.message);
    Error::new(failure.code, what).hint("stop the daemon itself: `pkill -TERM midwatch`")
}

/// Makes a request with the caller's idempotency key, so that it takes effect once however often it is made.
pub async fn send_once<R: ApiRequest>(
    context: &Context,
    key: String,
    request: R,
) -> Result<R::Response, Error> {
    send_call::<R>(context, Call { key: Some(key), ..Call::new(request) }).await
}

async fn send_call<R: ApiRequest>(context: &Context, call: Call) -> Result<R::Response, Error> {
    let answer = match call_once(context, call.clone()).await {
        Err(lost) if lost.code == Code::Unreachable => call_once(context, call).await?,
        other => other?,
    };
    response_of::<R>(answer)
}

fn response_of<R: ApiRequest>(answer: Response) -> Result<R::Response, Error> {
    let wrong = || Error::new(Code::Failed, "the response does not belong to the request");
    R::from_response(answer).ok_or_else(wrong)
}

async fn call_once(context: &Context, call: Call) -> Result<Response, Error> {
    let access = Access::open(context, IfMissing::for_request(&call.request)).await?;
    let answer = access.handle().call(call).await;
    access.close().await;
    answer
}

/// A program that a run or a test of an agent left behind gets no more rights without a daemon than with one.
fn own_origin() -> ProcessOrigin<'static> {
    match agents::is_marked() {
        true => ProcessOrigin::Unknown,
        false => ProcessOrigin::External,
    }
}

/// The credentials that this process presents.
fn hello(context: &Context) -> Hello {
    let given = |name: &str| context.environment.get(name).filter(|it| !it.is_empty()).cloned();
    Hello {
        run: given(RUN_ID_VARIABLE),
        token: given(TOKEN_VARIABLE).map(wire::Secret),
        assistant: context.assistant,
        at_terminal: context.take_look(),
        ..Hello::new(VERSION)
    }
}

pub fn no_installation(directory: &Directory) -> Error {
    let what = format!("there is no installation in `{}` yet", directory.path().display());
    let hint = "start one with `midwatch up`, or choose another directory with `--data DIR`";
    Error::new(Code::NotFound, what).hint(hint)
}

pub fn directory_in_use(directory: &Directory) -> Error {
    let path = directory.path().display();
    let by =
        directory.owner().map_or("another process".to_owned(), |owner| format!("process {owner}"));
    Error::new(Code::AlreadyRunning, format!("the data directory `{path}` is in use by {by}"))
        .hint("see `midwatch status`; stop that process, or use another directory with `--data`")
}
