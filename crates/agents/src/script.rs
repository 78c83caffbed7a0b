//! Canned answers, for demonstrations and tests: a file that says what an agent would say.
//!
//! ```toml
//! [[answer]]
//! prompt = "weather"    # only for prompts with this in them
//! attempts = 2          # only for the first two attempts of a run
//! text = "rate limited"
//! then = "fail"
//!
//! [[answer]]
//! text = "sunny"
//! delay_ms = 500
//! ```
//!
//! The first answer that fits is given, so that nothing has to be remembered between two attempts.

use std::time::Duration;

use kernel::program::AbsolutePath;
use serde::Deserialize;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::output::Recorder;
use crate::work::{Failure, Outcome, Reason, Work};

pub const SCRIPT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(rename = "answer")]
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    prompt: Option<String>,
    attempts: Option<u32>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    text: String,
    #[serde(default)]
    then: Then,
}

/// What comes after the text.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Done,
    Fail,
    FailForGood,
    /// Nothing any more, until it is stopped.
    Hang,
}

/// Gives the answer that the script has for this attempt.
pub(crate) async fn play(path: &AbsolutePath, work: &Work, recorder: &mut Recorder) -> Outcome {
    let unusable = |what: String| {
        let message = format!("the script `{path}` {what}");
        Outcome::Failed(Failure::permanent(Reason::NotStarted, message))
    };
    let script = match read(path).await {
        Ok(script) => script,
        Err(what) => return unusable(what),
    };
    let Some(answer) = script.answers.iter().find(|answer| answer.fits(work)) else {
        return unusable("has no answer for this prompt and attempt".to_owned());
    };
    tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    recorder.take(answer.text.as_bytes()).await;
    let message = "the script says that it failed";
    match answer.then {
        Then::Done => Outcome::Done,
        Then::Fail => Outcome::Failed(Failure::passing(Reason::Script, message)),
        Then::FailForGood => Outcome::Failed(Failure::permanent(Reason::Script, message)),
        Then::Hang => std::future::pending().await,
    }
}

impl Answer {
    fn fits(&self, work: &Work) -> bool {
        let is_asked = self.prompt.as_ref().is_none_or(|part| work.prompt.contains(part));
        is_asked && self.attempts.is_none_or(|last| work.attempt <= last)
    }
}

/// The script, or what is wrong with it.
async fn read(path: &AbsolutePath) -> Result<Script, String> {
    let unread = |error| format!("cannot be read: {error}");
    let file = File::open(path.as_str()).await.map_err(unread)?;
    let mut text = String::new();
    let limit = SCRIPT_BYTES_MAX as u64 + 1;
    file.take(limit).read_to_string(&mut text).await.map_err(unread)?;
    if SCRIPT_BYTES_MAX < text.len() {
        return Err(format!("is longer than {SCRIPT_BYTES_MAX} bytes"));
    }
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        format!("is malformed in line {line}: {}", error.message())
    })
}
