//! How a command reaches the watch: the daemon if there is one, else the directory itself.
//!
//! A command that meets another short-lived owner waits for it a moment. When the daemon is lost in
//! the middle of a call, the call is made once more with the same key, so that a change that did
//! happen is not made twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agents::{Backends, AgentBackend, Http};
use api::wire::{self, Hello};
use api::{Answer, Ask, Call, Code, Error, Handle, ProgressSink, Request};
use client::{Socket, connect};
use futures::future::{BoxFuture, FutureExt};
use runtime::{Descent, Kept, Local, SystemClock, Visitor, Engine};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;
use uuid::Uuid;

use crate::config::{Config, Loaded};
use crate::context::{Context, VERSION};
use crate::directory::{Directory, Lock};
use crate::redact::Redactor;
use crate::secret::Keyring;
use crate::storage::Storage;
use crate::tools::OwnTools;

/// How long to wait for another owner to leave.
const OWNER_WAIT_MAX: Duration = Duration::from_secs(10);
/// What runs have said and is too long for the log, in the data directory.
const OUTPUTS: &str = "outputs";
/// Set for every program that a run starts.
const RUN_ID: &str = "MIDWATCH_RUN_ID";
/// Holds the token of whoever gives the command.
pub const TOKEN: &str = "MIDWATCH_TOKEN";
/// Connections that are kept for the next call.
const IDLE_MAX: usize = 2;
/// Calls of a process that stays which wait for news at one time. There are only so many connections.
const WAITING_MAX: usize = 32;
/// All its other calls, which are soon over.
const ASKING_MAX: usize = 8;
const OWNER_POLL: Duration = Duration::from_millis(20);
/// How often to look for news while nobody keeps the watch.
const NEWS_POLL: Duration = Duration::from_secs(1);

/// The watch, near or far.
#[derive(Debug)]
pub enum Access {
    Daemon(Socket),
    Directory { handle: Local, watch: Engine, lock: Lock },
}

/// What to do about a directory without a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    Begin,
    Refuse,
}

