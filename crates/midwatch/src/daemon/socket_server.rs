//! The daemon's end of the Unix socket: one task per connection, which handles one call at a time.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::wire::{ClientFrame, Hello, PROTOCOL, Reply, RequestFrame};
use api::{Call, Code, Error, Handle, ProgressSink};
use gateway::{ConcurrencyLimit, ConcurrencyPermit};
use kernel::{Actor, Role};
use runtime::{Credentials, Engine};
use tokio::io::BufReader;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};
use transport::frames;

use super::peer::Peer;
use super::process_tree::Ancestry;
use crate::context::VERSION;

const CONNECTIONS_MAX: usize = 256;
/// Connections of all principals that are not operators, so that an operator can always connect to stop them.
const NON_OPERATOR_CONNECTIONS_MAX: usize = 192;
/// Connections of one principal that is not an operator.
const PRINCIPAL_CONNECTIONS_MAX: usize = 128;
/// Connections of processes that runs started, before they are authenticated.
const RUN_CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// How long open calls may take after the daemon was asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, for example when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Progress messages that wait to be sent; further ones are dropped.
const PENDING_PROGRESS_MAX: usize = 16;

/// Listens on a path, replacing the socket of a previous daemon. The caller owns the data directory.
pub(super) fn listen(path: &Path) -> Result<UnixListener, Error> {
    let listen = || -> io::Result<UnixListener> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    listen().map_err(|error| {
        Error::new(Code::Failed, format!("cannot listen on `{}`: {error}", path.display()))
    })
}

/// Serves until `stopped` becomes true; no response is sent after this returns.
pub(super) async fn serve(listener: UnixListener, engine: Engine, stopped: Receiver<bool>) {
    let mut connections = JoinSet::new();
    let run_permits = Arc::new(Semaphore::new(RUN_CONNECTIONS_MAX));
    let limits = Arc::new(ConnectionLimits::default());
    let mut stop = stopped.clone();
    loop {
        select! {
            _ = stop.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    if let Some(connection) = accept(stream, &run_permits) {
                        let limits = Arc::clone(&limits);
                        connections.spawn(connection.serve(engine.clone(), limits, stopped.clone()));
                    }
                }
                Err(error) => {
                    warn!(%error, "failed to accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Calls that wait for changes are aborted; their clients call again.
    let _ = timeout(STOP_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// An accepted connection.
struct Connection {
    stream: UnixStream,
    peer: Peer,
    /// Released when the connection ends.
    _permit: Option<OwnedSemaphorePermit>,
}

/// Closes the connection at once if no permit is free: waiting processes of runs would keep operators out.
fn accept(stream: UnixStream, run_permits: &Arc<Semaphore>) -> Option<Connection> {
    let peer = Peer::of_unix_stream(&stream).ok().flatten()?;
    let permit = match peer.ancestry {
        Ancestry::External => None,
        Ancestry::Descendant(_) | Ancestry::Unknown => {
            Some(Arc::clone(run_permits).try_acquire_owned().ok()?)
        }
    };
    Some(Connection { stream, peer, _permit: permit })
}

/// Limits on the connections of principals that are not operators: agents, their runs, assistants and observers.
struct ConnectionLimits {
    per_principal: ConcurrencyLimit,
    non_operators: Arc<Semaphore>,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        let non_operators = Arc::new(Semaphore::new(NON_OPERATOR_CONNECTIONS_MAX));
        ConnectionLimits {
            per_principal: ConcurrencyLimit::new(PRINCIPAL_CONNECTIONS_MAX),
            non_operators,
        }
    }
}

impl ConnectionLimits {
    /// Acquires permits; operators need none. It never waits, because waiting would use up a connection.
    fn acquire(
        &self,
        actor: &Actor,
    ) -> Result<Option<(ConcurrencyPermit, OwnedSemaphorePermit)>, Error> {
        if Role::Operator <= actor.role {
            return Ok(None);
        }
        let non_operators = Arc::clone(&self.non_operators).try_acquire_owned().ok();
        let permit = self.per_principal.try_acquire(actor.name().to_owned()).zip(non_operators);
        permit.map(Some).ok_or_else(|| {
            let what = format!("`{}` has too many connections", actor.name());
            Error::new(Code::LimitReached, what).hint("try again when some of its calls are done")
        })
    }
}

impl Connection {
    async fn serve(self, engine: Engine, limits: Arc<ConnectionLimits>, stopped: Receiver<bool>) {
        if let Err(error) = serve_requests(self.stream, self.peer, engine, &limits, stopped).await {
            debug!(%error, "connection ended early");
        }
    }
}

async fn serve_requests(
    stream: UnixStream,
    peer: Peer,
    engine: Engine,
    limits: &ConnectionLimits,
    mut stopped: Receiver<bool>,
) -> io::Result<()> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    frames::write(&mut output, &Hello::new(VERSION)).await?;
    let theirs = match timeout(HELLO_TIMEOUT, frames::read::<Hello>(&mut input)).await {
        Ok(Ok(Some(theirs))) if theirs.protocol == PROTOCOL => theirs,
        Ok(Err(error)) => return Err(error),
        Ok(Ok(_)) | Err(_) => return Ok(()),
    };
    let credentials = Credentials {
        run: theirs.run.as_deref(),
        token: theirs.token.as_ref(),
        assistant: theirs.assistant,
        ..peer.credentials()
    };
    // Send a refusal at once, then still read the client's request: closing earlier would look like a daemon that
    // has died.
    let _room =
        match engine.authenticate(credentials).await.and_then(|actor| limits.acquire(&actor)) {
            Ok(permit) => permit,
            Err(refused) => {
                frames::write(&mut output, &Reply::Error(refused)).await?;
                let _ = timeout(HELLO_TIMEOUT, frames::read::<ClientFrame>(&mut input)).await;
                return Ok(());
            }
        };
    loop {
        let frame = select! {
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
            frame = frames::read::<ClientFrame>(&mut input) => frame,
        };
        let frame = match frame {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let refused = Error::new(Code::InvalidInput, format!("not a request: {error}"));
                return frames::write(&mut output, &Reply::Error(refused)).await;
            }
            Err(error) => return Err(error),
        };
        // Authenticate every request: the token may have been revoked.
        match engine.authenticate(credentials).await {
            Ok(actor) => match frame {
                ClientFrame::Call(frame) => {
                    respond(&engine.handle(actor), frame, &mut output).await?;
                }
                ClientFrame::Report { report } => {
                    let recorded = engine.handle(actor).report(report).await;
                    let reply = recorded.map_or_else(Reply::Error, |()| Reply::Recorded);
                    frames::write(&mut output, &reply).await?;
                }
            },
            Err(refused) => return frames::write(&mut output, &Reply::Error(refused)).await,
        }
    }
}

/// Handles a call to its end, even if the client is gone.
async fn respond(
    handle: &dyn Handle,
    frame: RequestFrame,
    output: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let (sender, mut receiver) = mpsc::channel(PENDING_PROGRESS_MAX);
    let progress = ProgressSink::new(move |progress| drop(sender.try_send(progress)));
    let mut call =
        handle.call(Call { request: frame.request, key: frame.key, tool: frame.tool, progress });
    let mut sent = Ok(());
    let reply = loop {
        select! {
            answer = &mut call => break answer.map_or_else(Reply::Error, Reply::Response),
            Some(progress) = receiver.recv(), if sent.is_ok() => {
                sent = frames::write(output, &Reply::Progress(progress)).await;
            }
        }
    };
    sent?;
    frames::write(output, &reply).await
}
