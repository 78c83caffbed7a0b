//! `midwatch run …`

use std::process::ExitCode;

use api::{
    Error, Run, RunCancel, RunChanged, RunEvents, RunList, RunOutput, RunRead, RunRetry, RunSettle,
    RunShow, RunSource, RunTold, RunUsage, Runs, ScheduleFire, ScheduleFired,
};
use clap::{Args, Subcommand};

use super::{list_limit, tail, watching};
use crate::access::ask;
use crate::context::Context;
use crate::output::{Format, counted, pairs, paragraphs, table_with_more};

const ID: &str = "Its id, as `midwatch run list` shows it";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a schedule now, by hand: the same as `midwatch schedule fire`
    Start {
        /// The id of the schedule, as `midwatch schedule list` shows it
        schedule: String,
    },
    /// List the runs, the newest first
    List(List),
    /// Show one run, and what it said
    Show {
        #[arg(help = ID)]
        id: String,
    },
    /// Show all that happened to a run, try by try, as the log has it
    Events {
        #[arg(help = ID)]
        id: String,
    },
    /// Print all that a run has said; with --json, piece by piece
    Output {
        #[arg(help = ID)]
        id: String,
    },
    /// Follow a run to its end, and show what it says meanwhile
    ///
    /// Ends with 0 if the run is done, and with 1 if it ended otherwise.
    Watch {
        #[arg(help = ID)]
        id: String,
    },
    /// Tell a run to stop, or take it back before it starts
    Cancel {
        #[arg(help = ID)]
        id: String,
        /// Why, for whoever looks at it later
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Try a run again that failed or was cancelled
    Retry {
        #[arg(help = ID)]
        id: String,
    },
    /// Say how a run ended that was cut off, once you have looked
    Settle {
        #[arg(help = ID)]
        id: String,
        /// How it ended
        #[arg(long = "as", value_name = "done|failed")]
        state: String,
        /// How you know, for whoever looks at it later
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only runs of this schedule
    #[arg(long, value_name = "ID")]
    schedule: Option<String>,
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only these: queued, waiting_permission, running, done, failed, cancelled or unknown
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Most runs to show
    #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
    limit: Option<u32>,
    /// Go on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Start { schedule } => {
            let answer = ask(context, ScheduleFire { id: schedule }).await?;
            output.show(&answer, started);
        }
        Command::Watch { id } => return watching::run(context, id).await,
        Command::List(List { schedule, agent, state, limit, cursor }) => {
            let request = RunList { agent, schedule, state, limit, cursor };
            let answer = ask(context, request.clone()).await?;
            output.show(&answer, |answer| list(answer, &request));
        }
        Command::Show { id } => {
            let answer = ask(context, RunShow { id }).await?;
            output.show(&answer, |answer| page(&answer.run));
        }
        Command::Events { id } => {
            let answer = ask(context, RunEvents { id }).await?;
            output.show(&answer, events);
        }
        Command::Output { id } => {
            let mut next = Some(0);
            while let Some(from) = next {
                let piece = ask(context, RunRead { id: id.clone(), from }).await?;
                let shown = match output.format {
                    Format::Json => output.show_line(&piece, |_| String::new()),
                    Format::Human => output.show_part(&piece.text),
                };
                // Whoever read it has seen enough.
                next = piece.next.filter(|_| shown.is_ok());
            }
        }
        Command::Cancel { id, note } => {
            let answer = ask(context, RunCancel { id, note }).await?;
            output.show(&answer, |answer| changed(answer, "told to stop"));
        }
        Command::Retry { id } => {
            let answer = ask(context, RunRetry { id }).await?;
            output.show(&answer, |answer| changed(answer, "to be tried again"));
        }
        Command::Settle { id, state, note } => {
            let answer = ask(context, RunSettle { id, state, note }).await?;
            output.show(&answer, |answer| changed(answer, "settled"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn started(ScheduleFired { run: Run { id, state, .. } }: &ScheduleFired) -> String {
    format!("run `{id}` {state}; `midwatch run watch {id}` follows it")
}

fn list(answer: &Runs, asked: &RunList) -> String {
    if answer.runs.is_empty() {
        let is_choice = *asked != RunList { limit: asked.limit, ..RunList::default() };
        return match is_choice {
            true => "no such runs; `midwatch run list` shows all".into(),
            false => "no runs yet; start one with `midwatch schedule fire ID`, or wait for a \
                      schedule while `midwatch up` runs"
                .into(),
        };
    }
    let rows = answer.runs.iter().map(|run| {
        [
            run.id.clone(),
            run.state.clone(),
            run.schedule_id.clone().unwrap_or_default(),
            run.slot.clone().unwrap_or_else(|| run.origin.clone()),
            run.started_at.clone().unwrap_or_default(),
            run.attempt.to_string(),
            run.reason.clone().unwrap_or_default(),
        ]
    });
    let head = ["ID", "STATE", "SCHEDULE", "SLOT", "STARTED", "ATTEMPT", "REASON"];
    table_with_more(head, rows, answer.cursor.as_deref())
}

fn changed(RunChanged { run, changed }: &RunChanged, verb: &str) -> String {
    let verb = if *changed { verb } else { "was so already" };
    format!("run `{}` {verb} ({})", run.id, run.state)
}

/// The output comes last: it may be long.
fn page(run: &Run) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let rows = [
        Some(("id", run.id.clone())),
        Some(("state", run.state.clone())),
        some("approval", &run.approval_id),
        some("reason", &run.reason),
        some("message", &run.message),
        some("settled by", &run.settled_by),
        some("settled at", &run.settled_at),
        some("note", &run.settled_note),
        some("schedule", &run.schedule_id),
        some("slot", &run.slot),
        Some(("origin", origin(run))),
        some("agent", &run.agent),
        Some(("attempt", run.attempt.to_string())),
        Some(("queued at", run.queued_at.clone())),
        some("started at", &run.started_at),
        some("finished at", &run.finished_at),
        some("tried again at", &run.retry_at),
        run.usage.map(|RunUsage { input, output }| ("tokens", format!("{input} in, {output} out"))),
        some("cost", &run.cost),
        run.output.as_ref().map(|output| ("output", size(output))),
    ];
    let text = run.output.as_ref().map_or("", |output| &output.text);
    paragraphs([pairs(rows.into_iter().flatten()), text.to_owned()])
}

fn events(told: &RunTold) -> String {
    let shown = tail::lines(&told.events);
    match told.more_after {
        Some(place) => {
            format!("{shown}\nthere may be more: `midwatch ledger tail --cursor {place}` goes on")
        }
        None => shown,
    }
}

/// What it came of.
fn origin(run: &Run) -> String {
    let what = &run.origin;
    match &run.source {
        Some(RunSource::Run(id) | RunSource::Event(id)) => format!("{what} {id}"),
        None => what.clone(),
    }
}

fn size(RunOutput { text, bytes, file, sealed }: &RunOutput) -> String {
    let whole = counted(*bytes, "byte", "bytes");
    match file {
        _ if *sealed => format!("{whole}, sensitive: for operators and its agent"),
        Some(file) => format!("{whole}, the first {} below; the whole is in {file}", text.len()),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finished() -> Run {
        let document = json!({
            "id": "run_1",
            "state": "failed",
            "schedule_id": "sch_0a1b2c3d",
            "slot": "2026-03-28T12:30:00Z",
            "origin": "slot",
            "agent": "ada",
            "attempt": 2,
            "queued_at": "2026-03-28T12:30:01Z",
            "started_at": "2026-03-28T12:30:02Z",
            "finished_at": "2026-03-28T12:30:03Z",
            "reason": "exit_code",
            "message": "the program ended with exit code 1",
            "output": {"text": "one\ntwo\n", "bytes": 8},
        });
        serde_json::from_value(document).unwrap()
    }

    fn queued() -> Run {
        let document = json!({
            "id": "run_2",
            "state": "queued",
            "origin": "manual",
            "attempt": 0,
            "queued_at": "2026-03-28T12:40:00Z",
            "retry_at": "2026-03-28T12:41:00Z",
            "settled_by": "uid:1000",
        });
        serde_json::from_value(document).unwrap()
    }

    fn check(found: &str, expected: &[&str]) {
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lists_are_tables_and_an_empty_one_says_what_to_do() {
        let runs = vec![queued(), finished()];
        let all = RunList::default();
        check(
            &list(&Runs { runs, cursor: Some("run_1".into()) }, &all),
            &[
                "ID     STATE   SCHEDULE      SLOT                  STARTED               ATTEMPT  REASON",
                "run_2  queued                manual                                      0",
                "run_1  failed  sch_0a1b2c3d  2026-03-28T12:30:00Z  2026-03-28T12:30:02Z  2        exit_code",
                "more: --cursor run_1",
            ],
        );
        let nothing = Runs { runs: Vec::new(), cursor: None };
        assert!(list(&nothing, &all).starts_with("no runs yet; start one with `midwatch schedule"));
        for asked in [
            RunList { schedule: Some("sch_0a1b2c3d".into()), ..RunList::default() },
            RunList { state: Some("failed".into()), ..RunList::default() },
            RunList { cursor: Some("run_1".into()), ..RunList::default() },
        ] {
            assert_eq!(list(&nothing, &asked), "no such runs; `midwatch run list` shows all");
        }
    }

    #[test]
    fn a_page_ends_with_what_the_run_said() {
        check(
            &page(&finished()),
            &[
                "id             run_1",
                "state          failed",
                "reason         exit_code",
                "message        the program ended with exit code 1",
                "schedule       sch_0a1b2c3d",
                "slot           2026-03-28T12:30:00Z",
                "origin         slot",
                "agent          ada",
                "attempt        2",
                "queued at      2026-03-28T12:30:01Z",
                "started at     2026-03-28T12:30:02Z",
                "finished at    2026-03-28T12:30:03Z",
                "output         8 bytes",
                "",
                "one",
                "two",
            ],
        );
    }

    #[test]
    fn a_page_leaves_out_what_is_not_there() {
        check(
            &page(&queued()),
            &[
                "id             run_2",
                "state          queued",
                "settled by     uid:1000",
                "origin         manual",
                "attempt        0",
                "queued at      2026-03-28T12:40:00Z",
                "tried again at 2026-03-28T12:41:00Z",
            ],
        );
    }

    #[test]
    fn a_long_output_is_found_in_its_file() {
        let (text, file) = ("so".to_owned(), Some("/data/outputs/run_1".to_owned()));
        let said = size(&RunOutput { text, bytes: 70_000, file, sealed: false });
        assert_eq!(said, "70000 bytes, the first 2 below; the whole is in /data/outputs/run_1");
    }

    #[test]
    fn a_change_is_told_from_what_was_so_already() {
        let run = finished();
        let answer = RunChanged { run, changed: true };
        assert_eq!(changed(&answer, "settled"), "run `run_1` settled (failed)");
        let answer = RunChanged { changed: false, ..answer };
        assert_eq!(changed(&answer, "settled"), "run `run_1` was so already (failed)");
    }
}
