//! The daemon's end of the Unix socket: one task per connection, which handles one call at a time.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::wire::{ClientFrame, Hello, PROTOCOL, Reply, RequestFrame};
use api::{Call, Code, Error, Handle, ProgressSink};
use gateway::{ConcurrencyLimit, ConcurrencyPermit, FREE_BYTES_MAX, Reservation};
use kernel::{Actor, Role};
use runtime::{Credentials, Engine};
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};
use transport::frames;

use super::admission::{Admission, Place};
use super::frame_memory::{FrameMemory, too_much_memory};
use super::peer::Peer;
use crate::context::VERSION;

/// Connections of all principals that are not operators, so that an operator can always connect to stop them.
const NON_OPERATOR_CONNECTIONS_MAX: usize = 192;
/// Connections of one principal that is not an operator.
const PRINCIPAL_CONNECTIONS_MAX: usize = 128;
/// How long a client may take to send its hello and its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
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
    let admission = Arc::new(Admission::default());
    let limits = Arc::new(PrincipalLimits::default());
    let mut stop = stopped.clone();
    loop {
        select! {
            _ = stop.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some(connection) = AdmittedConnection::admit(stream, &admission) {
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

/// An admitted connection.
struct AdmittedConnection {
    stream: UnixStream,
    peer: Peer,
    place: Place,
}

/// Limits on the connections of principals that are not operators: agents, their runs, assistants and observers.
struct PrincipalLimits {
    per_principal: ConcurrencyLimit,
    non_operators: Arc<Semaphore>,
    frames: FrameMemory,
}

impl Default for PrincipalLimits {
    fn default() -> PrincipalLimits {
        let non_operators = Arc::new(Semaphore::new(NON_OPERATOR_CONNECTIONS_MAX));
        PrincipalLimits {
            per_principal: ConcurrencyLimit::new(PRINCIPAL_CONNECTIONS_MAX),
            non_operators,
            frames: FrameMemory::default(),
        }
    }
}

impl PrincipalLimits {
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

impl AdmittedConnection {
    fn admit(stream: UnixStream, admission: &Arc<Admission>) -> Option<AdmittedConnection> {
        let peer = Peer::of_unix_stream(&stream).ok().flatten()?;
        let place = admission.admit(peer.pid, &peer.ancestry)?;
        Some(AdmittedConnection { stream, peer, place })
    }

    async fn serve(self, engine: Engine, limits: Arc<PrincipalLimits>, stopped: Receiver<bool>) {
        if let Err(error) = self.serve_requests(engine, &limits, stopped).await {
            debug!(%error, "connection ended early");
        }
    }

    async fn serve_requests(
        self,
        engine: Engine,
        limits: &PrincipalLimits,
        mut stopped: Receiver<bool>,
    ) -> io::Result<()> {
        let AdmittedConnection { stream, peer, place } = self;
        let (input, mut output) = stream.into_split();
        let mut input = BufReader::new(input);
        let first = async {
            frames::write(&mut output, &Hello::new(VERSION)).await?;
            let is_free = |bytes| bytes <= FREE_BYTES_MAX;
            let theirs = frames::read_within::<Hello>(&mut input, is_free).await?;
            let Some(theirs) = theirs.filter(|it| it.protocol == PROTOCOL) else { return Ok(None) };
            let memory = limits.frames.for_first_request(&peer, &theirs);
            let frame = read_frame(&mut input, &mut output, memory).await?;
            Ok(frame.map(|frame| (theirs, frame)))
        };
        let first: Option<io::Result<Option<(Hello, HeldFrame)>>> = select! {
            _ = stopped.wait_for(|stopped| *stopped) => None,
            () = place.closed.cancelled() => None,
            first = timeout(FIRST_REQUEST_TIMEOUT, first) => first.ok(),
        };
        let Some((theirs, mut held)) = first.transpose()?.flatten() else { return Ok(()) };
        place.keep();
        let credentials = Credentials {
            run: theirs.run.as_deref(),
            token: theirs.token.as_ref(),
            assistant: theirs.assistant,
            ..peer.credentials()
        };
        // The permits of a principal that is not an operator, from its first request that is not a stop.
        let mut permits = None;
        let mut looks = theirs.at_terminal;
        loop {
            let HeldFrame { frame, mut memory } = held;
            // Authenticate every request: the token may have been revoked.
            let actor = match frame.stops() {
                true => engine.authenticate_to_stop(credentials).await,
                false if place.only_stops => Err(too_many_connections()),
                false => engine.authenticate(credentials).await,
            };
            let admitted = actor.and_then(|actor| {
                if permits.is_none() && !frame.stops() {
                    permits = Some(limits.acquire(&actor)?);
                }
                Ok(actor)
            });
            let actor = match admitted {
                Ok(actor) => actor,
                Err(refused) => return frames::write(&mut output, &Reply::Error(refused)).await,
            };
            // A stop waits for nothing.
            if std::mem::take(&mut looks) && !frame.stops() {
                engine.record_look(&actor).await;
            }
            let next_memory = limits.frames.for_caller(&peer, &actor);
            match frame {
                ClientFrame::Call(frame) => {
                    respond(&engine.handle(actor), frame, &mut output, &mut memory).await?;
                }
                ClientFrame::Report { report } => {
                    let recorded = engine.handle(actor).report(report).await;
                    let reply = recorded.map_or_else(Reply::Error, |()| Reply::Recorded);
                    frames::write(&mut output, &reply).await?;
                }
            }
            drop(memory);
            let next = select! {
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
                next = read_frame(&mut input, &mut output, next_memory) => next?,
            };
            let Some(next) = next else { return Ok(()) };
            held = next;
        }
    }
}

/// A request, and the memory that it holds. Later its response holds it.
struct HeldFrame {
    frame: ClientFrame,
    memory: Reservation,
}

/// The next request, or `None` at the end. An invalid one is refused and ends the connection, and so is one for which there
/// is no room.
async fn read_frame(
    input: &mut BufReader<OwnedReadHalf>,
    output: &mut OwnedWriteHalf,
    mut memory: Reservation,
) -> io::Result<Option<HeldFrame>> {
    let refused = match frames::read_within(input, |bytes| memory.grow_to(bytes)).await {
        Ok(frame) => return Ok(frame.map(|frame| HeldFrame { frame, memory })),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Error::new(Code::InvalidInput, format!("not a request: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => too_much_memory("request"),
        Err(error) => return Err(error),
    };
    frames::write(output, &Reply::Error(refused)).await?;
    Ok(None)
}

fn too_many_connections() -> Error {
    Error::new(Code::LimitReached, "the daemon has too many connections")
        .hint("`midwatch freeze` and `midwatch run cancel` still work; see `ss -xp` for the others")
}

/// Handles a call to its end, even if the client is gone.
async fn respond(
    handle: &dyn Handle,
    frame: RequestFrame,
    output: &mut OwnedWriteHalf,
    memory: &mut Reservation,
) -> io::Result<()> {
    let (sender, mut receiver) = mpsc::channel(PENDING_PROGRESS_MAX);
    let progress = ProgressSink::new(move |progress| drop(sender.try_send(progress)));
    let mut call = handle.call(Call {
        request: frame.request,
        key: frame.key,
        version: None,
        tool: frame.tool,
        progress,
    });
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
    let line = frames::line(&reply)?;
    drop(reply);
    if !memory.grow_to(line.len()) {
        drop(line);
        return frames::write(output, &Reply::Error(too_much_memory("response"))).await;
    }
    frames::write_line(output, &line).await
}
