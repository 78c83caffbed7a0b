//! Lines that nobody would write, for the one parser of the protocol that is ours.
//!
//! Whatever comes, however it is cut into pieces: the server reads to the end, everything that it writes is a
//! message, and every line that is none is answered with one error. A seed is a round; a round that fails is
//! named by its seed.

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

/// What is changed, cut and put together.
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
const PIECES: [&[u8]; 16] = [
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
const CHANGES_MAX: u64 = 12;
const FRAMES_MAX: u64 = 8;

/// Nothing is behind the lines.
#[derive(Clone, Debug)]
struct Nothing;

impl ServerHandler for Nothing {}

/// Rounds for so long, beginning with this seed.
pub(crate) async fn run(seed: u64, span: Duration) -> Result<u64> {
    let started = Instant::now();
    let mut seed = seed;
    let mut rounds = 0;
    while started.elapsed() < span {
        round(seed).await.with_context(|| format!("the round of seed {seed}"))?;
        (seed, rounds) = (seed.wrapping_add(1), rounds + 1);
    }
    Ok(rounds)
}

async fn round(seed: u64) -> Result<()> {
    let mut dice = Dice(seed);
    let input = written(&mut dice);
    let said = answered(&input, &mut dice).await?;
    let mut errors = 0;
    for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).context("what it wrote is no message")?;
        ensure!(message.get("jsonrpc").is_some_and(|it| it == "2.0"), "{message}");
        let is_error = message.get("error").is_some();
        errors += usize::from(is_error && message.get("id").is_none_or(Value::is_null));
    }
    let nameless = |line: &&[u8]| is_wrong(line) && !is_named(line);
    let wrong = input.split(|byte| *byte == b'\n').filter(nameless).count();
    ensure!(errors == wrong, "{wrong} lines are no messages, and {errors} were answered so");
    Ok(())
}

/// Whether it can be told which request that is.
fn is_named(line: &[u8]) -> bool {
    let document: Value = api::json::read(line).unwrap_or_default();
    let id = document.get("id").cloned();
    line.len() <= LINE_BYTES_MAX
        && id.is_some_and(|id| serde_json::from_value::<RequestId>(id).is_ok())
}

/// The same as the parser, without its pieces and its limits on the way.
fn is_wrong(line: &[u8]) -> bool {
    let is_blank = line.iter().all(u8::is_ascii_whitespace);
    let read = || api::json::read::<RxJsonRpcMessage<RoleServer>>(line);
    LINE_BYTES_MAX < line.len() || (!is_blank && read().is_err())
}

/// All that the server says to this input, which comes in pieces.
async fn answered(input: &[u8], dice: &mut Dice) -> Result<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let most = if rest.len() < 1 << 16 { 64 } else { 1 << 20 };
        let (piece, after) = rest.split_at(rest.len().min(1 + dice.below(most)));
        pieces.push(Ok::<_, io::Error>(Bytes::copy_from_slice(piece)));
        rest = after;
    }
    let reader = StreamReader::new(stream::iter(pieces));
    let (output, mut read) = duplex(1 << 16);
    let mut said = Vec::new();
    let (served, told) =
        futures::join!(mcp::serve(Nothing, reader, output), read.read_to_end(&mut said));
    served?;
    told?;
    Ok(said)
}

fn written(dice: &mut Dice) -> Vec<u8> {
    // Long lines are rare, and at the limit.
    if dice.below(500) == 0 {
        let long = LINE_BYTES_MAX - 1 + dice.below(3);
        return [vec![b'x'; long], b"\n{}\n".to_vec()].concat();
    }
    let mut bytes = Vec::new();
    for _ in 0..=dice.below(FRAMES_MAX) {
        bytes.extend_from_slice(pick(&FRAMES, dice).as_bytes());
        bytes.push(b'\n');
    }
    for _ in 0..dice.below(CHANGES_MAX) {
        change(&mut bytes, dice);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let start = dice.below(bytes.len() as u64 + 1);
    let end = (start + dice.below(40)).min(bytes.len());
    match dice.below(4) {
        0 => {
            if let Some(byte) = bytes.get_mut(start) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 => drop(bytes.drain(start..end)),
        2 => {
            let copied: Vec<u8> = bytes.get(start..end).unwrap_or_default().to_vec();
            bytes.splice(start..start, copied);
        }
        _ => drop(bytes.splice(start..start, pick(&PIECES, dice).to_vec())),
    }
}

fn pick<T: Copy + Default>(from: &[T], dice: &mut Dice) -> T {
    from.get(dice.below(from.len() as u64)).copied().unwrap_or_default()
}

/// Numbers that only depend on the seed.
struct Dice(u64);

impl Dice {
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
    async fn the_first_rounds_hold() {
        for seed in 0..1_000 {
            round(seed).await.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        }
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_read_and_one_past_it_is_refused() {
        for (length, said) in [(LINE_BYTES_MAX, "is no message"), (LINE_BYTES_MAX + 1, "at most")] {
            let line = [vec![b'x'; length], b"\n".to_vec()].concat();
            let answer = answered(&line, &mut Dice(1)).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.contains(said) && answer.lines().count() == 1, "{answer}");
        }
    }
}
