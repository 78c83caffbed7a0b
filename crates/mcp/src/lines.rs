//! The protocol over a pair of pipes: one message a line.
//!
//! What cannot be read is answered with an error of the protocol, and the next line is read. Nothing that a
//! client writes ends the server, except the end of what it writes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_directly};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::select;
use tokio::sync::{Mutex, Notify};
use tokio::time::sleep;
use tracing::debug;

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// How long what was asked last may take to be answered. What was asked of the watch is carried out anyway.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Serves one client until it has said its last.
pub async fn serve<R, W>(server: impl ServerHandler, input: R, output: W) -> io::Result<()>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (output, ended) = (Arc::new(Mutex::new(output)), Arc::new(Notify::new()));
    let lines = Lines { input, line: Vec::new(), skips: false, output, ended: Arc::clone(&ended) };
    // A client of the later era begins without a handshake, and so may one that is mistaken.
    let running = serve_directly(server, lines, None);
    let left_alone = async {
        ended.notified().await;
        sleep(LAST_ANSWERS).await;
    };
    select! {
        end = running.waiting() => end.map(drop).map_err(io::Error::other),
        () = left_alone => Ok(()),
    }
}

struct Lines<R, W> {
    input: R,
    /// What was read of the line that is being read.
    line: Vec<u8>,
    /// The rest of the line is too much.
    skips: bool,
    output: Arc<Mutex<W>>,
    /// Told when there is no more to read.
    ended: Arc<Notify>,
}

/// What came.
enum Came {
    Line,
    TooLong,
    End,
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        write(Arc::clone(&self.output), message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let read = match self.read_line().await {
                Ok(Came::End) => {
                    self.ended.notify_one();
                    return None;
                }
                Ok(Came::TooLong) => Err(too_long()),
                Ok(Came::Line) => {
                    let message = parse(&self.line);
                    self.line.clear();
                    message
                }
                Err(error) => {
                    debug!(%error, "the client cannot be read");
                    self.ended.notify_one();
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(wrong) => {
                    let answer = TxJsonRpcMessage::<RoleServer>::error(wrong, None);
                    write(Arc::clone(&self.output), answer).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

impl<R: AsyncBufRead + Unpin, W> Lines<R, W> {
    /// Reads up to the end of a line. May be given up at any time, and goes on where it was.
    async fn read_line(&mut self) -> io::Result<Came> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                // The last line may do without an end.
                return Ok(match std::mem::take(&mut self.skips) {
                    true => self.too_long(),
                    false if self.line.is_empty() => Came::End,
                    false => Came::Line,
                });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let (line, used) = match end {
                Some(end) => (read.get(..end).unwrap_or_default(), end + 1),
                None => (read, read.len()),
            };
            let fits = self.line.len() + line.len() <= LINE_BYTES_MAX;
            if !self.skips && fits {
                self.line.extend_from_slice(line);
            }
            self.input.consume(used);
            self.skips |= !fits;
            if end.is_none() {
                continue;
            }
            return Ok(match std::mem::take(&mut self.skips) {
                true => self.too_long(),
                false => Came::Line,
            });
        }
    }

    fn too_long(&mut self) -> Came {
        self.line = Vec::new();
        Came::TooLong
    }
}

/// `None` for a line with nothing on it.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, ErrorData> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    api::json::read(line).map(Some).map_err(|wrong| {
        let code = match wrong.classify() {
            serde_json::error::Category::Data => ErrorCode::INVALID_REQUEST,
            _ => ErrorCode::PARSE_ERROR,
        };
        ErrorData::new(code, format!("this is no message: {wrong}"), None)
    })
}

fn too_long() -> ErrorData {
    let what = format!("a message has at most {LINE_BYTES_MAX} bytes");
    ErrorData::new(ErrorCode::INVALID_REQUEST, what, None)
}

async fn write<W: AsyncWrite + Unpin>(
    output: Arc<Mutex<W>>,
    message: TxJsonRpcMessage<RoleServer>,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}
