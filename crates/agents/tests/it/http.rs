//! Requests to a real server on this machine, which answers as it likes.

use std::time::Duration;

use agents::{Http, Post, Reach, Way};
use kernel::backend::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;

use crate::world::HANGING;

const BODY_BYTES_MAX: usize = 1 << 20;

/// A server that gives one answer to whoever asks, and notes what it was asked.
struct Server {
    listener: TcpListener,
    answer: Vec<u8>,
}

impl Server {
    async fn new(answer: impl Into<Vec<u8>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Server { listener, answer: answer.into() }
    }

    fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.listener.local_addr().unwrap()).parse().unwrap()
    }

    /// Serves until `asking` has its answer.
    async fn during<T>(&self, asking: impl Future<Output = T>) -> (T, Vec<String>) {
        let mut asked = Vec::new();
        let serving = async {
            // Those that are answered stay open, as a server's connections do.
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = self.listener.accept().await.unwrap();
                asked.push(request(&mut stream).await);
                // Whoever has heard enough may be gone.
                let _ = stream.write_all(&self.answer).await;
                open.push(stream);
            }
        };
        let answered = select! {
            () = serving => panic!("it serves no more"),
            answered = tokio::time::timeout(HANGING, asking) => answered.expect("it hangs"),
        };
        (answered, asked)
    }
}

/// Head and body of a request, the head in lower case.
async fn request(stream: &mut TcpStream) -> String {
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
    let reach = Reach::Local;
    Post { url, reach, token: Some("hunter22"), key: Some("k-1"), body, time_max: HANGING }
}

#[tokio::test]
async fn a_document_arrives_with_its_key_and_its_token() {
    let server = Server::new("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let (url, http) = (server.url("/hook?x=1"), Http::new());
    let asking = async {
        let answer = http.post(post(&url, &["a", "ä"])).await.unwrap();
        (answer.status(), answer.body(2).await.unwrap())
    };
    let (answered, asked) = server.during(asking).await;
    assert_eq!(answered, (200, b"ok".to_vec()));
    let [asked] = asked.as_slice() else { panic!("{asked:?}") };
    for line in [
        "post /hook?x=1 http/1.1",
        "content-type: application/json",
        "idempotency-key: k-1",
        "authorization: bearer hunter22",
    ] {
        assert!(asked.contains(line), "{line}: {asked}");
    }
    assert!(asked.ends_with("\n\n[\"a\",\"ä\"]"), "{asked}");
}

/// What counts is the address that a name leads to, and not what may be reached besides.
#[tokio::test]
async fn a_token_in_the_clear_goes_to_no_address_of_the_internet() {
    let server = Server::new("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let http = Http::with_names(|name| {
        let address = if name == "near.example" { [127, 0, 0, 1] } else { [1, 1, 1, 1] };
        Box::pin(async move { Ok(vec![address.into()]) })
    });
    let port = server.listener.local_addr().unwrap().port();
    for reach in [Reach::Public, Reach::Local, Reach::Private] {
        let url = format!("http://far.example:{port}/").parse().unwrap();
        let asked = http.post(Post { reach, ..post(&url, &[]) }).await;
        let said = asked.unwrap_err().to_string();
        assert!(said.ends_with("in the clear: use an https url"), "{reach:?}: {said}");
    }
    let url = format!("http://near.example:{port}/").parse().unwrap();
    let asking = http.post(Post { reach: Reach::Private, ..post(&url, &[]) });
    let (answered, asked) = server.during(asking).await;
    assert_eq!((answered.unwrap().status(), asked.len()), (200, 1), "{asked:?}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let moved =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
    let server = Server::new(moved).await;
    let (url, http) = (server.url("/hook"), Http::new());
    let asking = async { http.post(post(&url, &[])).await.unwrap().status() };
    let (status, asked) = server.during(asking).await;
    assert_eq!((status, asked.len()), (307, 1), "{asked:?}");
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
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
            let answer = http.post(post(&url, &[])).await.unwrap();
            assert_eq!(answer.status(), 200);
            answer.body(BODY_BYTES_MAX).await
        };
        let (body, _) = server.during(asking).await;
        assert_eq!(body.as_ref().is_ok_and(|body| body.len() == bytes), fits, "{bytes}");
    }
}

#[tokio::test]
async fn whoever_does_not_answer_is_given_up() {
    let silent = Server::new("").await;
    let (url, http) = (silent.url("/secret-topic"), Http::new());
    let short = Post { time_max: Duration::from_millis(50), ..post(&url, &[]) };
    let (answered, _) = silent.during(http.post(short)).await;
    let said = answered.unwrap_err().to_string();
    assert!(said.contains("timed out"), "{said}");

    drop(silent);
    let said = http.post(post(&url, &[])).await.unwrap_err().to_string();
    for secret in ["hunter22", "secret-topic"] {
        assert!(!said.contains(secret), "{said}");
    }
    let unfit = Post { token: Some("two\nlines"), ..post(&url, &[]) };
    let said = http.post(unfit).await.unwrap_err().to_string();
    assert_eq!(said, "the token cannot be sent in a header");
}

#[test]
fn what_leaves_the_machine_in_the_clear_is_known() {
    let check = |url: &str, expected: Option<Way>| {
        assert_eq!(Way::to(&url.parse().unwrap()), expected, "{url}");
    };
    check("https://example.com/hook", Some(Way::Encrypted));
    check("https://localhost", Some(Way::Encrypted));
    check("http://localhost:8080/x", Some(Way::Local));
    check("http://127.0.0.1", Some(Way::Local));
    check("http://127.9.9.9:1", Some(Way::Local));
    check("http://[::1]:80", Some(Way::Local));
    check("http://example.com", Some(Way::Open));
    check("http://10.0.0.1", Some(Way::Open));
    check("http://localhost.example.com", Some(Way::Open));
    check("http://127.0.0.1.example.com", Some(Way::Open));
    check("http://[::1", None);
    check("http://localhost:99999", None);
}
