//! `midwatch run watch`

use std::ops::ControlFlow;
use std::process::ExitCode;

use api::{Code, Error, Run, RunState, RunWatch, RunWatched, WatchCursor};
use clap::Args;

use super::ID;
use crate::cli::support::follow::{Feed, follow};
use crate::cli::support::interrupt::{INTERRUPTED, until_interrupted};
use crate::context::Context;
use crate::output::{Format, Output};
use crate::wrap::fit;

/// Follow a run to its end and print its output
///
/// The exit code is 0 if the run is done, and 1 if it ended otherwise.
#[derive(Debug, Args)]
pub(in crate::cli) struct Watch {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, watch: Watch) -> Result<ExitCode, Error> {
    let id = watch.id;
    let mut feed = RunFeed {
        id: id.clone(),
        printed: None,
        seen: None,
        has_warned: false,
        is_within_line: false,
        output: context.output,
    };
    let Some(end) = until_interrupted(follow(context, &mut feed)).await else {
        let what = "\nthe run goes on without you";
        context.output.remark(&format!(
            "{what}: `midwatch run watch {id}` follows it again, `midwatch run cancel {id}` stops it"
        ));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    Ok(match end? {
        Some(RunState::Done) | None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(Code::Failed.exit_code()),
    })
}

struct RunFeed {
    id: String,
    /// The state and attempt that were printed last.
    printed: Option<(RunState, u32)>,
    seen: Option<WatchCursor>,
    /// Whether the user was warned that no daemon runs.
    has_warned: bool,
    /// Whether the output that was printed so far ends within a line.
    is_within_line: bool,
    output: Output,
}

impl Feed for RunFeed {
    type Request = RunWatch;
    /// The state in which the run ended; `None` if stdout was closed before.
    type End = Option<RunState>;

    fn next(&self, wait_ms: u32) -> RunWatch {
        RunWatch { id: self.id.clone(), seen: self.seen.clone(), wait_ms }
    }

    fn take(&mut self, answer: RunWatched) -> ControlFlow<Option<RunState>> {
        let is_news = self.seen.as_ref() != Some(&answer.seen);
        if is_news && self.print(&answer).is_err() {
            return ControlFlow::Break(None);
        }
        self.seen = Some(answer.seen);
        match answer.ended {
            true => ControlFlow::Break(Some(answer.run.state)),
            false => ControlFlow::Continue(()),
        }
    }

    fn on_no_daemon(&mut self) {
        if !self.has_warned {
            self.output.remark("no daemon is running: the run continues once `midwatch up` runs");
        }
        self.has_warned = true;
    }
}

impl RunFeed {
    fn print(&mut self, answer: &RunWatched) -> std::io::Result<()> {
        if self.output.format == Format::Json {
            return self.output.show_line(answer, |_| String::new());
        }
        self.print_output(&answer.output)?;
        let RunWatched { run, seen, ended, .. } = answer;
        if *ended {
            self.print_output(output_after(run, seen.bytes))?;
        }
        let current = (run.state, run.attempt);
        if self.printed.as_ref() == Some(&current) {
            return Ok(());
        }
        self.printed = Some(current);
        if self.is_within_line {
            self.print_output("\n")?;
        }
        self.output.show_line(run, |run| fit(&render(run), self.output.width))
    }

    fn print_output(&mut self, text: &str) -> std::io::Result<()> {
        if !text.is_empty() {
            self.is_within_line = !text.ends_with('\n');
        }
        self.output.show_part(text)
    }
}

/// The rest of the output, after the first `bytes`, which were printed while the run went on.
fn output_after(run: &Run, bytes: u64) -> &str {
    let text = run.output.as_ref().map_or("", |output| output.text.as_str());
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    text.get(bytes..).unwrap_or_default()
}

fn render(run: &Run) -> String {
    let attempt = match run.attempt {
        0 | 1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let message = run.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    let file = run.output.as_ref().and_then(|output| output.file.as_ref());
    let file = file.map(|file| format!("; its complete output is in {file}")).unwrap_or_default();
    let waits = match (run.state, &run.approval_id) {
        (RunState::WaitingPermission, Some(approval)) => {
            return format!(
                "run `{}` waits for your approval: `midwatch approval approve {approval}`",
                run.id
            );
        }
        _ => run.state,
    };
    format!("run `{}` {waits}{attempt}{message}{file}", run.id)
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
    fn line_shows_state_attempt_and_output_file() {
        assert_eq!(render(&run(json!({}))), "run `run_1` running");
        let waiting = json!({"state": "waiting_permission", "approval_id": "apr_1"});
        assert_eq!(
            render(&run(waiting)),
            "run `run_1` waits for your approval: `midwatch approval approve apr_1`"
        );
        let failed = json!({"state": "failed", "attempt": 3, "message": "no such file",
            "output": {"text": "x", "bytes": 70_000, "file": "/data/outputs/run_1"}});
        assert_eq!(
            render(&run(failed)),
            "run `run_1` failed, attempt 3: no such file; its complete output is in \
             /data/outputs/run_1"
        );
    }

    #[test]
    fn rest_of_the_output_is_printed_at_the_end() {
        let ended = run(json!({"output": {"text": "on\u{e9} two", "bytes": 8}}));
        assert_eq!(output_after(&ended, 0), "on\u{e9} two");
        assert_eq!(output_after(&ended, 4), " two");
        assert_eq!(output_after(&ended, 3), "", "not within a character");
        assert_eq!(output_after(&ended, 9), "");
    }
}
