//! The daemon's end of the socket: one task for each connection, one call at a time in each.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::wire::{Asked, Hello, PROTOCOL, Reply};
use api::{Call, Code, Error, Handle, ProgressSink};
use client::frames;
use gateway::{Place, Places};
use kernel::{Actor, Role};
use runtime::{Visitor, Engine};
use tokio::io::BufReader;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::descent::Parentage;
use super::peer::Peer;
use crate::context::VERSION;

const CONNECTIONS_MAX: usize = 256;
/// Of these, for all who are no operators, so that there is always one for whoever wants to stop them.
const OF_OTHERS_MAX: usize = 192;
/// Of these, for one principal.
const OF_EACH_MAX: usize = 128;
/// For what runs have started, before it is known who that is.
const OF_RUNS_MAX: usize = 64;
/// How long a client may take to greet.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// How long calls that are under way may take after the daemon was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// After an accept that failed, as it does when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Progress that waits to be sent; what does not fit is left out.
const PROGRESS_WAITING_MAX: usize = 16;

/// Listens where a socket of an earlier life may have stayed. The caller owns the directory.
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

/// Serves until it is told to stop; nothing is answered any more once this returns.
pub(super) async fn serve(listener: UnixListener, watch: Engine, stopped: Receiver<bool>) {
    let mut connections = JoinSet::new();
    let of_runs = Arc::new(Semaphore::new(OF_RUNS_MAX));
    let room = Arc::new(Room::default());
    let mut stop = stopped.clone();
    loop {
        select! {
            _ = stop.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    if let Some(connection) = admitted(stream, &of_runs) {
                        let room = Arc::clone(&room);
                        connections.spawn(connection.serve(watch.clone(), room, stopped.clone()));
                    }
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Those that wait for news are cut off; they ask again.
    let _ = timeout(STOP_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// A connection that has a place.
struct Connection {
    stream: UnixStream,
    peer: Peer,
    /// Given back when it ends.
    _place: Option<OwnedSemaphorePermit>,
}

/// Nobody waits for a place: those of runs would keep out whoever wants to stop them.
fn admitted(stream: UnixStream, of_runs: &Arc<Semaphore>) -> Option<Connection> {
    let peer = Peer::of(&stream).ok().flatten()?;
    let place = match peer.parentage {
        Parentage::Stranger => None,
        Parentage::Child(_) | Parentage::Unknown => {
            Some(Arc::clone(of_runs).try_acquire_owned().ok()?)
        }
    };
    Some(Connection { stream, peer, _place: place })
}

/// Places for those who are no operators: agents, their runs and assistants, and whoever only looks.
struct Room {
    of_each: Places,
    of_others: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Room {
        let of_others = Arc::new(Semaphore::new(OF_OTHERS_MAX));
        Room { of_each: Places::new(OF_EACH_MAX), of_others }
    }
}

impl Room {
    /// Operators need none. Nobody waits for one, as that would take up a connection.
    fn place(&self, actor: &Actor) -> Result<Option<(Place, OwnedSemaphorePermit)>, Error> {
        if Role::Operator <= actor.role {
            return Ok(None);
        }
        let of_others = Arc::clone(&self.of_others).try_acquire_owned().ok();
        let place = self.of_each.take(actor.name.clone()).zip(of_others);
        place.map(Some).ok_or_else(|| {
            let what = format!("`{}` can have no more connections now", actor.name);
            Error::new(Code::LimitReached, what)
                .hint("try again when some of its calls have been answered")
        })
    }
}

impl Connection {
    async fn serve(self, watch: Engine, room: Arc<Room>, stopped: Receiver<bool>) {
        if let Err(error) = converse(self.stream, self.peer, watch, &room, stopped).await {
            debug!(%error, "a connection ended early");
        }
    }
}

async fn converse(
    stream: UnixStream,
    peer: Peer,
    watch: Engine,
    room: &Room,
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
    let visitor = Visitor {
        run: theirs.run.as_deref(),
        token: theirs.token.as_ref(),
        assistant: theirs.assistant,
        ..peer.visitor()
    };
    // Whoever has no business here is told so at once, and heard out: to hang up on one who is about to
    // ask would look like a daemon that has died.
    let _room = match watch.admit(visitor).await.and_then(|actor| room.place(&actor)) {
        Ok(place) => place,
        Err(refused) => {
            frames::write(&mut output, &Reply::Error(refused)).await?;
            let _ = timeout(HELLO_TIMEOUT, frames::read::<Asked>(&mut input)).await;
            return Ok(());
        }
    };
    loop {
        let asked = select! {
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
            asked = frames::read::<Asked>(&mut input) => asked,
        };
        let asked = match asked {
            Ok(Some(asked)) => asked,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let refused = Error::new(Code::InvalidInput, format!("not a request: {error}"));
                return frames::write(&mut output, &Reply::Error(refused)).await;
            }
            Err(error) => return Err(error),
        };
        // Each time anew: a token may have been revoked since.
        match watch.admit(visitor).await {
            Ok(actor) => answer(&watch.handle(actor), asked, &mut output).await?,
            Err(refused) => return frames::write(&mut output, &Reply::Error(refused)).await,
        }
    }
}

/// A call is carried out to its end, whether or not somebody still listens.
async fn answer(handle: &dyn Handle, asked: Asked, output: &mut OwnedWriteHalf) -> io::Result<()> {
    let (sender, mut receiver) = mpsc::channel(PROGRESS_WAITING_MAX);
    let progress = ProgressSink::new(move |progress| drop(sender.try_send(progress)));
    let mut call =
        handle.call(Call { request: asked.request, key: asked.key, tool: asked.tool, progress });
    let mut sent = Ok(());
    let reply = loop {
        select! {
            answer = &mut call => break answer.map_or_else(Reply::Error, Reply::Answer),
            Some(progress) = receiver.recv(), if sent.is_ok() => {
                sent = frames::write(output, &Reply::Progress(progress)).await;
            }
        }
    };
    sent?;
    frames::write(output, &reply).await
}
