//! The client's end of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use api::wire::{ClientFrame, Hello, PROTOCOL, Reply, RequestFrame};
use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use crate::frames;

/// How long a client waits for its turn when many others connect.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the daemon may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

const CLOSED: &str = "it closed the connection before it answered";

/// A connection to the daemon. It carries one call at a time; concurrent calls wait for each other.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    connection: Mutex<Connection>,
}

#[derive(Debug)]
struct Connection {
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

/// Connects to the daemon that listens on a socket and checks that both ends have the same protocol version.
/// Returns `None` when no daemon listens there.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use api::wire::Hello;
/// use api::{StatusShow, send};
///
/// match transport::connect("/nowhere/midwatch.sock".as_ref(), &Hello::new("1.2.3")).await? {
///     Some(socket) => println!("{} agents", send(&socket, StatusShow {}).await?.agents),
///     None => println!("no daemon is running"),
/// }
/// # Ok::<(), api::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn connect(path: &Path, ours: &Hello) -> Result<Option<Socket>, Error> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            connect_in_turn(path).await.map_err(|error| unreachable(path, error))?
        }
        Err(error) if is_not_listening(&error) => return Ok(None),
        Err(error) => return Err(not_connected(path, &error)),
    };
    let (input, output) = stream.into_split();
    let mut connection = Connection { input: BufReader::new(input), output };
    let received = timeout(HELLO_TIMEOUT, connection.exchange_hellos(ours)).await;
    let received = received.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let Some(theirs) = received.map_err(|error| unreachable(path, error))? else { return Ok(None) };
    if theirs.protocol != PROTOCOL {
        let what =
            format!("the daemon is midwatch {}, this is midwatch {}", theirs.version, ours.version);
        return Err(Error::new(Code::VersionMismatch, what)
            .hint("restart the daemon, so that both have the same version"));
    }
    Ok(Some(Socket { path: path.to_owned(), connection: Mutex::new(connection) }))
}

/// Connects when it is this client's turn. The queue of the socket is full: without waiting in line, a client finds a place
/// only by chance.
async fn connect_in_turn(path: &Path) -> io::Result<UnixStream> {
    let (sender, connected) = oneshot::channel();
    let path = path.to_owned();
    // A thread of its own: it may wait for ever, and must not keep the process from exiting.
    thread::spawn(move || sender.send(std::os::unix::net::UnixStream::connect(path)));
    let stream = match timeout(TURN_TIMEOUT, connected).await {
        Ok(connected) => connected.map_err(io::Error::other)??,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

impl Connection {
    /// Returns the daemon's hello, or `None` when it closed the connection because it is about to stop.
    async fn exchange_hellos(&mut self, ours: &Hello) -> io::Result<Option<Hello>> {
        frames::write(&mut self.output, ours).await?;
        frames::read(&mut self.input).await
    }

    async fn call(&mut self, call: Call) -> io::Result<Option<Result<Response, Error>>> {
        let frame = RequestFrame { request: call.request, key: call.key, tool: call.tool };
        frames::write(&mut self.output, &ClientFrame::Call(frame)).await?;
        loop {
            match frames::read(&mut self.input).await? {
                Some(Reply::Progress(progress)) => {
                    call.progress.show(progress.done, progress.total)
                }
                Some(Reply::Response(answer)) => return Ok(Some(Ok(answer))),
                Some(Reply::Error(error)) => return Ok(Some(Err(error))),
                Some(Reply::Recorded) => return Err(io::ErrorKind::InvalidData.into()),
                None => return Ok(None),
            }
        }
    }

    async fn report(&mut self, report: ToolReport) -> io::Result<Option<Reply>> {
        frames::write(&mut self.output, &ClientFrame::Report { report }).await?;
        frames::read(&mut self.input).await
    }
}

impl Handle for Socket {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        async move {
            match self.connection.lock().await.call(call).await {
                Ok(Some(answer)) => answer,
                Ok(None) => Err(unreachable(&self.path, CLOSED)),
                Err(error) => Err(unreachable(&self.path, error)),
            }
        }
        .boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            match self.connection.lock().await.report(report).await {
                Ok(Some(Reply::Recorded)) => Ok(()),
                Ok(Some(Reply::Error(error))) => Err(error),
                Ok(Some(Reply::Progress(_) | Reply::Response(_))) => {
                    Err(unreachable(&self.path, "it did not answer the report"))
                }
                Ok(None) => Err(unreachable(&self.path, CLOSED)),
                Err(error) => Err(unreachable(&self.path, error)),
            }
        }
        .boxed()
    }
}

fn is_not_listening(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | ConnectionRefused)
}

/// Nothing was sent. A socket that may not even be looked up says nothing about a daemon.
fn not_connected(path: &Path, error: &io::Error) -> Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return unreachable(path, error);
    }
    let directory = path.parent().unwrap_or(path).display();
    Error::new(Code::ReadOnly, format!("you have no access to `{directory}`: {error}")).hint(
        "it belongs to another user; choose another directory with `--data DIR` or MIDWATCH_DATA",
    )
}

fn unreachable(path: &Path, error: impl std::fmt::Display) -> Error {
    let what = format!("cannot reach the daemon at `{}`: {error}", path.display());
    Error::new(Code::Unreachable, what).hint(
        "check with `midwatch status` whether it is running; the request may or may not have taken effect",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_another_user_is_no_unreachable_daemon() {
        let path = Path::new("/srv/eve/midwatch.sock");
        let denied = not_connected(path, &io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.code, Code::ReadOnly);
        assert_eq!(denied.message, "you have no access to `/srv/eve`: permission denied");
        assert!(denied.hint.unwrap().contains("--data DIR"));
        let lost = not_connected(path, &io::ErrorKind::ConnectionReset.into());
        assert_eq!(lost.code, Code::Unreachable);
    }
}
