//! The queue in front of the log file, and the thread that empties it.
//!
//! Pushing never waits for the disk. Invariant: at most [`QUEUE_BYTES_MAX`] bytes are queued, and as many are being
//! written. Lines that do not fit are counted, and the count is logged when a line can be written again.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// Limit of the lines that wait for the disk.
const QUEUE_BYTES_MAX: usize = 4 << 20;

/// A longer line is truncated.
const LINE_BYTES_MAX: usize = 64 << 10;

/// How much of a truncated line is kept; escaping may double it.
const TRUNCATED_BYTES_MAX: usize = LINE_BYTES_MAX / 4;

/// How long a flush waits for the disk.
const FLUSH_MAX: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Queue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when lines arrive, when they have been written, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    bytes: usize,
    dropped: u64,
    writing: bool,
    closed: bool,
}

impl Queue {
    /// Starts the thread that hands every line to `sink`.
    pub(super) fn start<F>(sink: F) -> io::Result<Queue>
    where
        F: FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    {
        let queue = Queue { shared: Arc::default() };
        let shared = Arc::clone(&queue.shared);
        let mut drain = Drain { sink, lost: 0, reason: String::new() };
        thread::Builder::new().name("logs".to_owned()).spawn(move || {
            while let Some((lines, dropped)) = shared.take() {
                drain.write_all(&lines, dropped);
            }
        })?;
        Ok(queue)
    }

