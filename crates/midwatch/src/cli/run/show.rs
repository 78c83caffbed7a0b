//! `midwatch run show`

use std::process::ExitCode;

use api::{Error, Run, RunAttempt, RunOutput, RunShow, RunSource, RunUsage};
use clap::Args;

use super::{ID, marked};
use crate::access::send;
use crate::cli::support::render::{count_of, fitted_pairs, paragraphs};
use crate::context::Context;
use crate::view::View;
use crate::wrap::wrap;

/// Show a run and its output
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, show: Show) -> Result<ExitCode, Error> {
    let answer = send(context, RunShow { id: show.id }).await?;
    context.output.show(&answer, |answer| render(&answer.run, &context.view));
    Ok(ExitCode::SUCCESS)
}

/// The output comes last, because it may be long.
fn render(run: &Run, view: &View) -> String {
    let moment = |name, at: &Option<String>| at.as_ref().map(|at| (name, view.moment(at)));
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let rows = [
        Some(("id", run.id.clone())),
        Some(("state", marked(run.state))),
        some("approval", &run.approval_id),
        some("reason", &run.reason),
        some("message", &run.message),
        some("settled by", &run.settled_by),
        moment("settled", &run.settled_at),
        some("note", &run.settled_note),
        run.schedule_id
            .as_deref()
            .map(|id| ("schedule", name_and_id(run.schedule_name.as_deref(), id))),
        moment("slot", &run.slot),
        Some(("origin", origin(run))),
        some("agent", &run.agent),
        run.containment.map(|it| ("containment", it.description().to_owned())),
        Some(("attempt", attempt_of(run))),
        Some(("queued", view.moment(&run.queued_at))),
        moment("started", &run.started_at),
        moment("finished", &run.finished_at),
        moment("next attempt", &run.retry_at),
        run.usage.map(|RunUsage { input, output }| ("tokens", format!("{input} in, {output} out"))),
        some("cost", &run.cost),
        Some(("times are", view.zone_name().to_owned())),
        run.output.as_ref().map(|output| ("output", size(output))),
    ];
    let text = run.output.as_ref().map_or("", |output| &output.text);
    let rows = fitted_pairs(view, rows.into_iter().flatten());
    paragraphs([rows, attempts(run, view), text.to_owned()])
}

/// `3 of 5`
fn attempt_of(run: &Run) -> String {
    let most = run.attempts_max.map(|most| format!(" of {most}")).unwrap_or_default();
    format!("{}{most}", run.attempt)
}

/// Every attempt with its start, end and result. A single one has all of that in the rows above.
fn attempts(run: &Run, view: &View) -> String {
    if run.attempts.len() < 2 {
        return String::new();
    }
    let lines = run.attempts.iter().map(|attempt| {
        let RunAttempt { number, started_at, ended_at, outcome, message, .. } = attempt;
        let end = ended_at.as_ref().map(|at| format!(" to {}", view.time(at))).unwrap_or_default();
        let message = message.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        let start = view.time(started_at);
        wrap(&format!("attempt {number}, {start}{end}: {outcome}{message}"), view.width, "  ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn name_and_id(name: Option<&str>, id: &str) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"))
}

/// What caused the run, with the id of the run or event if it was one.
fn origin(run: &Run) -> String {
    let origin = run.origin;
    match &run.source {
        Some(RunSource::Run(id) | RunSource::Event(id)) => format!("{origin} {id}"),
        None => origin.to_string(),
    }
}

fn size(RunOutput { text, bytes, file, sealed }: &RunOutput) -> String {
    let size = count_of(*bytes, "byte", "bytes");
    match file {
        _ if *sealed => format!("{size}, sensitive: visible to operators and its agent"),
        // Every byte that is no text is shown as a replacement character, which is longer.
        Some(file) if text.contains(char::REPLACEMENT_CHARACTER) => {
            format!("{size}, not all of it text; all of it is in {file}")
        }
        Some(file) => format!("{size}, the first {} below; all of it is in {file}", text.len()),
        None => size,
    }
}

#[cfg(test)]
mod tests {
    use api::RunState;

    use super::super::tests::{failed_run, queued_run};
    use super::*;

    fn view() -> View {
        View::fixed(80, "Europe/Berlin", "2026-03-28T12:45:00Z")
    }

    fn check(found: &str, expected: &[&str]) {
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn output_comes_after_the_facts() {
        check(
            &render(&failed_run(), &view()),
            &[
                "id             run_1",
                "state          x failed",
                "reason         exit_code",
                "message        the program ended with exit code 1",
                "schedule       standup (sch_0a1b2c3d)",
                "slot           28 Mar 13:30:00 (15m ago)",
                "origin         slot",
                "agent          ada",
                "attempt        2",
                "queued         28 Mar 13:30:01 (14m59s ago)",
                "started        28 Mar 13:30:02 (14m58s ago)",
                "finished       28 Mar 13:30:03 (14m57s ago)",
                "times are      Europe/Berlin",
                "output         8 bytes",
                "",
                "one",
                "two",
            ],
        );
    }

    #[test]
    fn absent_facts_are_left_out() {
        check(
            &render(&queued_run(), &view()),
            &[
                "id             run_2",
                "state          queued",
                "settled by     uid:1000",
                "origin         manual",
                "attempt        0",
                "queued         28 Mar 13:40:00 (5m ago)",
                "next attempt   28 Mar 13:41:00 (4m ago)",
                "times are      Europe/Berlin",
            ],
        );
    }

    #[test]
    fn long_output_names_its_file() {
        let (text, file) = ("so".to_owned(), Some("/data/outputs/run_1".to_owned()));
        let size = size(&RunOutput { text, bytes: 70_000, file, sealed: false });
        assert_eq!(size, "70000 bytes, the first 2 below; all of it is in /data/outputs/run_1");
    }

    #[test]
    fn size_of_output_that_is_not_text_is_not_that_of_its_replacement() {
        let (text, file) =
            ("so \u{fffd}\u{fffd}".to_owned(), Some("/data/outputs/run_1".to_owned()));
        let size = size(&RunOutput { text, bytes: 5, file, sealed: false });
        assert_eq!(size, "5 bytes, not all of it text; all of it is in /data/outputs/run_1");
    }

    #[test]
    fn attempts_are_shown_with_start_end_and_result() {
        let attempt =
            |number, started: &str, ended: Option<&str>, message: Option<&str>| RunAttempt {
                number,
                started_at: started.to_owned(),
                ended_at: ended.map(str::to_owned),
                outcome: if ended.is_some() { RunState::Failed } else { RunState::Running },
                reason: None,
                message: message.map(str::to_owned),
            };
        let attempts = vec![
            attempt(1, "2026-03-28T12:30:02Z", Some("2026-03-28T12:30:03Z"), Some("exit code 1")),
            attempt(2, "2026-03-28T12:44:00Z", None, None),
        ];
        let run = Run { attempt: 2, attempts_max: Some(5), attempts, ..failed_run() };
        let text = render(&run, &view());
        for line in [
            "attempt        2 of 5",
            "attempt 1, 28 Mar 13:30:02 to 28 Mar 13:30:03: failed: exit code 1",
            "attempt 2, 28 Mar 13:44:00: running",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }
}
