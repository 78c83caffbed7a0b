//! A stand-in for both of Letta's servers that can misbehave on demand. It also serves as a webhook's receiver.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// Read timeout of every connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server does with the next prompt; the last one applies to all further prompts.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Responds with this stop reason.
    Stop(&'static str),
    /// Responds with this text.
    Say(String),
    /// Sends these bytes and closes the connection.
    Raw(Vec<u8>),
    /// Responds with so many megabytes of blanks.
    Flood(usize),
    /// Never responds.
    Hang,
    /// Sends a response one byte at a time, without end.
    Drip,
    /// Responds after a delay.
    Slow(Duration),
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Debug, Default)]
struct Inner {
    acts: VecDeque<Act>,
    asked: Vec<Asked>,
    at_work: usize,
    most_at_work: usize,
    /// How often a background run was polled.
    polls: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    /// Whether it is an App Server rather than a V1 server.
    is_app_server: bool,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl StandIn {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> StandIn {
        StandIn::serving(acts, false)
    }

    pub(crate) fn app_server(acts: impl IntoIterator<Item = Act>) -> StandIn {
        StandIn::serving(acts, true)
    }

    fn serving(acts: impl IntoIterator<Item = Act>, is_app_server: bool) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let acts = acts.into_iter().collect();
        let inner = Arc::new(Mutex::new(Inner { acts, ..Inner::default() }));
        let server = StandIn { address, inner, is_app_server };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.inner().asked.clone()
    }

    /// Number of requests whose path ends with `path`.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.inner().asked.iter().filter(|asked| asked.path.ends_with(path)).count()
    }

    /// The most prompts that were processed at the same time.
    pub(crate) fn most_at_work(&self) -> usize {
        self.inner().most_at_work
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn serve(&self, mut stream: TcpStream) {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let Some(asked) = request(&mut stream) else { return };
        self.inner().asked.push(asked.clone());
        let path = asked.path.split('?').next().unwrap_or_default();
        let answer = match (asked.method.as_str(), path) {
            ("POST", path) if path.ends_with("/cancel") => Some(ok(&json!({"run": "cancelled"}))),
            ("POST", _) => {
                let act = self.begin();
                let answer = self.act(act, &asked, &mut stream);
                self.inner().at_work -= 1;
                answer
            }
            ("GET", "/app-server-info") if self.is_app_server => Some(ok(&json!({
                "type": "app_server_info_response", "success": true, "backend": "local",
                "letta_code_version": "0.34.12", "protocol_version": 1, "capabilities": {},
            }))),
            ("GET", "/v1/health/") if !self.is_app_server => {
                Some(ok(&json!({"version": "0.16.8", "status": "ok"})))
            }
            ("GET", "/v1/agents/") => Some(ok(&json!([
                {"id": "agent-123", "name": "scout", "created_at": "2026-08-01T00:00:00Z"},
                {"id": "agent-456", "name": "writer", "created_at": "2026-08-02T00:00:00Z"},
            ]))),
            ("GET", "/v1/agents/agent-123") if !self.is_app_server => {
                Some(ok(&json!({"id": "agent-123", "name": "scout"})))
            }
            ("GET", "/v1/models") => Some(ok(&json!({"object": "list", "data": [
                {"id": "agent-123", "object": "model", "created": 1, "owned_by": "letta"},
            ]}))),
            ("GET", "/v1/runs/run-1/messages") => {
                Some(ok(&json!([{"message_type": "assistant_message", "content": "later"}])))
            }
            ("GET", "/v1/runs/run-1/usage") => {
                Some(ok(&json!({"prompt_tokens": 5, "completion_tokens": 2})))
            }
            ("GET", path) if path.starts_with("/v1/runs/") => Some(self.poll()),
            _ => Some(with_status(404, "", r#"{"detail":"there is no such route"}"#)),
        };
        if let Some(answer) = answer {
            let _ = stream.write_all(&answer);
        }
    }

    fn begin(&self) -> Act {
        let mut inner = self.inner();
        inner.at_work += 1;
        inner.most_at_work = inner.most_at_work.max(inner.at_work);
        match inner.acts.len() {
            0 => Act::Stop("end_turn"),
            1 => inner.acts[0].clone(),
            _ => inner.acts.pop_front().unwrap(),
        }
    }

    fn act(&self, act: Act, asked: &Asked, stream: &mut TcpStream) -> Option<Vec<u8>> {
        match act {
            Act::Stop(reason) => {
                Some(reply_to(asked, reason, &format!("heard: {}", prompt(asked))))
            }
            Act::Say(text) => Some(reply_to(asked, "end_turn", &text)),
            Act::Raw(bytes) => Some(bytes),
            Act::Flood(megabytes) => {
                let bytes = megabytes << 20;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
                let mut is_connected = stream.write_all(head.as_bytes()).is_ok();
                for _ in 0..16 * megabytes {
                    is_connected = is_connected && stream.write_all(&[b' '; 65_536]).is_ok();
                }
                None
            }
            Act::Hang => {
                // Until the client closes the connection.
                let _ = stream.read(&mut [0]);
                None
            }
            Act::Drip => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let mut is_connected = stream.write_all(head.as_bytes()).is_ok();
                while is_connected {
                    is_connected = stream.write_all(b" ").is_ok();
                    thread::sleep(Duration::from_millis(20));
                }
                None
            }
            Act::Slow(span) => {
                thread::sleep(span);
                Some(reply_to(asked, "end_turn", "at last"))
            }
        }
    }

    /// A background run is over at the third poll.
    fn poll(&self) -> Vec<u8> {
        let mut inner = self.inner();
        inner.polls += 1;
        match inner.polls {
            1 => ok(&json!({"id": "run-1", "status": "running"})),
            2 => with_status(503, "", ""),
            _ => ok(&json!({"id": "run-1", "status": "completed", "stop_reason": "end_turn"})),
        }
    }
}

fn request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65_536];
    loop {
        let count = stream.read(&mut chunk).ok().filter(|count| 0 < *count)?;
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ');
        let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
        let pair = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let headers: Vec<(String, String)> = lines.map(pair).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        if body.len() == length.map_or(0, |(_, value)| value.parse().unwrap()) {
            return Some(Asked { method, path, headers, body: body.to_owned() });
        }
    }
}

