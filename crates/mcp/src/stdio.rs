//! MCP over standard input and output: one message per line.
//!
//! An invalid line is answered with a protocol error, and the next line is read. Only the end of the input ends the
//! server. While a client does not read its answers, no further requests are read.

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

use crate::message::{self, InvalidMessage};

/// Longest line; longer ones are refused.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of unanswered requests. Subscriptions are limited to far fewer, and all others end by themselves.
const OPEN_REQUESTS_MAX: usize = 256;

/// Maximum number of lines that wait to be written.
const OUTPUT_LINES_MAX: usize = 64;

/// Time for the last answers after the input has ended. The requests are executed in any case.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves one client until its input ends.
pub async fn serve_stdio<R, W>(server: impl ServerHandler, input: R, output: W) -> io::Result<()>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (output_lines, to_write) = channel(OUTPUT_LINES_MAX);
    let ended = Arc::new(Notify::new());
    let transport = LineTransport {
        input,
        line: Vec::new(),
        is_skipping: false,
        unanswered: None,
        output: output_lines,
        open: watch::Sender::default(),
        ended: Arc::clone(&ended),
    };
    // Without a handshake: the later era has none.
    let running = serve_directly(server, transport, None);
    let written = async {
        if let Err(error) = write_lines(to_write, output).await {
            debug!(%error, "cannot write to the client");
            ended.notify_one();
        }
    };
    let timed_out = async {
        ended.notified().await;
        sleep(LAST_ANSWERS_TIMEOUT).await;
    };
    select! {
        (end, ()) = join(running.waiting(), written) => end.map(drop).map_err(io::Error::other),
        () = timed_out => Ok(()),
    }
}

/// Writes all lines. It is the only writer, so a cancelled request cannot leave half a line.
async fn write_lines<W: AsyncWrite + Unpin>(
    mut lines: Receiver<Vec<u8>>,
    mut output: W,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
        output.flush().await?;
    }
    output.shutdown().await
}

struct LineTransport<R> {
    input: R,
    /// The part of the current line that was read so far.
    line: Vec<u8>,
    /// The current line is too long, and its rest is skipped.
    is_skipping: bool,
    /// An invalid line that is not answered yet.
    unanswered: Option<InvalidMessage>,
    output: Sender<Vec<u8>>,
    /// Requests whose answers are not sent yet.
    open: watch::Sender<Vec<RequestId>>,
    /// Notified at the end of the input.
    ended: Arc<Notify>,
}

/// What was read.
enum Input {
    Line,
    TooLong,
    End,
}

impl<R: AsyncBufRead + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<R> {
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
            close_request(&open, answered.as_ref());
            sent
        }
    }

    /// Cancel-safe: a partly read line and an unanswered error are kept.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.unanswered.is_some() {
                let permit = self.output.reserve().await.ok()?;
                let InvalidMessage { id, error } = self.unanswered.take()?;
                let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
                permit.send(line_of(&answer).ok()?);
            }
            drop(self.open.subscribe().wait_for(|open| open.len() < OPEN_REQUESTS_MAX).await.ok()?);
            let read = match self.read_line().await {
                Ok(Input::End) => {
                    self.ended.notify_one();
                    return None;
                }
                Ok(Input::TooLong) => Err(too_long()),
                Ok(Input::Line) => {
                    let message = parse(&self.line);
                    self.line.clear();
                    message
                }
                Err(error) => {
                    debug!(%error, "cannot read from the client");
                    self.ended.notify_one();
                    return None;
                }
            };
            match read {
                Ok(Some(message)) => {
                    self.track(&message);
                    return Some(message);
                }
                Ok(None) => {}
                Err(invalid) => self.unanswered = Some(invalid),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes a request from the open ones.
fn close_request(open: &watch::Sender<Vec<RequestId>>, id: Option<&RequestId>) {
    open.send_if_modified(|open| {
        let before = open.len();
        open.retain(|other| Some(other) != id);
        open.len() < before
    });
}

impl<R> LineTransport<R> {
    /// Updates the open requests.
    fn track(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.send_modify(|open| open.push(request.id.clone()));
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(it) = &message.notification {
                    close_request(&self.open, it.params.request_id.as_ref());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

impl<R: AsyncBufRead + Unpin> LineTransport<R> {
    /// Reads up to the end of a line. Cancel-safe.
    async fn read_line(&mut self) -> io::Result<Input> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                // The last line may have no line end.
                return Ok(match std::mem::take(&mut self.is_skipping) {
                    true => self.too_long(),
                    false if self.line.is_empty() => Input::End,
                    false => Input::Line,
                });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let (line, used) = match end {
                Some(end) => (read.get(..end).unwrap_or_default(), end + 1),
                None => (read, read.len()),
            };
            let fits = self.line.len() + line.len() <= LINE_BYTES_MAX;
            if !self.is_skipping && fits {
                self.line.extend_from_slice(line);
            }
            self.input.consume(used);
            self.is_skipping |= !fits;
            if end.is_none() {
                continue;
            }
            return Ok(match std::mem::take(&mut self.is_skipping) {
                true => self.too_long(),
                false => Input::Line,
            });
        }
    }

    fn too_long(&mut self) -> Input {
        self.line = Vec::new();
        Input::TooLong
    }
}

/// `None` for a blank line.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, InvalidMessage> {
    match line.iter().all(u8::is_ascii_whitespace) {
        true => Ok(None),
        false => message::parse(line).map(Some),
    }
}

fn too_long() -> InvalidMessage {
    let what = format!("the message is longer than {LINE_BYTES_MAX} bytes");
    InvalidMessage { id: None, error: ErrorData::new(ErrorCode::INVALID_REQUEST, what, None) }
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

    fn ping(id: usize) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    #[tokio::test]
    async fn no_request_is_read_while_too_many_are_unanswered() {
        let mut input: String = (0..OPEN_REQUESTS_MAX).map(ping).collect();
        let cancelled = r#"{"requestId":1}"#;
        input.push_str(&ping(1_000));
        input.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":");
        input.push_str(&format!("{cancelled}}}\n{}{}", ping(1_001), ping(1_002)));
        let (output, mut lines) = channel(1);
        let mut transport = LineTransport {
            input: io::Cursor::new(input.into_bytes()),
            line: Vec::new(),
            is_skipping: false,
            unanswered: None,
            output,
            open: watch::Sender::default(),
            ended: Arc::default(),
        };
        for _ in 0..OPEN_REQUESTS_MAX {
            assert!(transport.receive().await.is_some());
        }
        assert!(transport.receive().now_or_never().is_none(), "it read past the limit");
        let answer = |id| TxJsonRpcMessage::<RoleServer>::response(ServerResult::empty(()), id);
        transport.send(answer(RequestId::Number(0))).await.unwrap();
        lines.recv().await.unwrap();
        // An answered request makes room, and so does a cancelled one.
        assert!(transport.receive().await.is_some());
        assert!(transport.receive().now_or_never().is_none());
        transport.send(answer(RequestId::Number(2))).await.unwrap();
        for _ in ["the cancellation", "1001", "1002"] {
            assert!(transport.receive().await.is_some());
        }
        assert!(transport.receive().now_or_never().is_none());
    }
}
