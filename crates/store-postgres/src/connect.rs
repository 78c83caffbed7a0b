//! Opens connections: tries the servers of a [`Target`] in order, and negotiates TLS with each.
//!
//! tokio-postgres could do both, but then nothing could stand between it and the server: it gets every
//! stream from here, behind [`ScramOnly`].

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use socket2::{SockRef, TcpKeepalive};
use store::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::select;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Connection, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::either::Either;
use tracing::debug;

use crate::error::classify;
use crate::scram_only::ScramOnly;
use crate::spawn;
use crate::target::{Address, Server, Target};

/// How long to wait for a server to accept a connection.
const ACCEPT_WAIT_MAX: Duration = Duration::from_secs(10);
/// Idle time after which TCP keepalive probes start.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVES_MAX: u32 = 3;
/// A connection is closed if sent data is not acknowledged for this long.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// Asks the server for TLS: the length of the message, and its code in place of a protocol version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const TLS_ACCEPTED: u8 = b'S';

type Socket = Either<TcpStream, UnixStream>;
type Tls = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
type Stream = ScramOnly<Either<Socket, Tls>>;
pub(crate) type ServerConnection = Connection<Stream, Stream>;

/// Leaves a stream as it is: TLS was negotiated before.
struct Negotiated;

/// Where to open a socket, after the name of the server was resolved.
enum SocketAddress<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// Connects to the first server that accepts the client. The caller drives the connection.
pub(crate) async fn connect(target: &Target) -> Result<(Client, ServerConnection), Error> {
    let mut last_error = unreachable("the name of the server has no address");
    for server in target.servers() {
        let addresses = match resolve(&server.address).await {
            Ok(addresses) => addresses,
            Err(error) => {
                last_error = unreachable(error);
                continue;
            }
        };
        for address in addresses {
            // Boxed, because the state of a TLS handshake would be part of every caller's future.
            match connect_to(target, server, address).boxed().await {
                Ok(connected) => return Ok(connected),
                Err(error) => last_error = error,
            }
        }
    }
    Err(last_error)
}

/// Connects, and drives the connection in a task that ends with the connection.
pub(crate) async fn connect_client(target: &Target) -> Result<(Client, JoinHandle<()>), Error> {
    let (client, connection) = connect(target).await?;
    let driver = spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "a database connection ended");
        }
    });
    Ok((client, driver))
}

async fn connect_to(
    target: &Target,
    server: &Server,
    address: SocketAddress<'_>,
) -> Result<(Client, ServerConnection), Error> {
    let opened = timeout(ACCEPT_WAIT_MAX, open_socket(address)).await;
    let socket = opened.map_err(|_| unreachable("the server does not accept the connection"))?;
    let stream = negotiate_tls(target, server, socket.map_err(unreachable)?).await?;
    let connected = target.config().connect_raw(ScramOnly::new(stream), Negotiated).await;
    let (client, mut connection) = connected.map_err(classify)?;
    let required = target.config().get_target_session_attrs();
    if required != TargetSessionAttrs::Any {
        let is_read_only = select! {
            ended = &mut connection => {
                ended.map_err(classify)?;
                return Err(unreachable("the server closed the connection"));
            }
            answer = client.simple_query("SHOW transaction_read_only") => {
                is_on(&answer.map_err(classify)?)
            }
        };
        if is_read_only != (required == TargetSessionAttrs::ReadOnly) {
            let what = if is_read_only { "does not allow writes" } else { "is not read-only" };
            return Err(Error::Unreachable(format!("the database {what}")));
        }
    }
    Ok((client, connection))
}

fn is_on(answer: &[SimpleQueryMessage]) -> bool {
    answer.iter().any(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0) == Some("on"),
        _ => false,
    })
}

async fn resolve(address: &Address) -> io::Result<Vec<SocketAddress<'_>>> {
    match address {
        Address::Unix(path) => Ok(vec![SocketAddress::Unix(path)]),
        Address::Tcp(host, port) => {
            Ok(lookup_host((host.as_str(), *port)).await?.map(SocketAddress::Tcp).collect())
        }
    }
}

async fn open_socket(address: SocketAddress<'_>) -> io::Result<Socket> {
    let stream = match address {
        SocketAddress::Unix(path) => return UnixStream::connect(path).await.map(Either::Right),
        SocketAddress::Tcp(address) => TcpStream::connect(address).await?,
    };
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVES_MAX);
    let options = SockRef::from(&stream);
    options.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    options.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(Either::Left(stream))
}

async fn negotiate_tls(
    target: &Target,
    server: &Server,
    mut socket: Socket,
) -> Result<Either<Socket, Tls>, Error> {
    if target.ssl_mode() == SslMode::Disable {
        return Ok(Either::Left(socket));
    }
    socket.write_all(&TLS_REQUEST).await.map_err(unreachable)?;
    // Only one byte, so that nothing that was sent without TLS counts as sent with it.
    if socket.read_u8().await.map_err(unreachable)? == TLS_ACCEPTED {
        let mut tls = target.tls().clone();
        let Ok(tls) = MakeTlsConnect::<Socket>::make_tls_connect(&mut tls, &server.name);
        let failed = |error| Error::Unreachable(format!("the TLS handshake failed: {error}"));
        return tls.connect(socket).await.map(Either::Right).map_err(failed);
    }
    match target.ssl_mode() {
        SslMode::Prefer => Ok(Either::Left(socket)),
        _ => Err(Error::Failed("the server does not support TLS".into())),
    }
}

fn unreachable(error: impl ToString) -> Error {
    Error::Unreachable(error.to_string())
}

impl TlsConnect<Stream> for Negotiated {
    type Stream = Stream;
    type Error = Infallible;
    type Future = Ready<Result<Stream, Infallible>>;

    fn connect(self, stream: Stream) -> Self::Future {
        ready(Ok(stream))
    }
}
