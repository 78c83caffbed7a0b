//! A stream of server-sent events, within limits: only the data of each, in their order.

use crate::http::{Answer, Unanswered};

/// Of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Of the whole stream.
const STREAM_BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Events {
    answer: Answer,
    /// What has come and is no whole line yet.
    rest: Vec<u8>,
    data: String,
    bytes: usize,
}

impl Events {
    pub(crate) fn new(answer: Answer) -> Events {
        Events { answer, rest: Vec::new(), data: String::new(), bytes: 0 }
    }

    /// The data of the next event; `None` at the end. What is not closed by an empty line is none.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Unanswered> {
        loop {
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(data) = self.take(line.trim_end_matches(['\r', '\n'])) {
                    return Ok(Some(data));
                }
            }
            if EVENT_BYTES_MAX < self.rest.len() + self.data.len() {
                return Err(Unanswered::too_long(EVENT_BYTES_MAX));
            }
            let Some(chunk) = self.answer.chunk().await? else { return Ok(None) };
            self.bytes += chunk.len();
            if STREAM_BYTES_MAX < self.bytes {
                return Err(Unanswered::too_long(STREAM_BYTES_MAX));
            }
            self.rest.extend_from_slice(&chunk);
        }
    }

    fn take(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return Some(data).filter(|data| !data.is_empty());
        }
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
        None
    }
}
