//! Requests to a real server on this machine.

use std::time::Duration;

use agents::{Egress, Http, Post, Scheme};
use kernel::backend::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;

use crate::world::HANG_TIMEOUT;

const BODY_BYTES_MAX: usize = 1 << 20;

/// A server that sends the same response to every request, and records the requests.
struct Server {
    listener: TcpListener,
    response: Vec<u8>,
}

impl Server {
    async fn new(response: impl Into<Vec<u8>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Server { listener, response: response.into() }
    }

    fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.listener.local_addr().unwrap()).parse().unwrap()
    }

    /// Serves until `asking` is done; returns its value and the requests.
    async fn during<T>(&self, asking: impl Future<Output = T>) -> (T, Vec<String>) {
        let mut requests = Vec::new();
        let serving = async {
            // Connections stay open after the response.
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = self.listener.accept().await.unwrap();
                requests.push(read_request(&mut stream).await);
                // The client may have closed the connection.
                let _ = stream.write_all(&self.response).await;
                open.push(stream);
            }
        };
        let returned = select! {
            () = serving => panic!("the server stopped"),
            returned = tokio::time::timeout(HANG_TIMEOUT, asking) => returned.expect("it hangs"),
        };
        (returned, requests)
    }
}

/// Reads a request: its head in lower case, and its body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
            return format!("{head}\n\n{body}");
        }
    }
}

fn post<'a>(url: &'a Url, body: &'a [&'a str]) -> Post<'a, [&'a str]> {
    let egress = Egress::PublicAndLoopback;
    Post { url, egress, token: Some("hunter22"), key: Some("k-1"), body, time_max: HANG_TIMEOUT }
}

#[tokio::test]
async fn post_sends_body_idempotency_key_and_token() {
    let server = Server::new("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let (url, http) = (server.url("/hook?x=1"), Http::new());
    let asking = async {
        let response = http.post(post(&url, &["a", "ä"])).await.unwrap();
        (response.status(), response.body(2).await.unwrap())
    };
    let (returned, requests) = server.during(asking).await;
    assert_eq!(returned, (200, b"ok".to_vec()));
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    for line in [
        "post /hook?x=1 http/1.1",
        "content-type: application/json",
        "idempotency-key: k-1",
        "authorization: bearer hunter22",
    ] {
        assert!(request.contains(line), "{line}: {request}");
    }
    assert!(request.ends_with("\n\n[\"a\",\"ä\"]"), "{request}");
}

/// The resolved address decides, not the networks that are allowed otherwise.
#[tokio::test]
async fn unencrypted_token_goes_to_no_internet_address() {
    let server = Server::new("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let http = Http::with_lookup(|name| {
        let address = if name == "near.example" { [127, 0, 0, 1] } else { [1, 1, 1, 1] };
        Box::pin(async move { Ok(vec![address.into()]) })
    });
    let port = server.listener.local_addr().unwrap().port();
    for egress in [Egress::Public, Egress::PublicAndLoopback, Egress::Unrestricted] {
        let url = format!("http://far.example:{port}/").parse().unwrap();
        let result = http.post(Post { egress, ..post(&url, &[]) }).await;
        let error = result.unwrap_err().to_string();
        assert!(error.ends_with("unencrypted: use an https url"), "{egress:?}: {error}");
    }
    let url = format!("http://near.example:{port}/").parse().unwrap();
    let asking = http.post(Post { egress: Egress::Unrestricted, ..post(&url, &[]) });
    let (returned, requests) = server.during(asking).await;
    assert_eq!((returned.unwrap().status(), requests.len()), (200, 1), "{requests:?}");
}

#[tokio::test]
async fn redirect_is_returned_and_not_followed() {
    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
    let server = Server::new(moved).await;
    let (url, http) = (server.url("/hook"), Http::new());
    let asking = async { http.post(post(&url, &[])).await.unwrap().status() };
    let (status, requests) = server.during(asking).await;
    assert_eq!((status, requests.len()), (307, 1), "{requests:?}");
}

#[tokio::test]
async fn body_is_read_up_to_its_limit() {
    let long = |bytes: usize| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
        [head.into_bytes(), vec![b'x'; bytes]].concat()
    };
    for (bytes, fits) in
        [(BODY_BYTES_MAX, true), (BODY_BYTES_MAX + 1, false), (10 * BODY_BYTES_MAX, false)]
    {
        let server = Server::new(long(bytes)).await;
        let (url, http) = (server.url("/"), Http::new());
        let asking = async {
            let response = http.post(post(&url, &[])).await.unwrap();
            assert_eq!(response.status(), 200);
            response.body(BODY_BYTES_MAX).await
        };
        let (body, _) = server.during(asking).await;
        assert_eq!(body.as_ref().is_ok_and(|body| body.len() == bytes), fits, "{bytes}");
    }
}

#[tokio::test]
async fn request_times_out_and_errors_contain_no_secret() {
    let silent = Server::new("").await;
    let (url, http) = (silent.url("/secret-topic"), Http::new());
    let short = Post { time_max: Duration::from_millis(50), ..post(&url, &[]) };
    let (returned, _) = silent.during(http.post(short)).await;
    let error = returned.unwrap_err().to_string();
    assert!(error.contains("timed out"), "{error}");

    drop(silent);
    let error = http.post(post(&url, &[])).await.unwrap_err().to_string();
    for secret in ["hunter22", "secret-topic"] {
        assert!(!error.contains(secret), "{error}");
    }
    let invalid = Post { token: Some("two\nlines"), ..post(&url, &[]) };
    let error = http.post(invalid).await.unwrap_err().to_string();
    assert_eq!(error, "the token cannot be sent in a header");
}

#[test]
fn scheme_of_a_url() {
    let check = |url: &str, expected: Option<Scheme>| {
        assert_eq!(Scheme::of(&url.parse().unwrap()), expected, "{url}");
    };
    check("https://example.com/hook", Some(Scheme::Encrypted));
    check("https://localhost", Some(Scheme::Encrypted));
    check("http://localhost:8080/x", Some(Scheme::LocalPlaintext));
    check("http://127.0.0.1", Some(Scheme::LocalPlaintext));
    check("http://127.9.9.9:1", Some(Scheme::LocalPlaintext));
    check("http://[::1]:80", Some(Scheme::LocalPlaintext));
    check("http://example.com", Some(Scheme::Plaintext));
    check("http://10.0.0.1", Some(Scheme::Plaintext));
    check("http://localhost.example.com", Some(Scheme::Plaintext));
    check("http://127.0.0.1.example.com", Some(Scheme::Plaintext));
    // Earlier versions stored urls that are refused now.
    for stored in ["http://[::1", "http://localhost:99999"] {
        assert!(stored.parse::<Url>().is_err(), "{stored}");
        let url: Url = serde_json::from_value(stored.into()).unwrap();
        assert_eq!(Scheme::of(&url), None, "{stored}");
    }
}
