//! `midwatch run watch`: a run as it goes on, to its end.

use std::ops::ControlFlow;
use std::process::ExitCode;

use api::{Code, Error, Run, RunSeen, RunWatch, RunWatched};

use super::follow::{Feed, follow};
use crate::context::Context;
use crate::output::{Format, Output};

pub(super) async fn run(context: &Context, id: String) -> Result<ExitCode, Error> {
    let output = context.output;
    let mut watched = Watched { id, shown: None, seen: None, is_warned: false, output };
    let state = follow(context, &mut watched).await?;
    // Whoever waits for a run in a script wants to know how it went.
    Ok(match state.as_deref() {
        Some("done") | None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(Code::Failed.exit_code()),
    })
}

struct Watched {
    id: String,
    /// State and attempt, as they were told last.
    shown: Option<(String, u32)>,
    seen: Option<RunSeen>,
    /// Somebody was told that nobody keeps the watch.
    is_warned: bool,
    output: Output,
}

impl Feed for Watched {
    type Request = RunWatch;
    /// The state that it ended in; none when nobody reads it any more.
    type End = Option<String>;

    fn next(&self, wait_ms: u32) -> RunWatch {
        RunWatch { id: self.id.clone(), seen: self.seen.clone(), wait_ms }
    }

    fn take(&mut self, answer: RunWatched) -> ControlFlow<Option<String>> {
        let is_news = self.seen.as_ref() != Some(&answer.seen);
        if is_news && self.show(&answer).is_err() {
            return ControlFlow::Break(None);
        }
        self.seen = Some(answer.seen);
        match answer.ended {
            true => ControlFlow::Break(Some(answer.run.state)),
            false => ControlFlow::Continue(()),
        }
    }

    fn alone(&mut self) {
        if !self.is_warned {
            self.output.remark("nobody keeps the watch: the run goes on once `midwatch up` runs");
        }
        self.is_warned = true;
    }
}

impl Watched {
    fn show(&mut self, answer: &RunWatched) -> std::io::Result<()> {
        if self.output.format == Format::Json {
            return self.output.show_line(answer, |_| String::new());
        }
        self.output.show_part(&answer.said)?;
        let RunWatched { run, seen, ended, .. } = answer;
        if *ended {
            self.output.show_part(unheard(run, seen.bytes))?;
        }
        let stands = (run.state.clone(), run.attempt);
        if self.shown.as_ref() == Some(&stands) {
            return Ok(());
        }
        self.shown = Some(stands);
        self.output.show_line(run, line)
    }
}

/// What was said at the end and could not be heard while it was.
fn unheard(run: &Run, heard: u64) -> &str {
    let text = run.output.as_ref().map_or("", |output| output.text.as_str());
    let heard = usize::try_from(heard).unwrap_or(usize::MAX);
    text.get(heard..).unwrap_or_default()
}

fn line(run: &Run) -> String {
    let attempt = match run.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let why = run.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    let file = run.output.as_ref().and_then(|output| output.file.as_ref());
    let whole = file.map(|file| format!("; all that it said is in {file}")).unwrap_or_default();
    format!("run `{}` {}{attempt}{why}{whole}", run.id, run.state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(fields: serde_json::Value) -> Run {
        let mut document = json!({
            "id": "run_1", "state": "running", "origin": "slot", "attempt": 1,
            "queued_at": "2026-03-28T12:30:01Z",
        });
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_line_tells_how_it_stands() {
        assert_eq!(line(&run(json!({}))), "run `run_1` running");
        let failed = json!({"state": "failed", "attempt": 3, "message": "no such file",
            "output": {"text": "x", "bytes": 70_000, "file": "/data/outputs/run_1"}});
        assert_eq!(
            line(&run(failed)),
            "run `run_1` failed, attempt 3: no such file; all that it said is in /data/outputs/run_1"
        );
    }

    #[test]
    fn the_rest_is_told_at_the_end() {
        let ended = run(json!({"output": {"text": "on\u{e9} two", "bytes": 8}}));
        assert_eq!(unheard(&ended, 0), "on\u{e9} two");
        assert_eq!(unheard(&ended, 4), " two");
        assert_eq!(unheard(&ended, 3), "", "not within a character");
        assert_eq!(unheard(&ended, 9), "");
    }
}
