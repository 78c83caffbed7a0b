//! Does the work of a run: a pause, one line into the pipe, a pause. The prompt says how long.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use agents::{AgentBackend, Ended, Failure, Outcome, Output, Reason, Work};
use futures::future::{BoxFuture, FutureExt};
use kernel::run::Kind;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Writing {
    pipe: File,
}

impl Writing {
    /// Whoever started this process has put the pipe in the place of its input.
    pub(super) fn handed() -> io::Result<Writing> {
        let pipe = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Writing { pipe: File::from(pipe) })
    }

    /// By one call, so that the line is in the pipe as a whole or not at all.
    fn take_effect(&self, work: &Work) -> io::Result<()> {
        let slot = work.slot.as_deref().unwrap_or("-");
        let line = format!("{} {} {slot}\n", work.run, work.attempt);
        let written = (&self.pipe).write(line.as_bytes())?;
        match written == line.len() {
            true => Ok(()),
            false => Err(io::Error::other("a part of the line was written")),
        }
    }
}

impl AgentBackend for Writing {
    /// Nobody stops it: the last host ends when there is nothing left to do, and the others are killed.
    fn work(&self, work: Work, _: CancellationToken) -> BoxFuture<'_, Ended> {
        async move {
            let (before, after) = pauses(&work.prompt);
            pause(before).await;
            let written = self.take_effect(&work);
            pause(after).await;
            let outcome = match written {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Failed(Failure {
                    reason: Reason::Exit,
                    message: error.to_string(),
                    kind: Kind::Permanent,
                }),
            };
            Ended { outcome, output: Output::default(), usage: None }
        }
        .boxed()
    }
}

/// Who takes no time does not give way to others either.
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
