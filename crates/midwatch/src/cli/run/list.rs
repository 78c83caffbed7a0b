//! `midwatch run list`

use std::process::ExitCode;

use api::{Error, RunList, Runs};
use clap::Args;

use super::marked;
use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::run_text::schedule_of;
use crate::view::View;
use crate::wrap::fit;

const COLUMNS: [Column; 7] = [
    whole("RUN"),
    whole("STATE"),
    shortened("SCHEDULE", 10),
    whole("STARTED"),
    whole("").or_left_out(2),
    whole("ATTEMPT").or_left_out(3),
    shortened("REASON", 6).or_left_out(1),
];

/// List runs, newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only runs of this schedule: its name, its id, or the beginning of its id
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only runs in this state: queued, waiting_permission, running, done, failed, cancelled or unknown
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { schedule, agent, state, page: Page { limit, cursor } } = list;
    let state = state.as_deref().map(str::parse).transpose()?;
    let request = RunList { agent, schedule, state, limit, cursor };
    let answer = send(context, request.clone()).await?;
    context.output.show(&answer, |answer| render(answer, &request, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Runs, request: &RunList, view: &View) -> String {
    if answer.runs.is_empty() {
        let is_filtered = *request != RunList { limit: request.limit, ..RunList::default() };
        let text = match is_filtered {
            true => "no matching runs; `midwatch run list` shows all",
            false => {
                "no runs yet; start one with `midwatch run start NAME`, or wait for a schedule while \
                 `midwatch up` runs"
            }
        };
        return fit(text, view.width);
    }
    let ids = short_ids(answer.runs.iter().map(|run| run.id.as_str()));
    let rows = answer.runs.iter().zip(ids).map(|(run, id)| {
        let at = run.started_at.as_ref().unwrap_or(&run.queued_at);
        [
            id,
            marked(run.state),
            schedule_of(run).to_owned(),
            view.time(at),
            view.relative(at),
            run.attempt.to_string(),
            run.reason.clone().unwrap_or_default(),
        ]
    });
    let table = table_with_cursor(view, COLUMNS, rows, answer.cursor.as_deref());
    format!("{table}\ntimes are {}", view.zone_name())
}

#[cfg(test)]
mod tests {
    use api::RunState;

    use super::super::tests::{failed_run, queued_run};
    use super::*;

    #[test]
    fn list_is_a_table_or_says_what_to_do() {
        let runs = vec![queued_run(), failed_run()];
        let all = RunList::default();
        let view = View::fixed(80, "Europe/Berlin", "2026-03-28T12:45:00Z")
            .for_command(["run", "list", "--limit", "2"].map(str::to_owned));
        let expected = [
            "RUN    STATE     SCHEDULE  STARTED                      ATTEMPT  REASON",
            "run_2  queued    (manual)  28 Mar 13:40:00  5m ago      0",
            "run_1  x failed  standup   28 Mar 13:30:02  14m58s ago  2        exit_code",
            "more: midwatch run list --limit 2 --cursor run_1",
            "times are Europe/Berlin",
        ];
        let text = render(&Runs { runs, cursor: Some("run_1".into()) }, &all, &view);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let nothing = Runs { runs: Vec::new(), cursor: None };
        assert!(
            render(&nothing, &all, &view).starts_with("no runs yet; start one with `midwatch run")
        );
        for request in [
            RunList { schedule: Some("sch_0a1b2c3d".into()), ..RunList::default() },
            RunList { state: Some(RunState::Failed), ..RunList::default() },
            RunList { cursor: Some("run_1".into()), ..RunList::default() },
        ] {
            let expected = "no matching runs; `midwatch run list` shows all";
            assert_eq!(render(&nothing, &request, &view), expected);
        }
    }
}
