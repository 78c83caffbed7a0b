//! The output of an attempt while it runs, for clients that follow it. It is not authoritative: the recorded
//! output is. Only the newest bytes are kept, so a reader that lags misses some and never blocks the attempt.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How many of the newest bytes are kept.
pub const LIVE_OUTPUT_BYTES_MAX: usize = 64 << 10;

/// The live output of one attempt, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct LiveOutput(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    newest: Mutex<Vec<u8>>,
    /// Length of the whole output.
    bytes: watch::Sender<u64>,
}

impl Default for Inner {
    fn default() -> Inner {
        Inner { newest: Mutex::default(), bytes: watch::Sender::new(0) }
    }
}

impl LiveOutput {
    pub fn push(&self, chunk: &[u8]) {
        let mut newest = self.newest();
        newest.extend_from_slice(chunk);
        let excess = newest.len().saturating_sub(LIVE_OUTPUT_BYTES_MAX);
        newest.drain(..excess);
        self.0.bytes.send_modify(|bytes| *bytes += chunk.len() as u64);
    }

    /// Length of the whole output so far.
    pub fn bytes(&self) -> u64 {
        *self.0.bytes.borrow()
    }

    /// Returns the output after position `bytes`, as far as it is still kept, and the position to continue from.
    /// An incomplete character at the end is left for the next call.
    pub fn read_after(&self, bytes: u64) -> (String, u64) {
        let newest = self.newest();
        let all = self.bytes();
        let unread = usize::try_from(all.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let unread = newest.get(newest.len().saturating_sub(unread)..).unwrap_or_default();
        let whole = match str::from_utf8(unread) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => unread.len(),
        };
        let text = String::from_utf8_lossy(unread.get(..whole).unwrap_or_default());
        (text.into_owned(), all - (unread.len() - whole) as u64)
    }

    /// Waits until the output is longer than `bytes`.
    pub async fn wait_past(&self, bytes: u64) {
        let mut total = self.0.bytes.subscribe();
        // It fails only when the sender is dropped, and `self` owns the sender.
        let _ = total.wait_for(|total| bytes < *total).await;
    }

    fn newest(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_once_and_no_character_is_split() {
        let output = LiveOutput::default();
        assert_eq!(output.read_after(0), (String::new(), 0));
        output.push("aä".as_bytes());
        assert_eq!(output.read_after(0), ("aä".to_owned(), 3));
        output.push(b"b\xc3");
        assert_eq!(output.read_after(3), ("b".to_owned(), 4));
        output.push(b"\xa4c");
        assert_eq!(output.read_after(4), ("äc".to_owned(), 7));
        assert_eq!(output.read_after(7), (String::new(), 7));
    }

    #[test]
    fn only_the_newest_is_kept() {
        let output = LiveOutput::default();
        output.push(&[b'x'; LIVE_OUTPUT_BYTES_MAX]);
        assert_eq!(output.read_after(0).0.len(), LIVE_OUTPUT_BYTES_MAX);
        output.push(b"y");
        let (text, bytes) = output.read_after(0);
        assert!(text.ends_with("xy"));
        assert_eq!((text.len(), bytes), (LIVE_OUTPUT_BYTES_MAX, LIVE_OUTPUT_BYTES_MAX as u64 + 1));
        // A reader that has not lagged gets only the new byte.
        assert_eq!(output.read_after(LIVE_OUTPUT_BYTES_MAX as u64).0, "y");
    }
}
