//! The process that turns WebDriver requests into actions of a browser.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::http;

/// Debian's package `chromium-driver`.
const PROGRAM: &str = "chromedriver";

#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Kept open, or the server would fail to write.
    _output: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Server {
    /// Starts the server on a free port.
    #[expect(clippy::disallowed_methods, reason = "the tests drive a real browser")]
    pub(crate) fn start() -> Result<Server> {
        let mut command = Command::new(PROGRAM);
        command.args(["--port=0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command
            .stdin(Stdio::null())
            .spawn()
            .context("`chromedriver` is missing; `apt-get install chromium chromium-driver`")?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        while output.read_line(&mut line)? != 0 {
            let port = line
                .rsplit_once("successfully on port ")
                .map(|(_, port)| port.trim().trim_matches('.'));
            if let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) {
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                return Ok(Server { child, _output: output, address });
            }
            line.clear();
        }
        bail!("`chromedriver` did not start")
    }

    /// Makes a request and returns its value.
    pub(crate) fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let mut answer = http::request(self.address, method, path, body)
            .with_context(|| format!("{method} {path}"))?;
        let value = answer.get_mut("value").map(Value::take).unwrap_or_default();
        match text(&value, "error") {
            Some(error) => {
                bail!("{method} {path}: {error}: {}", text(&value, "message").unwrap_or_default())
            }
            None => Ok(value),
        }
    }
}

/// The text of a field.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
