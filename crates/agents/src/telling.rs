//! What an agent says, on its way into the record: line by line, so that a secret that comes in pieces is
//! hidden all the same. A line that does not end is told in parts, each of which is held back long enough.

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::output::Recorder;
use crate::secrets::Secrets;

const READ_BYTES_MAX: usize = 64 << 10;
/// Of a line that does not end.
const LINE_BYTES_MAX: usize = 256 << 10;
/// What is held back of it: more than a secret takes in any of its forms.
const HELD_BYTES: usize = 128 << 10;

pub(crate) struct Telling<'a> {
    recorder: &'a mut Recorder,
    secrets: &'a dyn Secrets,
    held: Vec<u8>,
}

impl<'a> Telling<'a> {
    pub(crate) fn new(recorder: &'a mut Recorder, secrets: &'a dyn Secrets) -> Telling<'a> {
        Telling { recorder, secrets, held: Vec::new() }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.take(text.as_bytes()).await;
    }

    /// Takes all that is said until the other end is closed.
    pub(crate) async fn take_all(&mut self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = Vec::with_capacity(READ_BYTES_MAX);
        while let Ok(1..) = from.read_buf(&mut chunk).await {
            self.take(&chunk).await;
            chunk.clear();
        }
    }

    pub(crate) async fn end(self) {
        self.recorder.take(&self.hidden(&self.held)).await;
    }

    async fn take(&mut self, bytes: &[u8]) {
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        self.held.extend_from_slice(bytes);
        if let Some(end) = end {
            let rest = self.held.split_off(self.held.len() - (bytes.len() - end - 1));
            let lines = std::mem::replace(&mut self.held, rest);
            self.recorder.take(&self.hidden(&lines)).await;
        }
        if LINE_BYTES_MAX < self.held.len() {
            // A secret that is whole is hidden before the rest is cut off; one that is not, is in the rest.
            let mut hidden = self.hidden(&self.held);
            self.held = hidden.split_off(hidden.len().saturating_sub(HELD_BYTES));
            self.recorder.take(&hidden).await;
        }
    }

    /// What is no text stays as it is.
    fn hidden(&self, bytes: &[u8]) -> Vec<u8> {
        let mut hidden = Vec::with_capacity(bytes.len());
        for part in bytes.utf8_chunks() {
            hidden.extend_from_slice(self.secrets.hide(part.valid()).as_bytes());
            hidden.extend_from_slice(part.invalid());
        }
        hidden
    }
}
