//! What an attempt says while it goes on, for whoever listens. It is not the truth: that is what is
//! recorded in the end. Only the newest is kept, so that nobody has to listen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How much is kept for those who listen.
pub const SAID_BYTES_MAX: usize = 64 << 10;

/// All clones are of the same attempt.
#[derive(Clone, Debug, Default)]
pub struct Said(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    newest: Mutex<Vec<u8>>,
    /// How much was said in all.
    bytes: watch::Sender<u64>,
}

impl Default for Inner {
    fn default() -> Inner {
        Inner { newest: Mutex::default(), bytes: watch::Sender::new(0) }
    }
}

impl Said {
    pub fn say(&self, chunk: &[u8]) {
        let mut newest = self.newest();
        newest.extend_from_slice(chunk);
        let too_much = newest.len().saturating_sub(SAID_BYTES_MAX);
        newest.drain(..too_much);
        self.0.bytes.send_modify(|bytes| *bytes += chunk.len() as u64);
    }

    /// How much was said in all.
    pub fn bytes(&self) -> u64 {
        *self.0.bytes.borrow()
    }

    /// What was said after so many bytes, as far as it is kept, and how many it is then. A character
    /// that is not whole yet waits.
    pub fn after(&self, bytes: u64) -> (String, u64) {
        let newest = self.newest();
        let all = self.bytes();
        let unheard = usize::try_from(all.saturating_sub(bytes)).unwrap_or(usize::MAX);
        let unheard = newest.get(newest.len().saturating_sub(unheard)..).unwrap_or_default();
        let whole = match str::from_utf8(unheard) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => unheard.len(),
        };
        let text = String::from_utf8_lossy(unheard.get(..whole).unwrap_or_default());
        (text.into_owned(), all - (unheard.len() - whole) as u64)
    }

    /// Returns when more was said than so many bytes.
    pub async fn more_than(&self, bytes: u64) {
        let mut said = self.0.bytes.subscribe();
        // The sender lives as long as this does.
        let _ = said.wait_for(|said| bytes < *said).await;
    }

    fn newest(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_once_and_no_character_is_cut() {
        let said = Said::default();
        assert_eq!(said.after(0), (String::new(), 0));
        said.say("aä".as_bytes());
        assert_eq!(said.after(0), ("aä".to_owned(), 3));
        said.say(b"b\xc3");
        assert_eq!(said.after(3), ("b".to_owned(), 4));
        said.say(b"\xa4c");
        assert_eq!(said.after(4), ("äc".to_owned(), 7));
        assert_eq!(said.after(7), (String::new(), 7));
    }

    #[test]
    fn only_the_newest_is_kept() {
        let said = Said::default();
        said.say(&[b'x'; SAID_BYTES_MAX]);
        assert_eq!(said.after(0).0.len(), SAID_BYTES_MAX);
        said.say(b"y");
        let (text, bytes) = said.after(0);
        assert!(text.ends_with("xy"));
        assert_eq!((text.len(), bytes), (SAID_BYTES_MAX, SAID_BYTES_MAX as u64 + 1));
        // Whoever was further than that hears only what is new.
        assert_eq!(said.after(SAID_BYTES_MAX as u64).0, "y");
    }
}
