//! A program of the operator's that gets a text on its standard input, such as a notification for a human.
//!
//! It is not a run: it gets only the text and the few variables that every program gets. The beginning of its
//! output is kept, to explain a failure.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, copy, sink};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Failure, Outcome, Reason};
use crate::command::{VARIABLES, home, run_process};
use crate::process::Process;

/// How much of a hook's output is kept.
pub const HOOK_OUTPUT_BYTES_MAX: u64 = 1_024;

pub struct Hook {
    argv: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// How a hook ended, and the beginning of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookResult {
    pub outcome: Outcome,
    pub output: String,
}

impl Hook {
    /// The program gets only those variables of `environment` that every program gets.
    pub fn new(argv: Vec<String>, environment: &BTreeMap<String, String>) -> Hook {
        let passed = environment.iter().filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        let environment = passed.map(|(name, value)| (name.clone(), value.clone())).collect();
        Hook { argv, environment }
    }

    /// Runs the program with `text` on its standard input, and ends it after `time_max`.
    pub async fn run(&self, text: &str, time_max: Duration) -> HookResult {
        let (process, pipe) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                return HookResult { outcome: self.not_started(&error), output: String::new() };
            }
        };
        let mut output = Vec::new();
        let never = CancellationToken::new();
        let reading = read_beginning(pipe, &mut output);
        let outcome = run_process(process, text, reading, time_max, &never).await;
        HookResult { outcome, output: String::from_utf8_lossy(&output).into_owned() }
    }

    #[expect(clippy::disallowed_methods, reason = "the only place that starts an operator's hook")]
    fn start(&self) -> io::Result<(Process, Receiver)> {
        let (reader, writer) = io::pipe()?;
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.environment)
            .current_dir(home(&self.environment))
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let pipe = Receiver::from_owned_fd(reader.into())?;
        Ok((Process::start(command, None)?, pipe))
    }

    fn not_started(&self, error: &io::Error) -> Outcome {
        let program = self.argv.first().map_or("", String::as_str);
        let message = format!("`{program}` cannot be started: {error}");
        Outcome::Failed(Failure::transient(Reason::NotStarted, message))
    }
}

/// Omits the arguments and the environment, which may contain secrets.
impl fmt::Debug for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hook").field("program", &self.argv.first()).finish_non_exhaustive()
    }
}

/// Keeps the beginning and discards the rest, so that the program never blocks on a full pipe.
async fn read_beginning(mut pipe: Receiver, output: &mut Vec<u8>) {
    let _ = (&mut pipe).take(HOOK_OUTPUT_BYTES_MAX).read_to_end(output).await;
    let _ = copy(&mut pipe, &mut sink()).await;
}
