//! A client of the MCP server at `/mcp` of the daemon, which sends exactly what it is told to.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Daemon, World};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The message, plain or as the last of a stream.
    pub(crate) fn message(&self) -> Value {
        let is_stream = self.header("content-type").is_some_and(|it| it.contains("event-stream"));
        let text = match is_stream {
            true => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
                data.map(str::trim).rfind(|it| !it.is_empty()).unwrap_or_default()
            }
            false => &self.body,
        };
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A daemon, where it listens, and the token that is shown there.
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) token: String,
    daemon: Daemon,
}

impl Place {
    pub(crate) fn new(world: &mut World, token: String) -> Place {
        world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
        let daemon = Daemon::start(world.command().args(["--json", "up"]));
        let ready: Value = serde_json::from_str(&daemon.ready).unwrap();
        let url = ready["ready"]["http"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Place { address, token, daemon }
    }

    /// With -9.
    pub(crate) fn kill(self) {
        self.daemon.kill();
    }

    /// Sends exactly these headers and this body, and reads until the other side has done.
    pub(crate) fn send(&self, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        self.request("POST", "/mcp", headers, body)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Reply {
        let mut stream = self.open(method, path, headers, body.as_ref());
        let mut answer = Vec::new();
        // What was turned away early may be cut off.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: unchunked(head, body) }
    }

    /// A request that is sent, and whose answer nobody has read yet.
    fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        write!(text, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&[text.as_bytes(), body].concat()).unwrap();
        stream
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// With everything that a good client sends, and more.
    pub(crate) fn good(&self, more: &[(&str, &str)], body: &Value) -> Reply {
        let bearer = self.bearer();
        self.send(&self.good_headers(&bearer, more), body.to_string())
    }

    fn good_headers<'h>(
        &'h self,
        bearer: &'h str,
        more: &[(&'h str, &'h str)],
    ) -> Vec<(&'h str, &'h str)> {
        let mut headers = vec![
            ("Host", self.address.as_str()),
            ("Authorization", bearer),
            ("Content-Type", "application/json"),
        ];
        headers.extend_from_slice(more);
        headers
    }

    /// A good request whose answer is read line by line, or not at all.
    pub(crate) fn stream(&self, more: &[(&str, &str)], body: &Value) -> BufReader<TcpStream> {
        let bearer = self.bearer();
        let headers = self.good_headers(&bearer, more);
        BufReader::new(self.open("POST", "/mcp", &headers, body.to_string().as_bytes()))
    }

    /// The stream on which a session of the earlier era hears of what it did not ask for.
    pub(crate) fn heard(&self, session: &str) -> BufReader<TcpStream> {
        let bearer = self.bearer();
        let more = [("Mcp-Session-Id", session), ("Accept", "text/event-stream")];
        BufReader::new(self.open("GET", "/mcp", &self.good_headers(&bearer, &more), b""))
    }

    pub(crate) fn modern(&self, method: &str, parameters: Value) -> Reply {
        let (headers, body) = modern(method, parameters);
        self.good(&borrowed(&headers), &body)
    }

    /// As a stream, of the later era.
    pub(crate) fn modern_stream(&self, method: &str, parameters: Value) -> BufReader<TcpStream> {
        let (headers, body) = modern(method, parameters);
        self.stream(&borrowed(&headers), &body)
    }

    pub(crate) fn greet(&self) -> Reply {
        self.greet_with(json!({}))
    }

    /// Says what the client can do.
    fn greet_with(&self, can: Value) -> Reply {
        let parameters = json!({
            "protocolVersion": LEGACY,
            "capabilities": can,
            "clientInfo": {"name": "story", "version": "1"},
        });
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
        self.good(&[], &asked)
    }

    pub(crate) fn hello(&self) -> String {
        self.hello_with(json!({}))
    }

    pub(crate) fn hello_with(&self, can: Value) -> String {
        let hello = self.greet_with(can);
        assert_eq!(hello.status, 200, "{hello:?}");
        assert_eq!(hello.message()["result"]["protocolVersion"], LEGACY, "{hello:?}");
        let session = hello.header("mcp-session-id").unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.good(&[("Mcp-Session-Id", &session)], &initialized).status, 202);
        session
    }
}

/// A complete request of the later era: its headers and its body.
pub(crate) fn modern(method: &str, mut parameters: Value) -> (Vec<(&'static str, String)>, Value) {
    let named = parameters["name"].as_str().map(str::to_owned);
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers =
        vec![("MCP-Protocol-Version", MODERN.to_owned()), ("Mcp-Method", method.to_owned())];
    headers.extend(named.map(|named| ("Mcp-Name", named)));
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}))
}

pub(crate) fn borrowed<'h>(headers: &'h [(&'h str, String)]) -> Vec<(&'h str, &'h str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(crate) fn token(world: &World, role: &str, name: &str) -> String {
    let created = world.json(&["token", "create", "--role", role, "--name", name]);
    created["token"]["secret"].as_str().unwrap().to_owned()
}

/// A daemon with an agent and the token of a person.
pub(crate) fn place(world: &mut World) -> Place {
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let token = token(world, "maintainer", "mia");
    Place::new(world, token)
}

pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}
