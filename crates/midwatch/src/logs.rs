//! What Midwatch says about itself: lines for people on standard error, JSON lines in a file.
//!
//! Every line goes through the [`Redactor`] first. The file is written by a thread of its own: a
//! disk that is slow, full or broken costs lines, which are counted, and never time or a failure.
//! This is no evidence of anything: what happened is in the ledger.

mod queue;
mod rotating_file;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

pub use rotating_file::RotatingFile;

use crate::config::{self, Level};
use crate::redact::Redactor;
use queue::Queue;

/// The file, within the data directory.
const FILE: &str = "logs/midwatch.log";

/// The one variable that a short-lived command looks at.
const LEVEL_VARIABLE: &str = "MIDWATCH_LOG_LEVEL";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the logs were set up already")]
    Twice,
    #[error("the thread that writes the log file cannot be started: {0}")]
    Thread(io::Error),
}

/// The logs of this process. Keep it to the end of `main`: dropping it writes what is queued.
#[derive(Debug)]
pub struct Logs {
    redactor: Arc<Redactor>,
    queue: Option<Queue>,
}

/// Sets up the logs of this process: on standard error, and in `logs/midwatch.log` in the data
/// directory, if one is given. A file that cannot be written is no error.
pub fn init(config: &config::Log, data: Option<&Path>) -> Result<Logs, Error> {
    let queue = data.map(|data| start_queue(config, data)).transpose()?;
    let logs = Logs { redactor: Arc::default(), queue };
    logs.listen(config.level)?;
    Ok(logs)
}

/// Sets up the logs of a short-lived command: warnings on standard error, unless the environment
/// asks for another level. It needs no configuration, so that a broken one stops no command that
/// can do without.
pub fn init_quiet(environment: &BTreeMap<String, String>) -> Logs {
    let asked = environment.get(LEVEL_VARIABLE).and_then(|word| Level::of(word));
    let logs = Logs { redactor: Arc::default(), queue: None };
    // Whoever set up logs before has them still.
    let _ = logs.listen(asked.unwrap_or(Level::Warn));
    logs
}

impl Logs {
    /// Knows the secrets that must not appear anywhere; whoever loads one adds it.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Waits until the file holds what was logged so far, but not for ever.
    pub fn flush(&self) {
        self.queue.iter().for_each(Queue::flush);
    }

    /// Takes the events of the whole process.
    fn listen(&self, level: Level) -> Result<(), Error> {
        let people = self.people(io::stderr);
        let subscriber = tracing_subscriber::registry()
            .with(for_people(people, colour(), level))
            .with(self.machines().map(|machines| for_machines(machines, level)));
        subscriber.try_init().map_err(|_| Error::Twice)
    }

    fn people<F, W>(&self, out: F) -> impl Fn() -> ForPeople<W> + use<F, W>
    where
        F: Fn() -> W,
        W: Write,
    {
        let redactor = Arc::clone(&self.redactor);
        move || ForPeople { redactor: Arc::clone(&redactor), out: out() }
    }

    fn machines(&self) -> Option<impl Fn() -> ForMachines + use<>> {
        let redactor = Arc::clone(&self.redactor);
        let queue = self.queue.clone()?;
        Some(move || ForMachines { redactor: Arc::clone(&redactor), queue: queue.clone() })
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.queue.iter().for_each(Queue::close);
    }
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> LevelFilter {
        match level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        }
    }
}

#[derive(Clone, Copy)]
enum Colour {
    Plain,
    Ansi,
}

/// Colours are for terminals whose user wants them.
fn colour() -> Colour {
    let stderr = io::stderr();
    let wanted = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
    if stderr.is_terminal() && wanted { Colour::Ansi } else { Colour::Plain }
}

fn start_queue(config: &config::Log, data: &Path) -> Result<Queue, Error> {
    let path = data.join(FILE);
    let mut file = RotatingFile::new(path, config.file_bytes_max, config.files_max);
    Queue::start(move |line| file.append(line)).map_err(Error::Thread)
}

fn for_people<S, W>(writer: W, colour: Colour, level: Level) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer()
        .with_writer(writer)
        .with_ansi(matches!(colour, Colour::Ansi))
        .log_internal_errors(false)
        .with_filter(up_to(level))
}

fn for_machines<S, W>(writer: W, level: Level) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer()
        .json()
        .with_current_span(false)
        .with_writer(writer)
        .log_internal_errors(false)
        .with_filter(up_to(level))
}

