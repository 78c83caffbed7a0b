//! Redacts secrets in an agent's output before it is recorded. It passes on whole lines, so that a secret which
//! arrives in pieces is found. Of a line that is too long it keeps back more than the length of a secret.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::output::Recorder;
use crate::secrets::Secrets;

const READ_BYTES_MAX: usize = 64 << 10;
/// A longer line is passed on in parts.
const LINE_BYTES_MAX: usize = 256 << 10;
/// How much of such a line is kept back: more than a secret takes in any of its forms.
const PENDING_BYTES: usize = 128 << 10;

pub(crate) struct OutputFilter<'a> {
    recorder: &'a mut Recorder,
    secrets: &'a dyn Secrets,
    /// The incomplete last line.
    pending: Vec<u8>,
}

impl<'a> OutputFilter<'a> {
    pub(crate) fn new(recorder: &'a mut Recorder, secrets: &'a dyn Secrets) -> OutputFilter<'a> {
        OutputFilter { recorder, secrets, pending: Vec::new() }
    }

    pub(crate) async fn write_text(&mut self, text: &str) {
        self.write(text.as_bytes()).await;
    }

    /// Reads until the other end is closed or fails.
    pub(crate) async fn copy_from(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = Vec::with_capacity(READ_BYTES_MAX);
        while let Ok(1..) = from.read_buf(&mut chunk).await {
            self.write(&chunk).await;
            chunk.clear();
        }
    }

    pub(crate) async fn finish(self) {
        self.recorder.write(&self.redact(&self.pending)).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        self.pending.extend_from_slice(bytes);
        if let Some(end) = end {
            let rest = self.pending.split_off(self.pending.len() - (bytes.len() - end - 1));
            let lines = std::mem::replace(&mut self.pending, rest);
            self.recorder.write(&self.redact(&lines)).await;
        }
        if LINE_BYTES_MAX < self.pending.len() {
            // A complete secret is redacted before the split; an incomplete one is in the part kept back.
            let mut redacted = self.redact(&self.pending);
            self.pending = redacted.split_off(redacted.len().saturating_sub(PENDING_BYTES));
            self.recorder.write(&redacted).await;
        }
    }

    /// Bytes that are not UTF-8 stay as they are.
    fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        let mut redacted = Vec::with_capacity(bytes.len());
        for part in bytes.utf8_chunks() {
            redacted.extend_from_slice(self.secrets.redact(part.valid()).as_bytes());
            redacted.extend_from_slice(part.invalid());
        }
        redacted
    }
}
