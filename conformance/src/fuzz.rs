//! Fuzzes the line parser of the stdio transport.
//!
//! For any input, in pieces of any size: the server reads to the end, writes only valid messages, and answers each
//! invalid line with exactly one error. Each round is determined by its seed, which a failure prints.

use std::io;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::stream;
use mcp::LINE_BYTES_MAX;
use rmcp::handler::server::ServerHandler;
use rmcp::model::RequestId;
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::Value;
use tokio::io::{AsyncReadExt, duplex};
use tokio_util::bytes::Bytes;
use tokio_util::io::StreamReader;

/// Messages that a round combines and mutates.
const FRAMES: [&str; 10] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2.5,null]}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"\u00e4"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"no/such","params":{"id":1,"id":2}}"#,
    "",
];
/// Bytes that a mutation inserts.
const INSERTS: [&[u8]; 16] = [
    b"\n",
    b"\r\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\xff",
    b"\xc3",
    b"1e999",
    b"99999999999999999999",
    b"null",
    b"\0",
    b" ",
];
const MUTATIONS_MAX: u64 = 12;
const FRAMES_MAX: u64 = 8;

/// A server without tools, resources or prompts.
#[derive(Clone, Debug)]
struct EmptyServer;

impl ServerHandler for EmptyServer {}

/// Runs rounds for `duration`, starting with this seed. Returns their number.
pub(crate) async fn run(seed: u64, duration: Duration) -> Result<u64> {
    let started = Instant::now();
    let mut seed = seed;
    let mut rounds = 0;
    while started.elapsed() < duration {
        round(seed).await.with_context(|| format!("seed {seed}"))?;
        (seed, rounds) = (seed.wrapping_add(1), rounds + 1);
    }
    Ok(rounds)
}

async fn round(seed: u64) -> Result<()> {
    let mut random = Random(seed);
    let input = random_input(&mut random);
    let output = serve(&input, &mut random).await?;
    let mut errors = 0;
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value =
            serde_json::from_slice(line).context("the server wrote an invalid message")?;
        ensure!(message.get("jsonrpc").is_some_and(|it| it == "2.0"), "{message}");
        let is_error = message.get("error").is_some();
        errors += usize::from(is_error && message.get("id").is_none_or(Value::is_null));
    }
    let is_anonymous = |line: &&[u8]| is_invalid(line) && !has_request_id(line);
    let expected = input.split(|byte| *byte == b'\n').filter(is_anonymous).count();
    ensure!(
        errors == expected,
        "{expected} invalid lines without an id, but {errors} errors without an id"
    );
    Ok(())
}

/// Whether the id of the request can be read.
fn has_request_id(line: &[u8]) -> bool {
    let document: Value = api::json::read(line).unwrap_or_default();
    let id = document.get("id").cloned();
    line.len() <= LINE_BYTES_MAX
        && id.is_some_and(|id| serde_json::from_value::<RequestId>(id).is_ok())
}

/// Whether a line is invalid, decided on the whole line instead of in pieces.
fn is_invalid(line: &[u8]) -> bool {
    let is_blank = line.iter().all(u8::is_ascii_whitespace);
    let read = || api::json::read::<RxJsonRpcMessage<RoleServer>>(line);
    LINE_BYTES_MAX < line.len() || (!is_blank && read().is_err())
}

/// Feeds the input to a server in random pieces, and returns its output.
async fn serve(input: &[u8], random: &mut Random) -> Result<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let piece_max = if rest.len() < 1 << 16 { 64 } else { 1 << 20 };
        let (piece, after) = rest.split_at(rest.len().min(1 + random.below(piece_max)));
        pieces.push(Ok::<_, io::Error>(Bytes::copy_from_slice(piece)));
        rest = after;
    }
    let reader = StreamReader::new(stream::iter(pieces));
    let (output, mut read) = duplex(1 << 16);
    let mut written = Vec::new();
    let (served, read_result) = futures::join!(
        mcp::serve_stdio(EmptyServer, reader, output),
        read.read_to_end(&mut written)
    );
    served?;
    read_result?;
    Ok(written)
}

fn random_input(random: &mut Random) -> Vec<u8> {
    // Rarely, a line about as long as the limit.
    if random.below(500) == 0 {
        let long = LINE_BYTES_MAX - 1 + random.below(3);
        return [vec![b'x'; long], b"\n{}\n".to_vec()].concat();
    }
    let mut bytes = Vec::new();
    for _ in 0..=random.below(FRAMES_MAX) {
        bytes.extend_from_slice(pick(&FRAMES, random).as_bytes());
        bytes.push(b'\n');
    }
    for _ in 0..random.below(MUTATIONS_MAX) {
        mutate(&mut bytes, random);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let start = random.below(bytes.len() as u64 + 1);
    let end = (start + random.below(40)).min(bytes.len());
    match random.below(4) {
        0 => {
            if let Some(byte) = bytes.get_mut(start) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => drop(bytes.drain(start..end)),
        2 => {
            let copied: Vec<u8> = bytes.get(start..end).unwrap_or_default().to_vec();
            bytes.splice(start..start, copied);
        }
        _ => drop(bytes.splice(start..start, pick(&INSERTS, random).to_vec())),
    }
}

fn pick<T: Copy + Default>(from: &[T], random: &mut Random) -> T {
    from.get(random.below(from.len() as u64)).copied().unwrap_or_default()
}

/// Random numbers that depend only on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((it ^ (it >> 31)) % limit.max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_thousand_seeds_pass() {
        for seed in 0..1_000 {
            round(seed).await.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        }
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_read_and_a_longer_one_refused() {
        for (length, expected) in
            [(LINE_BYTES_MAX, "invalid message"), (LINE_BYTES_MAX + 1, "longer than")]
        {
            let line = [vec![b'x'; length], b"\n".to_vec()].concat();
            let answer = serve(&line, &mut Random(1)).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.contains(expected) && answer.lines().count() == 1, "{answer}");
        }
    }
}