/// The prompt of a request, in any of its formats.
fn prompt(asked: &Asked) -> String {
    let body = asked.json();
    let content = &body["messages"][0]["content"];
    let text = content[0]["text"].as_str().or(content.as_str()).or(body["prompt"].as_str());
    text.unwrap_or_default().to_owned()
}

fn reply_to(asked: &Asked, reason: &str, text: &str) -> Vec<u8> {
    let said = json!({"message_type": "assistant_message", "id": "message-1", "content": text});
    let thought = json!({"message_type": "reasoning_message", "reasoning": "hm"});
    let stop = json!({"message_type": "stop_reason", "stop_reason": reason});
    let usage = json!({
        "message_type": "usage_statistics", "completion_tokens": 3, "prompt_tokens": 12,
        "total_tokens": 15, "step_count": 1, "run_ids": ["run-1"],
    });
    let is_stream = asked.body.contains(r#""stream":true"#);
    let finish = if reason == "end_turn" { "stop" } else { reason };
    match asked.path.rsplit('/').next() {
        Some("messages") => {
            ok(&json!({"messages": [thought, said], "stop_reason": stop, "usage": usage}))
        }
        Some("stream") => events(&[thought, said, stop, usage]),
        Some("async") => ok(&json!({"id": "run-1", "status": "created"})),
        Some("completions") if is_stream => {
            // One character in each piece, as a model's tokens may come.
            let piece = |c: char| json!({"choices": [{"delta": {"content": c.to_string()}}]});
            let mut pieces: Vec<Value> = text.chars().map(piece).collect();
            let usage = json!({"prompt_tokens": 12, "completion_tokens": 3});
            pieces
                .push(json!({"choices": [{"delta": {}, "finish_reason": finish}], "usage": usage}));
            events(&pieces)
        }
        Some("completions") => ok(&json!({
            "object": "chat.completion",
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        })),
        _ => with_status(200, "", text),
    }
}

pub(crate) fn ok(document: &Value) -> Vec<u8> {
    with_status(200, "content-type: application/json\r\n", &document.to_string())
}

pub(crate) fn with_status(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

fn events(documents: &[Value]) -> Vec<u8> {
    let lines: String = documents.iter().map(|it| format!("data: {it}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}{lines}data: [DONE]\n\n").into_bytes()
}
