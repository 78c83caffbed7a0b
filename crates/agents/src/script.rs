//! Canned answers for demonstrations and tests, from a file.
//!
//! ```toml
//! [[answer]]
//! prompt = "weather"    # only for prompts that contain this
//! attempts = 2          # only for the first two attempts of a run
//! text = "rate limited"
//! then = "fail"
//!
//! [[answer]]
//! text = "sunny"
//! delay_ms = 500
//! ```
//!
//! The first answer that matches is used, so no state is kept between attempts.

use std::time::Duration;

use kernel::program::AbsolutePath;
use serde::Deserialize;
use std::path::Path;

use crate::attempt::{Attempt, Failure, Outcome, Reason};
use crate::output::Recorder;

pub const SCRIPT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
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

/// What happens after the text.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Done,
    Fail,
    FailForGood,
    /// Runs until it is stopped.
    Hang,
}

/// Plays the script's answer for this attempt.
pub(crate) async fn play(
    path: &AbsolutePath,
    attempt: &Attempt,
    recorder: &mut Recorder,
) -> Outcome {
    let unusable = |what: String| {
        Outcome::Failed(Failure::permanent(Reason::NotStarted, describe(path, &what)))
    };
    let script = match read(path) {
        Ok(script) => script,
        Err(what) => return unusable(what),
    };
    let Some(answer) = script.answers.iter().find(|answer| answer.matches(attempt)) else {
        return unusable("has no answer for this prompt and attempt".to_owned());
    };
    tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    recorder.write(answer.text.as_bytes()).await;
    let message = "the script's answer is a failure";
    match answer.then {
        Then::Done => Outcome::Done,
        Then::Fail => Outcome::Failed(Failure::transient(Reason::Script, message)),
        Then::FailForGood => Outcome::Failed(Failure::permanent(Reason::Script, message)),
        Then::Hang => std::future::pending().await,
    }
}

impl Answer {
    fn matches(&self, attempt: &Attempt) -> bool {
        let is_prompt = self.prompt.as_ref().is_none_or(|part| attempt.prompt.contains(part));
        is_prompt && self.attempts.is_none_or(|last| attempt.number <= last)
    }
}

/// A problem of a script as a sentence.
pub(crate) fn describe(path: &AbsolutePath, what: &str) -> String {
    format!("the script `{path}` {what}")
}

/// Returns the script, or what is wrong with it.
pub(crate) fn read(path: &AbsolutePath) -> Result<Script, String> {
    let unreadable = |error| format!("cannot be read: {error}");
    let file = files::open_linked(Path::new(path.as_str())).map_err(unreadable)?;
    let text = files::read_text_of(file, SCRIPT_BYTES_MAX).map_err(unreadable)?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        format!("is malformed in line {line}: {}", error.message())
    })
}
