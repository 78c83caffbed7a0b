//! The cost of the path of a call over stdio by itself: a pipe to a thread that forwards it over a socket to another, and
//! back. No message is parsed on the way.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::os::unix::net::UnixStream;
use std::thread;

use serde_json::{Value, json};

use super::Client;

pub(super) struct RelayClient {
    input: PipeWriter,
    output: BufReader<PipeReader>,
    line: String,
}

impl RelayClient {
    pub(super) fn open() -> anyhow::Result<RelayClient> {
        let ((server_input, input), (output, mut server_output)) = (pipe()?, pipe()?);
        let (mut server, daemon) = UnixStream::pair()?;
        let mut daemon_output = daemon.try_clone()?;
        thread::spawn(move || {
            forward_lines(BufReader::new(daemon), |line| daemon_output.write_all(line))
        });
        let mut replies = BufReader::new(server.try_clone()?);
        let mut reply = Vec::new();
        let forward = move |line: &[u8]| {
            server.write_all(line)?;
            reply.clear();
            replies.read_until(b'\n', &mut reply)?;
            server_output.write_all(&reply)
        };
        thread::spawn(move || forward_lines(BufReader::new(server_input), forward));
        Ok(RelayClient { input, output: BufReader::new(output), line: String::new() })
    }
}

/// Forwards lines until the sender closes.
fn forward_lines(mut from: impl BufRead, mut to: impl FnMut(&[u8]) -> std::io::Result<()>) {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|length| length != 0) && to(&line).is_ok() {
        line.clear();
    }
}

impl Client for RelayClient {
    fn call(&mut self, message: &Value) -> anyhow::Result<Value> {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes())?;
        self.line.clear();
        self.output.read_line(&mut self.line)?;
        let echoed: Value = serde_json::from_str(&self.line)?;
        Ok(json!({"id": echoed.get("id"), "result": {}}))
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }
}
