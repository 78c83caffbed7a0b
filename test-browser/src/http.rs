//! One JSON request over HTTP, on a connection of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// Longer than any script or page may take.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    // The server keeps the connection open.
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while 2 < reader.read_line(&mut line)? {
        let field =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if let Some((_, value)) = field {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    serde_json::from_slice(&answer).context("not JSON")
}