/// What the library of the protocol says of every request is of no use to anybody, and in the words of
/// whoever made it.
fn up_to(level: Level) -> Targets {
    Targets::new().with_default(LevelFilter::from(level)).with_target("rmcp", LevelFilter::ERROR)
}

/// Takes one whole event per write.
struct ForPeople<W> {
    redactor: Arc<Redactor>,
    out: W,
}

impl<W: Write> Write for ForPeople<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let shown = self.redactor.redact(text.trim_end_matches('\n'));
        // What follows a line break within an event must not look like an event of its own.
        let shown = format!("{}\n", shown.replace('\n', "\n    "));
        // Whoever closed our standard error does not want to read this.
        let _ = self.out.write_all(shown.as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes one whole event per write.
struct ForMachines {
    redactor: Arc<Redactor>,
    queue: Queue,
}

impl Write for ForMachines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let shown = self.redactor.redact_json(text.trim_end_matches('\n'));
        self.queue.push(format!("{shown}\n"));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Memory {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// Does `work` and returns what people and machines get to read of it.
    fn logged(colour: Colour, level: Level, work: impl FnOnce()) -> (String, Vec<Value>) {
        let dir = tempfile::tempdir().unwrap();
        let config = config::Log { level, file_bytes_max: 1 << 20, files_max: 1 };
        let queue = start_queue(&config, dir.path()).unwrap();
        let logs = Logs { redactor: Arc::default(), queue: Some(queue) };
        logs.redactor().add("known \"canary\"");
        let memory = Memory::default();
        let out = memory.clone();
        let subscriber = tracing_subscriber::registry()
            .with(for_people(logs.people(move || out.clone()), colour, level))
            .with(for_machines(logs.machines().unwrap(), level));
        tracing::subscriber::with_default(subscriber, work);
        drop(logs);
        let file = std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default();
        let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
        (memory.text(), lines.collect())
    }

    #[test]
    fn lines_for_people_and_for_machines() {
        let (text, lines) = logged(Colour::Plain, Level::Info, || {
            tracing::info!(run = 7, "started");
            tracing::debug!("too much");
        });
        assert!(text.ends_with("Z  INFO midwatch::logs::tests: started run=7\n"), "{text}");
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["level"], "INFO");
        assert_eq!(lines[0]["fields"], serde_json::json!({"message": "started", "run": 7}));
        assert!(lines[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn no_secret_gets_through_in_any_shape() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only printed")]
        struct Credential {
            token: Option<&'static str>,
        }
        for colour in [Colour::Plain, Colour::Ansi] {
            let (text, lines) = logged(colour, Level::Info, || {
                let span = tracing::info_span!("call", token = "canary-1");
                let _entered = span.enter();
                tracing::info!(password = "canary-2", api_key = ?"canary-3", secret = %"canary-4", "a");
                tracing::info!(value = ?Credential { token: Some("canary-5") }, "Bearer canary-6");
                tracing::info!("https://me:canary-7@host, token: (canary-8");
                tracing::info!("it is known \"canary\" {:?}", "known \"canary\"");
                tracing::info!(body = r#"{"token":"canary-9","x":"\"canary"}"#, "sent");
                tracing::info!(
                    "key\n-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----"
                );
            });
            let json: String = lines.iter().map(Value::to_string).collect();
            assert_eq!(lines.len(), 6);
            // The ninth line's `x` is no secret.
            for shown in [text.replace("\\\"canary", ""), json.replace("\\\"canary", "")] {
                assert!(!shown.contains("canary"), "{shown}");
            }
        }
    }

    #[test]
    fn a_line_break_within_an_event_starts_no_new_one() {
        let (text, lines) = logged(Colour::Plain, Level::Info, || {
            tracing::info!("first\n2026-01-01T00:00:00Z  INFO forged");
        });
        assert!(text.ends_with("first\n    2026-01-01T00:00:00Z  INFO forged\n"), "{text}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn what_the_protocol_says_of_each_request_is_left_out() {
        let (text, lines) = logged(Colour::Plain, Level::Trace, || {
            tracing::info!(target: "rmcp::service", "Service initialized as server");
            tracing::error!(target: "rmcp::service", "it failed");
        });
        assert!(text.contains("it failed") && !text.contains("initialized"), "{text}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn levels() {
        for (level, expected) in Level::ALL.into_iter().zip(1..) {
            let (_, lines) = logged(Colour::Plain, level, || {
                tracing::error!("1");
                tracing::warn!("2");
                tracing::info!("3");
                tracing::debug!("4");
                tracing::trace!("5");
            });
            assert_eq!(lines.len(), expected, "{level:?}");
        }
    }
}
