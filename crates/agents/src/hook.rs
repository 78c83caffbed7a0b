//! A program of the operator's that is given a text, such as a notice for a human.
//!
//! It is no run: it learns nothing but the text, sees the few variables that every program sees, and its
//! output is nobody's answer. Of that the beginning is kept, so that one that fails can say why.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use futures::future::{Either, join, select};
use tokio::io::{AsyncReadExt, copy, sink};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::command::{PIPE_WAIT, VARIABLES, give, home, watch};
use crate::process::Process;
use crate::work::{Failure, Outcome, Reason};

/// What is kept of all that a hook says.
pub const HOOK_SAID_BYTES_MAX: u64 = 1_024;

pub struct Hook {
    argv: Vec<String>,
    environment: BTreeMap<String, String>,
}

/// How it ended, and the beginning of what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub outcome: Outcome,
    pub said: String,
}

impl Hook {
    /// Of `environment` the program sees only what every program sees.
    pub fn new(argv: Vec<String>, environment: &BTreeMap<String, String>) -> Hook {
        let seen = environment.iter().filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        let environment = seen.map(|(name, value)| (name.clone(), value.clone())).collect();
        Hook { argv, environment }
    }

    /// Starts the program with `text` on its standard input, and ends it when its time is over.
    pub async fn give(&self, text: &str, time_max: Duration) -> Given {
        let (mut process, pipe) = match self.start() {
            Ok(started) => started,
            Err(error) => return Given { outcome: self.not_started(&error), said: String::new() },
        };
        let mut said = Vec::new();
        let never = CancellationToken::new();
        let outcome = {
            let giving = give(process.stdin(), text);
            let talking = pin!(join(giving, beginning(pipe, &mut said)));
            let watching = pin!(watch(process, time_max, &never));
            match select(watching, talking).await {
                Either::Left((outcome, talking)) => {
                    let _ = timeout(PIPE_WAIT, talking).await;
                    outcome
                }
                Either::Right((_, watching)) => watching.await,
            }
        };
        Given { outcome, said: String::from_utf8_lossy(&said).into_owned() }
    }

    #[expect(clippy::disallowed_methods, reason = "this is where an operator's hook is started")]
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
        Outcome::Failed(Failure::passing(Reason::NotStarted, message))
    }
}

/// Its arguments may hold a secret, and the values of the environment are nobody's business.
impl fmt::Debug for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hook").field("program", &self.argv.first()).finish_non_exhaustive()
    }
}

/// Keeps the beginning, and takes the rest so that nobody waits for us to read.
async fn beginning(mut pipe: Receiver, said: &mut Vec<u8>) {
    let _ = (&mut pipe).take(HOOK_SAID_BYTES_MAX).read_to_end(said).await;
    let _ = copy(&mut pipe, &mut sink()).await;
}
