//! The protocol over a pair of pipes: one message a line.
//!
//! What cannot be read is answered with an error of the protocol, and the next line is read. Nothing that a
//! client writes ends the server, except the end of what it writes. Whoever asks for more than they read is
//! not listened to until they read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_directly};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::select;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tracing::debug;

use crate::message::{self, Wrong};

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Requests that wait for their answers. Those that listen are far fewer, and all others end by themselves.
const OPEN_MAX: usize = 256;

/// Lines that wait for the client to read those before.
const LINES_WAITING_MAX: usize = 64;

/// How long what was asked last may take to be answered. What was asked of the watch is carried out anyway.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Serves one client until it has said its last.
pub async fn serve<R, W>(server: impl ServerHandler, input: R, output: W) -> io::Result<()>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (said, to_write) = channel(LINES_WAITING_MAX);
    let ended = Arc::new(Notify::new());
    let lines = Lines {
        input,
        line: Vec::new(),
        skips: false,
        owed: None,
        output: said,
        open: watch::Sender::default(),
        ended: Arc::clone(&ended),
    };
    // A client of the later era begins without a handshake, and so may one that is mistaken.
    let running = serve_directly(server, lines, None);
    let written = async {
        if let Err(error) = write(to_write, output).await {
            debug!(%error, "the client cannot be written to");
            ended.notify_one();
        }
    };
    let left_alone = async {
        ended.notified().await;
        sleep(LAST_ANSWERS).await;
    };
    select! {
        (end, ()) = join(running.waiting(), written) => end.map(drop).map_err(io::Error::other),
        () = left_alone => Ok(()),
    }
}

/// Writes line after line. Nobody else does, so that none is cut off by whoever gives up on it.
async fn write<W: AsyncWrite + Unpin>(
    mut lines: Receiver<Vec<u8>>,
    mut output: W,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

struct Lines<R> {
    input: R,
    /// What was read of the line that is being read.
    line: Vec<u8>,
    /// The rest of the line is too much.
    skips: bool,
    /// What was wrong with the last one, as long as nobody was told.
    owed: Option<Wrong>,
    output: Sender<Vec<u8>>,
    /// Requests that were read, and whose answers are not yet on their way.
    open: watch::Sender<Vec<RequestId>>,
    /// Told when there is no more to read.
    ended: Arc<Notify>,
}

/// What came.
enum Came {
    Line,
    TooLong,
    End,
}

impl<R: AsyncBufRead + Send + Unpin + 'static> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, open) = (self.output.clone(), self.open.clone());
        let answered = match &message {
            JsonRpcMessage::Response(answer) => Some(answer.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        async move {
            let line = line_of(&message)?;
            let sent = output.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into());
            close(&open, answered.as_ref());
            sent
        }
    }

    /// May be given up at any time: what is read and not yet told is kept.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.owed.is_some() {
                let place = self.output.reserve().await.ok()?;
                let Wrong { id, error } = self.owed.take()?;
                let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
                place.send(line_of(&answer).ok()?);
            }
            drop(self.open.subscribe().wait_for(|open| open.len() < OPEN_MAX).await.ok()?);
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
                Ok(Some(message)) => {
                    self.count(&message);
                    return Some(message);
                }
                Ok(None) => {}
                Err(wrong) => self.owed = Some(wrong),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No answer to this is owed any more.
fn close(open: &watch::Sender<Vec<RequestId>>, id: Option<&RequestId>) {
    open.send_if_modified(|open| {
        let before = open.len();
        open.retain(|other| Some(other) != id);
        open.len() < before
    });
}

impl<R> Lines<R> {
    fn count(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(asked) => {
                self.open.send_modify(|open| open.push(asked.id.clone()));
            }
            // What is cancelled gets no answer.
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(it) = &told.notification {
                    close(&self.open, it.params.request_id.as_ref());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
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
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Wrong> {
    match line.iter().all(u8::is_ascii_whitespace) {
        true => Ok(None),
        false => message::read(line).map(Some),
    }
}

fn too_long() -> Wrong {
    let what = format!("a message has at most {LINE_BYTES_MAX} bytes");
    Wrong { id: None, error: ErrorData::new(ErrorCode::INVALID_REQUEST, what, None) }
}

fn line_of(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rmcp::model::ServerResult;

    use super::*;

    fn asked(id: usize) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    #[tokio::test]
    async fn whoever_has_too_many_requests_open_is_not_read_until_one_is_answered() {
        let mut input: String = (0..OPEN_MAX).map(asked).collect();
        let cancelled = r#"{"requestId":1}"#;
        input.push_str(&asked(1_000));
        input.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":");
        input.push_str(&format!("{cancelled}}}\n{}{}", asked(1_001), asked(1_002)));
        let (output, mut said) = channel(1);
        let mut lines = Lines {
            input: io::Cursor::new(input.into_bytes()),
            line: Vec::new(),
            skips: false,
            owed: None,
            output,
            open: watch::Sender::default(),
            ended: Arc::default(),
        };
        for _ in 0..OPEN_MAX {
            assert!(lines.receive().await.is_some());
        }
        assert!(lines.receive().now_or_never().is_none(), "there is no end to what it reads");
        let answer = |id| TxJsonRpcMessage::<RoleServer>::response(ServerResult::empty(()), id);
        lines.send(answer(RequestId::Number(0))).await.unwrap();
        said.recv().await.unwrap();
        // What is answered makes room, and so does what is cancelled.
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().now_or_never().is_none());
        lines.send(answer(RequestId::Number(2))).await.unwrap();
        for _ in ["the cancellation", "1001", "1002"] {
            assert!(lines.receive().await.is_some());
        }
        assert!(lines.receive().now_or_never().is_none());
    }
}
