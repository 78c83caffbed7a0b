//! The log of this process: lines for people on standard error, JSON lines in a file.
//!
//! Every line goes through the [`Redactor`] first. A separate thread writes the file: a disk that is slow, full or
//! broken loses lines, which are counted, but never delays or fails a caller. The log is not evidence; the ledger
//! is.

mod queue;
mod rotating_file;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use redact::Redactor;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

pub use rotating_file::RotatingFile;

use crate::config::{self, Level};
use queue::Queue;

/// The path of the log file, within the data directory.
const FILE: &str = "logs/midwatch.log";

/// Sets the log level of a short-lived command.
const LEVEL_VARIABLE: &str = "MIDWATCH_LOG_LEVEL";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the logs are set up already")]
    Twice,
    #[error("the thread that writes the log file cannot be started: {0}")]
    Thread(io::Error),
}

/// The logs of this process. Keep it until the end of `main`: dropping it writes the queued lines.
#[derive(Debug)]
pub struct Logs {
    redactor: Arc<Redactor>,
    queue: Option<Queue>,
}

/// Sets up the logs of the daemon: on standard error and in `logs/midwatch.log` of the data directory. A file that cannot
/// be written is not an error. In a terminal, the default level shows only warnings and errors.
pub fn init(config: &config::Log, is_level_chosen: bool, data: &Path) -> Result<Logs, Error> {
    let queue = Some(start_queue(config, data)?);
    let logs = Logs { redactor: Arc::default(), queue };
    let on_stderr = level_on_stderr(config.level, is_level_chosen, io::stderr().is_terminal());
    logs.install(on_stderr, config.level)?;
    Ok(logs)
}

fn level_on_stderr(level: Level, is_chosen: bool, is_terminal: bool) -> Level {
    if is_terminal && !is_chosen { Level::Warn } else { level }
}

/// Sets up the logs of a short-lived command: warnings on standard error, unless the environment sets another
/// level. It reads no configuration, so that commands without one work when it is invalid.
pub fn init_quiet(environment: &BTreeMap<String, String>) -> Logs {
    let level = environment.get(LEVEL_VARIABLE).and_then(|word| Level::from_name(word));
    let logs = Logs { redactor: Arc::default(), queue: None };
    // If logs were set up before, those stay.
    let level = level.unwrap_or(Level::Warn);
    let _ = logs.install(level, level);
    logs
}

impl Logs {
    /// Redacts the secrets of this process. Code that loads a secret adds it here.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Waits until the file has all lines logged so far, with a timeout.
    pub fn flush(&self) {
        self.queue.iter().for_each(Queue::flush);
    }

    /// Makes this the log of the whole process.
    fn install(&self, on_stderr: Level, in_file: Level) -> Result<(), Error> {
        let human = self.human_writer(io::stderr);
        let subscriber = tracing_subscriber::registry()
            .with(human_layer(human, colour(), on_stderr))
            .with(self.json_writer().map(|writer| json_layer(writer, in_file)));
        subscriber.try_init().map_err(|_| Error::Twice)
    }

    fn human_writer<F, W>(&self, out: F) -> impl Fn() -> HumanWriter<W> + use<F, W>
    where
        F: Fn() -> W,
        W: Write,
    {
        let redactor = Arc::clone(&self.redactor);
        move || HumanWriter { redactor: Arc::clone(&redactor), out: out() }
    }

    fn json_writer(&self) -> Option<impl Fn() -> JsonWriter + use<>> {
        let redactor = Arc::clone(&self.redactor);
        let queue = self.queue.clone()?;
        Some(move || JsonWriter { redactor: Arc::clone(&redactor), queue: queue.clone() })
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

/// Uses colours on terminals, unless the user disabled them.
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

fn human_layer<S, W>(writer: W, colour: Colour, level: Level) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer()
        .with_writer(writer)
        .with_ansi(matches!(colour, Colour::Ansi))
        .log_internal_errors(false)
        .with_filter(filter(level))
}

fn json_layer<S, W>(writer: W, level: Level) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer()
        .json()
        .with_current_span(false)
        .with_writer(writer)
        .log_internal_errors(false)
        .with_filter(filter(level))
}

/// Drops the MCP library's messages about every request; only its errors are useful.
fn filter(level: Level) -> Targets {
    let default = LevelFilter::from(level);
    Targets::new()
        .with_default(default)
        .with_target("rmcp", LevelFilter::ERROR)
        // It logs what the server remarks, such as that a table exists already.
        .with_target("tokio_postgres", default.min(LevelFilter::WARN))
}

/// A writer that gets one whole event per write.
struct HumanWriter<W> {
    redactor: Arc<Redactor>,
    out: W,
}

impl<W: Write> Write for HumanWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let shown = self.redactor.redact(text.trim_end_matches('\n'));
        // Indent continuation lines, so that they cannot look like separate events.
        let shown = format!("{}\n", shown.replace('\n', "\n    "));
        // Standard error may be closed.
        let _ = self.out.write_all(shown.as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that gets one whole event per write.
struct JsonWriter {
    redactor: Arc<Redactor>,
    queue: Queue,
}

impl Write for JsonWriter {
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

    #[test]
    fn terminals_show_only_what_needs_a_person_unless_a_level_was_chosen() {
        assert_eq!(level_on_stderr(Level::Info, false, true), Level::Warn);
        assert_eq!(level_on_stderr(Level::Debug, true, true), Level::Debug);
        assert_eq!(level_on_stderr(Level::Info, false, false), Level::Info);
    }

    /// Runs `work` and returns its lines for people and its JSON lines.
    fn logged(colour: Colour, level: Level, work: impl FnOnce()) -> (String, Vec<Value>) {
        let dir = tempfile::tempdir().unwrap();
        let config = config::Log { level, file_bytes_max: 1 << 20, files_max: 1 };
        let queue = start_queue(&config, dir.path()).unwrap();
        let logs = Logs { redactor: Arc::default(), queue: Some(queue) };
        logs.redactor().add("known \"canary\"");
        let memory = Memory::default();
        let out = memory.clone();
        let subscriber = tracing_subscriber::registry()
            .with(human_layer(logs.human_writer(move || out.clone()), colour, level))
            .with(json_layer(logs.json_writer().unwrap(), level));
        tracing::subscriber::with_default(subscriber, work);
        drop(logs);
        let file = std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default();
        let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
        (memory.text(), lines.collect())
    }

    #[test]
    fn events_are_logged_as_text_and_as_json() {
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
    fn secrets_are_redacted_in_every_form() {
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
            // The `x` of the `body` field is not a secret.
            for shown in [text.replace("\\\"canary", ""), json.replace("\\\"canary", "")] {
                assert!(!shown.contains("canary"), "{shown}");
            }
        }
    }

    #[test]
    fn line_break_within_an_event_is_indented() {
        let (text, lines) = logged(Colour::Plain, Level::Info, || {
            tracing::info!("first\n2026-01-01T00:00:00Z  INFO forged");
        });
        assert!(text.ends_with("first\n    2026-01-01T00:00:00Z  INFO forged\n"), "{text}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn mcp_library_logs_errors_only() {
        let (text, lines) = logged(Colour::Plain, Level::Trace, || {
            tracing::info!(target: "rmcp::service", "Service initialized as server");
            tracing::error!(target: "rmcp::service", "it failed");
        });
        assert!(text.contains("it failed") && !text.contains("initialized"), "{text}");
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn level_limits_what_is_logged() {
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