impl Absent {
    /// Only a first agent is worth a new log. Whatever else is asked for was meant for a log that is
    /// elsewhere, so a mistyped directory is not made.
    fn of(request: &Request) -> Absent {
        match request {
            Request::AgentAdd(_) => Absent::Begin,
            _ => Absent::Refuse,
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

    pub async fn open(context: &Context, absent: Absent) -> Result<Access, Error> {
        let directory = &context.directory;
        if absent == Absent::Begin {
            directory.create()?;
        }
        let deadline = Instant::now() + OWNER_WAIT_MAX;
        let ours = hello(context);
        loop {
            if let Some(socket) = connect(&directory.socket()?, &ours).await? {
                return Ok(Access::Daemon(socket));
            }
            if absent == Absent::Refuse && context.storage()?.is_missing(directory)? {
                return Err(no_watch(directory));
            }
            if let Some(lock) = directory.try_lock()? {
                let watch = open_watch(context, &context.load_config()?).await?;
                let doer = doer(context, context.environment.clone(), Arc::default(), None);
                watch.set_doer(doer);
                let visitor = Visitor {
                    uid: rustix::process::getuid().as_raw(),
                    descent: Descent::Stranger,
                    run: ours.run.as_deref(),
                    token: ours.token.as_ref(),
                    assistant: ours.assistant,
                };
                let handle = watch.handle(watch.admit(visitor).await?);
                return Ok(Access::Directory { handle, watch, lock });
            }
            if deadline <= Instant::now() {
                return Err(held(directory));
            }
            sleep(OWNER_POLL).await;
        }
    }

    /// Lets go of what was opened. What was asked for is done by now, so upkeep that fails is only a
    /// warning.
    pub async fn close(self) {
        if let Access::Directory { watch, handle, lock } = self {
            if let Err(failed) = watch.leave().await {
                warn!(%failed, "the log could not be signed");
            }
            drop((handle, watch, lock));
        }
    }
}

/// Asks one thing, wherever the watch is, and leaves.
pub async fn ask<R: Ask>(context: &Context, request: R) -> Result<R::Answer, Error> {
    ask_with_progress(context, request, ProgressSink::default()).await
}

/// Asks the daemon, if there is one.
pub async fn ask_daemon<R: Ask>(context: &Context, request: R) -> Result<Option<R::Answer>, Error> {
    match connect(&context.directory.socket()?, &hello(context)).await? {
        Some(socket) => api::ask(&socket, request).await.map(Some),
        None => Ok(None),
    }
}

pub async fn ask_with_progress<R: Ask>(
    context: &Context,
    request: R,
    progress: ProgressSink,
) -> Result<R::Answer, Error> {
    let key = Some(Uuid::now_v7().to_string());
    ask_call::<R>(context, Call { key, progress, ..Call::new(request) }).await
}

/// Asks under a key that the caller chose, so that it is done once however often it is asked.
pub async fn ask_once<R: Ask>(
    context: &Context,
    key: String,
    request: R,
) -> Result<R::Answer, Error> {
    ask_call::<R>(context, Call { key: Some(key), ..Call::new(request) }).await
}

async fn ask_call<R: Ask>(context: &Context, call: Call) -> Result<R::Answer, Error> {
    let answer = match call_once(context, call.clone()).await {
        Err(lost) if lost.code == Code::Unreachable => call_once(context, call).await?,
        other => other?,
    };
    let wrong = || Error::new(Code::Failed, "the answer does not belong to the request");
    R::from_answer(answer).ok_or_else(wrong)
}

async fn call_once(context: &Context, call: Call) -> Result<Answer, Error> {
    let access = Access::open(context, Absent::of(&call.request)).await?;
    let answer = access.handle().call(call).await;
    access.close().await;
    answer
}

/// The watch wherever it is, for a process that stays: several calls at a time, each on a connection of its
/// own, and a daemon that has gone is looked for again. However many calls there are, they have a bounded
/// number of connections, one after the other.
#[derive(Debug)]
pub struct Staying {
    context: Context,
    idle: Mutex<Vec<Socket>>,
    waiting: Semaphore,
    asking: Semaphore,
}

impl Staying {
    pub fn new(context: Context) -> Staying {
        let (waiting, asking) = (Semaphore::new(WAITING_MAX), Semaphore::new(ASKING_MAX));
        Staying { context, idle: Mutex::default(), waiting, asking }
    }

    /// Those that wait for news keep nobody from asking, and whoever had no turn in time only looks.
    async fn turn(&self, until: Instant) -> Option<SemaphorePermit<'_>> {
        if Instant::now() < until
            && let Ok(turn) = timeout_at(until, self.waiting.acquire()).await
        {
            return turn.ok();
        }
        self.asking.acquire().await.ok()
    }

    async fn call_once(&self, mut call: Call) -> Result<Answer, Error> {
        let until = Instant::now() + wait_of(&mut call.request).map_or(Duration::ZERO, asked);
        let _turn = self.turn(until).await;
        let socket = loop {
            let idle = self.idle().pop();
            if let Some(socket) = idle {
                break socket;
            }
            let access = match Access::open(&self.context, Absent::of(&call.request)).await? {
                Access::Daemon(socket) => break socket,
                access @ Access::Directory { .. } => access,
            };
            // Others want the directory too, so it is not held while there is nothing new.
            let mut look = call.clone();
            if let Some(wait_ms) = wait_of(&mut look.request) {
                *wait_ms = 0;
            }
            let answer = access.handle().call(look).await;
            access.close().await;
            let left = until.saturating_duration_since(Instant::now());
            match &answer {
                Ok(found) if !left.is_zero() && !is_news(&call.request, found) => {
                    sleep(left.min(NEWS_POLL)).await;
                }
                _ => return answer,
            }
        };
        if let Some(wait_ms) = wait_of(&mut call.request) {
            let left = until.saturating_duration_since(Instant::now());
            *wait_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        }
        let answer = socket.call(call).await;
        if answer.as_ref().err().is_none_or(|error| error.code != Code::Unreachable) {
            let mut idle = self.idle();
            if idle.len() < IDLE_MAX {
                idle.push(socket);
            }
        }
        answer
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle for Staying {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let key = call.key.or_else(|| Some(Uuid::now_v7().to_string()));
            let call = Call { key, ..call };
            match self.call_once(call.clone()).await {
                Err(lost) if lost.code == Code::Unreachable => {
                    // The others are of the same daemon.
                    self.idle().clear();
                    // What the first of both did was asked for once.
                    self.call_once(call).await.map(Answer::first)
                }
                other => other,
            }
        }
        .boxed()
    }
}

/// How long a request waits for news, in milliseconds, if it is of that kind.
pub fn wait_of(request: &mut Request) -> Option<&mut u32> {
    match request {
        Request::RunWatch(asked) => Some(&mut asked.wait_ms),
        Request::LedgerTail(asked) => Some(&mut asked.wait_ms),
        Request::News(asked) => Some(&mut asked.wait_ms),
        _ => None,
    }
}

fn asked(wait_ms: &mut u32) -> Duration {
    Duration::from_millis((*wait_ms).into())
}

/// Whether this is what a daemon would have answered at once.
fn is_news(request: &Request, answer: &Answer) -> bool {
    match (request, answer) {
        (Request::RunWatch(asked), Answer::RunWatch(found)) => {
            found.ended || found.seen != asked.seen.clone().unwrap_or_default()
        }
        (Request::LedgerTail(asked), Answer::LedgerTail(found)) => {
            asked.after.is_none() || !found.events.is_empty()
        }
        (Request::News(asked), Answer::News(found)) => {
            !found.about.is_empty()
                || (asked.any && asked.after.is_some_and(|it| it < found.cursor))
        }
        _ => true,
    }
}

/// Who does the work of agents in this directory. None of their requests goes to the port that is the watch's
/// own.
pub fn doer(
    context: &Context,
    environment: BTreeMap<String, String>,
    redactor: Arc<Redactor>,
    own_port: Option<u16>,
) -> Arc<dyn AgentBackend> {
    let keyring = Arc::new(Keyring::new(environment.clone(), redactor));
    let outputs = context.directory.path().join(OUTPUTS);
    let http = Http::new().keeping_off(own_port);
    Arc::new(Backends::new(outputs, environment, keyring, http))
}

/// Opens the directory whose lock the caller holds.
pub async fn open_watch(context: &Context, loaded: &Loaded) -> Result<Engine, Error> {
    let (settings, standing) = (context.settings(&loaded.config), context.standing(loaded)?);
    let storage = Storage::of(context, &loaded.config)?;
    let store = storage.open(&context.directory).await?;
    let watch = Engine::open(store, Arc::new(SystemClock), settings, standing).await?;
    watch.keeps(kept_secrets(context, &loaded.config));
    watch.set_tools(Arc::new(OwnTools));
    Ok(watch)
}

/// The secrets that the configuration names, and where those of agents are found.
fn kept_secrets(context: &Context, config: &Config) -> Kept {
    let keys = [("store.password", &config.store.password), ("notice.token", &config.notice.token)];
    let keys = keys.into_iter().filter_map(|(key, secret)| Some((key, secret.clone()?)));
    let secrets = Keyring::new(context.environment.clone(), Arc::new(Redactor::new()));
    Kept { keys: keys.collect(), secrets: Arc::new(secrets) }
}

/// Who this process says to be.
fn hello(context: &Context) -> Hello {
    let given = |name: &str| context.environment.get(name).filter(|it| !it.is_empty()).cloned();
    Hello {
        run: given(RUN_ID),
        token: given(TOKEN).map(wire::Secret),
        assistant: context.assistant,
        ..Hello::new(VERSION)
    }
}

pub fn no_watch(directory: &Directory) -> Error {
    let what = format!("there is no watch in `{}` yet", directory.path().display());
    let hint = "`midwatch up` starts one; `--data DIR` names another directory";
    Error::new(Code::NotFound, what).hint(hint)
}

pub fn held(directory: &Directory) -> Error {
    let path = directory.path().display();
    let by =
        directory.owner().map_or("another process".to_owned(), |owner| format!("process {owner}"));
    Error::new(Code::AlreadyRunning, format!("the data directory `{path}` is held by {by}"))
        .hint("`midwatch status` tells more; stop it first, or use another directory with `--data`")
}
