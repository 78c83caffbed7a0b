//! Reads a stream of server-sent events within limits, and returns the data of each event.

use crate::http::{HttpResponse, RequestError};

/// Limit of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Limit of the whole stream.
const STREAM_BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct EventStream {
    response: HttpResponse,
    /// Received bytes that are not a whole line yet.
    buffer: Vec<u8>,
    data: String,
    bytes: usize,
}

impl EventStream {
    pub(crate) fn new(response: HttpResponse) -> EventStream {
        EventStream { response, buffer: Vec::new(), data: String::new(), bytes: 0 }
    }

    /// Returns the data of the next event, or `None` at the end. An event without its closing empty line is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, RequestError> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                if let Some(data) = self.read_line(line.trim_end_matches(['\r', '\n'])) {
                    return Ok(Some(data));
                }
            }
            if EVENT_BYTES_MAX < self.buffer.len() + self.data.len() {
                return Err(RequestError::too_long(EVENT_BYTES_MAX));
            }
            let Some(chunk) = self.response.chunk().await? else { return Ok(None) };
            self.bytes += chunk.len();
            if STREAM_BYTES_MAX < self.bytes {
                return Err(RequestError::too_long(STREAM_BYTES_MAX));
            }
            self.buffer.extend_from_slice(&chunk);
        }
    }

    /// Returns the data of the event that this line completes.
    fn read_line(&mut self, line: &str) -> Option<String> {
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
