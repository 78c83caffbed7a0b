//! A minimal MCP client over HTTP, with one connection per turn.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::Client;
use super::servers::HttpServer;

pub(super) struct HttpClient {
    server: Rc<HttpServer>,
    stream: BufReader<TcpStream>,
    session: Option<String>,
}

impl HttpClient {
    pub(super) fn open(server: Rc<HttpServer>) -> anyhow::Result<HttpClient> {
        let stream = connect(&server)?;
        Ok(HttpClient { server, stream, session: None })
    }

    fn send(&mut self, body: &str) -> anyhow::Result<()> {
        let HttpServer { address, token, .. } = &*self.server;
        let session = self.session.as_ref();
        let session = session.map_or_else(String::new, |id| {
            format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n")
        });
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? != 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }

    fn receive(&mut self) -> anyhow::Result<String> {
        let status = self.line()?;
        ensure!(status.starts_with("HTTP/1.1 2"), "{status}");
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                "mcp-session-id" => self.session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if !is_chunked {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        while is_chunked {
            let size = usize::from_str_radix(&self.line()?, 16)?;
            let start = body.len();
            body.resize(start + size, 0);
            let (_, chunk) = body.split_at_mut(start);
            self.stream.read_exact(chunk)?;
            self.line()?;
            is_chunked = size != 0;
        }
        Ok(String::from_utf8(body)?)
    }
}

fn connect(server: &HttpServer) -> anyhow::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(&server.address)?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

impl Client for HttpClient {
    fn reconnect(&mut self) -> anyhow::Result<()> {
        self.stream = connect(&self.server)?;
        Ok(())
    }

    fn call(&mut self, message: &Value) -> anyhow::Result<Value> {
        self.send(&message.to_string())?;
        let body = self.receive()?;
        if message.get("id").is_none() {
            return Ok(Value::Null);
        }
        // JSON, or the last event of a stream.
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let text = data.map(str::trim).rfind(|it| !it.is_empty()).unwrap_or(&body);
        serde_json::from_str(text).with_context(|| format!("not a message: {body}"))
    }

    fn pid(&self) -> u32 {
        self.server.pid()
    }
}
