//! The backend of a host: an attempt sleeps, writes one line into the pipe, and sleeps again. The prompt has the times.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use agents::{AgentBackend, Attempt, AttemptResult, Failure, Outcome, Output, Reason};
use futures::future::{BoxFuture, FutureExt};
use kernel::run::FailureKind;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct PipeBackend {
    pipe: File,
}

impl PipeBackend {
    /// The campaign passes the pipe as stdin.
    pub(super) fn from_stdin() -> io::Result<PipeBackend> {
        let pipe = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(PipeBackend { pipe: File::from(pipe) })
    }

    /// Writes the line with one call, so that it is in the pipe completely or not at all.
    fn take_effect(&self, attempt: &Attempt) -> io::Result<()> {
        let slot = attempt.slot.as_deref().unwrap_or("-");
        let line = format!("{} {} {slot}\n", attempt.run, attempt.number);
        let written = (&self.pipe).write(line.as_bytes())?;
        match written == line.len() {
            true => Ok(()),
            false => Err(io::Error::other("only a part of the line was written")),
        }
    }
}

impl AgentBackend for PipeBackend {
    /// Never stopped: the last host ends when every run has, and the others are killed.
    fn run(&self, attempt: Attempt, _: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        async move {
            let (before, after) = pauses(&attempt.prompt);
            pause(before).await;
            let written = self.take_effect(&attempt);
            pause(after).await;
            let outcome = match written {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Failed(Failure {
                    reason: Reason::Exit,
                    message: error.to_string(),
                    kind: FailureKind::Permanent,
                }),
            };
            AttemptResult { outcome, output: Output::default(), usage: None }
        }
        .boxed()
    }
}

/// Does not yield if the span is zero.
async fn pause(span: Duration) {
    if !span.is_zero() {
        sleep(span).await;
    }
}

fn pauses(prompt: &str) -> (Duration, Duration) {
    let seconds = |word: &str| Duration::try_from_secs_f64(word.parse().ok()?).ok();
    let mut words = prompt.split(' ').map(|word| seconds(word).unwrap_or_default());
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}
