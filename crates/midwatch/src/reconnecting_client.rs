//! A client for a process that stays, such as the MCP server on standard input and output.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Call, Code, Error, Handle, Request, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};
use transport::Socket;
use uuid::Uuid;

use crate::access::{Access, IfMissing};
use crate::context::Context;

/// Idle connections that are kept for later calls.
const IDLE_MAX: usize = 2;
/// Concurrent calls that wait for changes. The daemon limits the connections of one principal.
const LONG_POLLS_MAX: usize = 32;
/// Concurrent calls that do not wait.
const CALLS_MAX: usize = 8;
/// How often to poll for changes while no daemon is running.
const CHANGES_POLL: Duration = Duration::from_secs(1);

/// A handle that works with and without a daemon, and reconnects when the daemon was restarted. Calls run
/// concurrently, each on a connection of its own; the number of connections is limited, and further calls wait.
#[derive(Debug)]
pub struct ReconnectingClient {
    context: Context,
    idle: Mutex<Vec<Socket>>,
    long_polls: Semaphore,
    calls: Semaphore,
}

impl ReconnectingClient {
    pub fn new(context: Context) -> ReconnectingClient {
        let (long_polls, calls) = (Semaphore::new(LONG_POLLS_MAX), Semaphore::new(CALLS_MAX));
        ReconnectingClient { context, idle: Mutex::default(), long_polls, calls }
    }

    /// Calls that wait for changes have permits of their own, so they cannot block others. One that gets no permit
    /// before its deadline becomes a call that does not wait.
    async fn acquire_permit(&self, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        if Instant::now() < deadline
            && let Ok(permit) = timeout_at(deadline, self.long_polls.acquire()).await
        {
            return permit.ok();
        }
        self.calls.acquire().await.ok()
    }

    async fn call_once(&self, mut call: Call) -> Result<Response, Error> {
        let deadline =
            Instant::now() + call.request.wait_ms_mut().map_or(Duration::ZERO, wait_duration);
        let _permit = self.acquire_permit(deadline).await;
        let socket = loop {
            let idle = self.idle().pop();
            if let Some(socket) = idle {
                break socket;
            }
            let access =
                match Access::open(&self.context, IfMissing::for_request(&call.request)).await? {
                    Access::Daemon(socket) => break socket,
                    access @ Access::Directory { .. } => access,
                };
            // Other processes need the directory, too: release it between polls.
            let mut poll = call.clone();
            if let Some(wait_ms) = poll.request.wait_ms_mut() {
                *wait_ms = 0;
            }
            let answer = access.handle().call(poll).await;
            access.close().await;
            let left = deadline.saturating_duration_since(Instant::now());
            match &answer {
                Ok(found) if !left.is_zero() && !has_changes(&call.request, found) => {
                    sleep(left.min(CHANGES_POLL)).await;
                }
                _ => return answer,
            }
        };
        if let Some(wait_ms) = call.request.wait_ms_mut() {
            let left = deadline.saturating_duration_since(Instant::now());
            *wait_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        }
        let answer = socket.call(call).await;
        if answer.as_ref().err().is_none_or(|error| error.code != Code::Unreachable) {
            self.keep(socket);
        }
        answer
    }

    async fn report_once(&self, report: ToolReport) -> Result<(), Error> {
        let _permit = self.calls.acquire().await.ok();
        let idle = self.idle().pop();
        let access = match idle {
            Some(socket) => Access::Daemon(socket),
            None => Access::open(&self.context, IfMissing::Refuse).await?,
        };
        let recorded = access.handle().report(report).await;
        match access {
            Access::Daemon(socket) if recorded.is_ok() => self.keep(socket),
            Access::Daemon(_) => {}
            access @ Access::Directory { .. } => access.close().await,
        }
        recorded
    }

    /// Keeps a connection for later calls.
    fn keep(&self, socket: Socket) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(socket);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle for ReconnectingClient {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        async move {
            let key = call.key.or_else(|| Some(Uuid::now_v7().to_string()));
            let call = Call { key, ..call };
            match self.call_once(call.clone()).await {
                Err(lost) if lost.code == Code::Unreachable => {
                    // The idle connections are of the same, lost daemon.
                    self.idle().clear();
                    // The key makes this a repetition of the first call, so report what that one did.
                    self.call_once(call).await.map(Response::first)
                }
                other => other,
            }
        }
        .boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            match self.report_once(report.clone()).await {
                Err(lost) if lost.code == Code::Unreachable => {
                    self.idle().clear();
                    self.report_once(report).await
                }
                other => other,
            }
        }
        .boxed()
    }
}

fn wait_duration(wait_ms: &mut u32) -> Duration {
    Duration::from_millis((*wait_ms).into())
}

/// Whether a waiting daemon would have returned this response at once.
fn has_changes(request: &Request, answer: &Response) -> bool {
    match (request, answer) {
        (Request::RunWatch(request), Response::RunWatch(found)) => {
            found.ended || found.seen != request.seen.clone().unwrap_or_default()
        }
        (Request::LedgerTail(request), Response::LedgerTail(found)) => {
            request.after.is_none() || !found.events.is_empty()
        }
        (Request::WaitForChanges(request), Response::WaitForChanges(found)) => {
            !found.about.is_empty()
                || (request.any && request.after.is_some_and(|it| it < found.cursor))
        }
        _ => true,
    }
}