    /// Queues a line, or counts it if there is no room.
    pub(super) fn push(&self, line: String) {
        let line = if line.len() <= LINE_BYTES_MAX { line } else { truncate(&line) };
        let mut state = self.shared.lock();
        if state.closed || QUEUE_BYTES_MAX < state.bytes + line.len() {
            state.dropped += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push(line);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits until all lines are written, [`FLUSH_MAX`] at most.
    pub(super) fn flush(&self) {
        let is_busy = |state: &mut State| state.writing || !state.lines.is_empty();
        let state = self.shared.lock();
        drop(self.shared.changed.wait_timeout_while(state, FLUSH_MAX, is_busy));
    }

    /// Flushes, and ends the thread. Later lines are dropped.
    pub(super) fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        self.flush();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Shared {
    /// A thread that panicked while it held the lock left the queue in a valid state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines and takes them all, with the number of lines dropped before them. Returns `None` when the
    /// queue is closed and empty.
    fn take(&self) -> Option<(Vec<String>, u64)> {
        let mut state = self.lock();
        state.writing = false;
        self.changed.notify_all();
        let is_idle = |state: &mut State| state.lines.is_empty() && !state.closed;
        let mut state =
            self.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        if state.lines.is_empty() {
            return None;
        }
        state.writing = true;
        state.bytes = 0;
        Some((std::mem::take(&mut state.lines), std::mem::take(&mut state.dropped)))
    }
}

/// Writes the lines of the queue to the sink.
struct Drain<F> {
    sink: F,
    /// Lines lost since the last one that was written.
    lost: u64,
    /// Why they were lost.
    reason: String,
}

impl<F: FnMut(&[u8]) -> io::Result<()>> Drain<F> {
    fn write_all(&mut self, lines: &[String], dropped: u64) {
        if 0 < dropped {
            self.lost += dropped;
            self.reason = "the disk is too slow".to_owned();
        }
        for line in lines {
            if let Err(error) = self.write(line) {
                self.count_lost(&error);
            }
        }
    }

    /// Writes a line, and before it the number of lost lines.
    fn write(&mut self, line: &str) -> io::Result<()> {
        if 0 < self.lost {
            let fields = json!({"message": "log lines were lost", "lines": self.lost, "reason": self.reason});
            (self.sink)(warning(fields).as_bytes())?;
            self.lost = 0;
        }
        (self.sink)(line.as_bytes())
    }

    fn count_lost(&mut self, error: &io::Error) {
        if self.lost == 0 {
            // `tracing` would send this back here.
            let _ = writeln!(io::stderr(), "warning: the log file cannot be written: {error}");
        }
        self.lost += 1;
        self.reason = error.to_string();
    }
}

/// A log line that holds the beginning of a line that is too long.
fn truncate(line: &str) -> String {
    let end = line.floor_char_boundary(TRUNCATED_BYTES_MAX);
    let start = line.get(..end).unwrap_or_default();
    warning(json!({"message": "a log line was too long", "bytes": line.len(), "start": start}))
}

/// A warning in the format of all other lines.
fn warning(fields: serde_json::Value) -> String {
    let mut timestamp = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let target = module_path!();
    let line = json!({"timestamp": timestamp, "level": "WARN", "fields": fields, "target": target});
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};

    use serde_json::Value;

    use super::*;

    /// A queue whose sink returns what `write` returns, and the lines that were written.
    fn queue<F>(mut write: F) -> (Queue, Receiver<String>)
    where
        F: FnMut() -> io::Result<()> + Send + 'static,
    {
        let (sender, lines) = mpsc::channel();
        let queue = Queue::start(move |line| {
            write()?;
            sender.send(String::from_utf8(line.to_vec()).unwrap()).unwrap();
            Ok(())
        });
        (queue.unwrap(), lines)
    }

    fn fields(line: &str) -> Value {
        serde_json::from_str::<Value>(line).unwrap()["fields"].take()
    }

    #[test]
    fn closing_writes_what_is_queued() {
        let (queue, lines) = queue(|| Ok(()));
        queue.push("a\n".to_owned());
        queue.push("b\n".to_owned());
        queue.close();
        queue.push("c\n".to_owned());
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["a\n", "b\n"]);
    }

    #[test]
    fn hung_disk_never_blocks_push_and_lost_lines_are_counted() {
        let (go, gate) = mpsc::channel::<()>();
        let (queue, lines) = queue(move || {
            let _ = gate.recv();
            Ok(())
        });
        let line = "x".repeat(LINE_BYTES_MAX - 1) + "\n";
        let fitting = QUEUE_BYTES_MAX / LINE_BYTES_MAX;
        // The lines that the thread has taken leave room for as many again.
        for _ in 0..2 * fitting + 3 {
            queue.push(line.clone());
        }
        drop(go);
        queue.flush();
        queue.push("later\n".to_owned());
        queue.close();
        let lines: Vec<String> = lines.iter().collect();
        let notices = lines.iter().filter(|line| line.starts_with('{')).collect::<Vec<_>>();
        let lost: u64 = notices.iter().map(|line| fields(line)["lines"].as_u64().unwrap()).sum();
        assert!(3 <= lost, "{lost}");
        assert_eq!(lines.len() - notices.len() + lost as usize, 2 * fitting + 4);
        assert_eq!(fields(notices[0])["reason"], "the disk is too slow");
        assert_eq!(lines.last().unwrap(), "later\n");
    }

    #[test]
    fn failing_disk_loses_lines_and_logs_their_count_afterwards() {
        let mut results = vec![true, false, false, false, true, true, true].into_iter();
        let write = move || match results.next() {
            Some(false) => Err(io::Error::other("full")),
            _ => Ok(()),
        };
        let (queue, lines) = queue(write);
        for line in ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n"] {
            queue.push(line.to_owned());
        }
        queue.close();
        let mut lines: Vec<String> = lines.iter().collect();
        let notice = lines.remove(1);
        assert_eq!(lines, ["a\n", "e\n", "f\n"]);
        let expected = json!({"message": "log lines were lost", "lines": 3, "reason": "full"});
        assert_eq!(fields(&notice), expected);
    }

    #[test]
    fn line_past_the_limit_is_truncated() {
        let (queue, lines) = queue(|| Ok(()));
        let longest = "\"".repeat(LINE_BYTES_MAX - 1) + "\n";
        queue.push(longest.clone());
        queue.push(format!("\"{longest}"));
        queue.close();
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(lines[0], longest);
        assert!(lines[1].len() <= LINE_BYTES_MAX);
        assert_eq!(fields(&lines[1])["bytes"], LINE_BYTES_MAX + 1);
        assert_eq!(fields(&lines[1])["start"], "\"".repeat(TRUNCATED_BYTES_MAX));
    }
}
