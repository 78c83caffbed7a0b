//! A client of the HTTP API that keeps its connection.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::wait::TIMEOUT;

/// Lines that a stream may have before the awaited one. After a bookmark, the next comes 15 seconds later.
const LINES_MAX: usize = 40;

/// A response of the API.
#[derive(Debug)]
pub(super) struct ApiReply {
    pub(super) status: u16,
    head: Vec<String>,
    pub(super) body: String,
}

impl ApiReply {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.iter().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The document of a request that was done.
    pub(super) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Status and code of a refusal, which is a problem document.
    pub(super) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status, "{self:?}");
        let code = document["error"]["code"].as_str().unwrap().to_owned();
        assert_eq!(document["type"], format!("/errors/{code}"), "{self:?}");
        (self.status, code)
    }
}

/// Makes requests with one token.
pub(super) struct ApiClient {
    address: String,
    token: Option<String>,
    connection: RefCell<Option<BufReader<TcpStream>>>,
}

impl ApiClient {
    pub(super) fn new(address: &str, token: Option<&str>) -> ApiClient {
        let (address, token) = (address.to_owned(), token.map(str::to_owned));
        ApiClient { address, token, connection: RefCell::default() }
    }

    pub(super) fn get(&self, path: &str) -> ApiReply {
        self.send("GET", path, &[], "")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> ApiReply {
        self.send("POST", path, &[], &body.to_string())
    }

    /// Sends a request to a path below `/api/v1`.
    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> ApiReply {
        let mut connection = self.open(method, path, headers, body);
        let head = read_head(&mut connection);
        let mut reply = ApiReply { status: status(&head), head, body: String::new() };
        let length = reply.header("content-length").map_or(0, |it| it.parse().unwrap());
        let mut bytes = vec![0; length];
        connection.read_exact(&mut bytes).unwrap();
        reply.body = String::from_utf8(bytes).unwrap();
        if reply.header("connection") != Some("close") {
            *self.connection.borrow_mut() = Some(connection);
        }
        reply
    }

    /// Sends a request and returns its response, a stream.
    pub(super) fn stream(&self, path: &str, accept: &str) -> BufReader<TcpStream> {
        let mut connection = self.open("GET", path, &[("Accept", accept)], "");
        let head = read_head(&mut connection);
        assert_eq!(status(&head), 200, "{head:?}");
        connection
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> BufReader<TcpStream> {
        let kept = self.connection.borrow_mut().take();
        let mut connection = kept.unwrap_or_else(|| {
            let stream = TcpStream::connect(&self.address).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            BufReader::new(stream)
        });
        let mut text = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            text += &format!("Authorization: Bearer {token}\r\n");
        }
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "Content-Type") {
            text += "Content-Type: application/json\r\n";
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        connection.get_mut().write_all(text.as_bytes()).unwrap();
        connection
    }
}

fn read_head(connection: &mut BufReader<TcpStream>) -> Vec<String> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => return head,
            line => head.push(line.to_owned()),
        }
    }
}

fn status(head: &[String]) -> u16 {
    head.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}

/// The next line of a chunked stream that is part of what `is_wanted` accepts.
pub(super) fn next_line(
    stream: &mut BufReader<TcpStream>,
    is_wanted: impl Fn(&str) -> bool,
) -> String {
    // A stream has a bookmark every 15 seconds, for ever.
    for _ in 0..LINES_MAX {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        if is_wanted(line.trim_end()) {
            return line.trim_end().to_owned();
        }
    }
    panic!("{LINES_MAX} lines, and not the one that is awaited");
}
