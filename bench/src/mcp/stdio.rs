//! An MCP client over stdio: one message per line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::Client;

pub(super) struct StdioClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl StdioClient {
    pub(super) fn open(mut command: Command) -> anyhow::Result<StdioClient> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(StdioClient { child, input, output, line: String::new() })
    }
}

impl Client for StdioClient {
    fn call(&mut self, message: &Value) -> anyhow::Result<Value> {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes())?;
        if message.get("id").is_none() {
            return Ok(Value::Null);
        }
        loop {
            self.line.clear();
            ensure!(self.output.read_line(&mut self.line)? != 0, "the server closed its output");
            let response: Value = serde_json::from_str(&self.line)?;
            if response.get("id") == message.get("id") {
                return Ok(response);
            }
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
