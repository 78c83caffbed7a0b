//! A daemon that listens on HTTP, and a client of it that can send any request to `/mcp`, valid or not.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::mcp_stdio::answer_of;
use crate::support::wait::TIMEOUT;
use crate::support::world::{Daemon, World};

const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// The response to an HTTP request.
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

    /// The JSON-RPC message: the body, or the last event of a stream.
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

/// A daemon that listens on HTTP, its address, and the token that requests carry.
pub(crate) struct HttpDaemon {
    pub(crate) address: String,
    pub(crate) token: String,
    daemon: Daemon,
}

impl HttpDaemon {
    pub(crate) fn new(world: &mut World, token: String) -> HttpDaemon {
        world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
        let daemon = Daemon::start(world.command().args(["--json", "up"]));
        let ready: Value = serde_json::from_str(&daemon.ready).unwrap();
        let url = ready["ready"]["http"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        HttpDaemon { address, token, daemon }
    }

    pub(crate) fn kill(self) {
        self.daemon.kill();
    }

    /// Sends exactly these headers and this body, and reads until the daemon closes the connection.
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
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: decode_chunks(head, body) }
    }

    /// Sends a request and leaves the response unread.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        write!(text, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        // The daemon may close the connection before it has read a request that it rejects.
        let _ = stream.write_all(&[text.as_bytes(), body].concat());
        stream
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Sends a valid request with these additional headers.
    pub(crate) fn post(&self, more: &[(&str, &str)], body: &Value) -> Reply {
        let bearer = self.bearer();
        self.send(&self.valid_headers(&bearer, more), body.to_string())
    }

    fn valid_headers<'h>(
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

    /// Sends a valid request and returns the response as a stream.
    pub(crate) fn stream(&self, more: &[(&str, &str)], body: &Value) -> BufReader<TcpStream> {
        let bearer = self.bearer();
        let headers = self.valid_headers(&bearer, more);
        BufReader::new(self.open("POST", "/mcp", &headers, body.to_string().as_bytes()))
    }

    /// The stream of notifications and requests to a session of the legacy era.
    pub(crate) fn session_stream(&self, session: &str) -> BufReader<TcpStream> {
        let bearer = self.bearer();
        let more = [("Mcp-Session-Id", session), ("Accept", "text/event-stream")];
        BufReader::new(self.open("GET", "/mcp", &self.valid_headers(&bearer, &more), b""))
    }

    pub(crate) fn modern(&self, method: &str, parameters: Value) -> Reply {
        let (headers, body) = modern(method, parameters);
        self.post(&borrowed(&headers), &body)
    }

    pub(crate) fn modern_stream(&self, method: &str, parameters: Value) -> BufReader<TcpStream> {
        let (headers, body) = modern(method, parameters);
        self.stream(&borrowed(&headers), &body)
    }

    pub(crate) fn initialize(&self) -> Reply {
        self.initialize_with(json!({}))
    }

    fn initialize_with(&self, capabilities: Value) -> Reply {
        let parameters = json!({
            "protocolVersion": LEGACY,
            "capabilities": capabilities,
            "clientInfo": {"name": "story", "version": "1"},
        });
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
        self.post(&[], &request)
    }

    /// Opens a session of the legacy era. Returns its id.
    pub(crate) fn open_session(&self) -> String {
        self.open_session_with(json!({}))
    }

    pub(crate) fn open_session_with(&self, capabilities: Value) -> String {
        let reply = self.initialize_with(capabilities);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.message()["result"]["protocolVersion"], LEGACY, "{reply:?}");
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&[("Mcp-Session-Id", &session)], &initialized).status, 202);
        session
    }

    /// Ends a session.
    pub(crate) fn close_session(&self, session: &str) -> Reply {
        let bearer = self.bearer();
        let headers = [
            ("Host", self.address.as_str()),
            ("Authorization", bearer.as_str()),
            ("Mcp-Session-Id", session),
        ];
        self.request("DELETE", "/mcp", &headers, "")
    }

    /// Calls a tool in the modern era. Returns the answer.
    pub(crate) fn tool(&self, name: &str, arguments: Value) -> Value {
        let message = self.modern("tools/call", call(name, arguments)).message();
        answer_of(&message["result"])
    }

    /// Adds a schedule of the agent `echo` that a test can treat as started by hand only.
    pub(crate) fn add_schedule(&self) -> String {
        let arguments = json!({"name": "brief", "agent": "echo", "prompt": "hi", "every": "1000h"});
        let added = self.tool("schedule_create", arguments);
        added["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
    }

    pub(crate) fn start_run(&self, schedule: &str) -> String {
        let arguments = json!({"schedule_id": schedule, "idempotency_key": "k"});
        let started = self.tool("run_start", arguments);
        started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }
}

/// The headers of a request in a session of the legacy era.
pub(crate) fn session_headers(session: &str) -> [(&str, &str); 2] {
    [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)]
}

/// Headers and body of a complete request of the modern era.
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

fn decode_chunks(head: &str, body: &str) -> String {
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

/// A daemon with the agent `echo`, and a token for the MCP clients of `mia`.
pub(crate) fn http_daemon(world: &mut World) -> HttpDaemon {
    world.add_agent("echo");
    let (_, token) = world.create_mcp_token("mia");
    HttpDaemon::new(world, token)
}

/// The parameters of `tools/call`.
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}
