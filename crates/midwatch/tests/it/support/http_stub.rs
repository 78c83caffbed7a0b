//! An HTTP server that replies with canned bytes and records what it is sent.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};

/// Head (in lower case) and body of a request.
pub(crate) type Request = (String, String);

/// Starts a server that gives these responses in turn. A request for which none is left stays open
/// without a response. Returns the URL and the requests.
pub(crate) fn serve(
    responses: impl IntoIterator<Item = Vec<u8>, IntoIter: Send + 'static>,
) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    let mut responses = responses.into_iter();
    std::thread::spawn(move || {
        let mut unanswered = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = sender.send(read_request(&mut stream));
            match responses.next() {
                // The client may hang up before it has read everything.
                Some(response) => drop(stream.write_all(&response)),
                None => unanswered.push(stream),
            }
        }
    });
    (url, requests)
}

/// A response with status 200 and this document.
pub(crate) fn ok(document: &str) -> Vec<u8> {
    let length = document.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}")
        .into_bytes()
}

fn read_request(stream: &mut TcpStream) -> Request {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap();
        assert!(0 < count, "the request ended early");
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if length <= body.len() {
            return (head, body.to_owned());
        }
    }
}
