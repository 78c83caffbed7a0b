//! `midwatch run list`

use std::process::ExitCode;

use api::{Error, RunList, Runs};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::render::table_with_cursor;
use crate::context::Context;

/// List runs, newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only runs of this schedule
    #[arg(long, value_name = "ID")]
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
    context.output.show(&answer, |answer| render(answer, &request));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Runs, request: &RunList) -> String {
    if answer.runs.is_empty() {
        let is_filtered = *request != RunList { limit: request.limit, ..RunList::default() };
        return match is_filtered {
            true => "no matching runs; `midwatch run list` shows all".into(),
            false => "no runs yet; start one with `midwatch schedule fire ID`, or wait for a \
                      schedule while `midwatch up` runs"
                .into(),
        };
    }
    let rows = answer.runs.iter().map(|run| {
        [
            run.id.clone(),
            run.state.to_string(),
            run.schedule_id.clone().unwrap_or_default(),
            run.slot.clone().unwrap_or_else(|| run.origin.to_string()),
            run.started_at.clone().unwrap_or_default(),
            run.attempt.to_string(),
            run.reason.clone().unwrap_or_default(),
        ]
    });
    let head = ["ID", "STATE", "SCHEDULE", "SLOT", "STARTED", "ATTEMPT", "REASON"];
    table_with_cursor(head, rows, answer.cursor.as_deref())
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
        let expected = [
            "ID     STATE   SCHEDULE      SLOT                  STARTED               ATTEMPT  REASON",
            "run_2  queued                manual                                      0",
            "run_1  failed  sch_0a1b2c3d  2026-03-28T12:30:00Z  2026-03-28T12:30:02Z  2        exit_code",
            "more: --cursor run_1",
        ];
        let text = render(&Runs { runs, cursor: Some("run_1".into()) }, &all);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let nothing = Runs { runs: Vec::new(), cursor: None };
        assert!(
            render(&nothing, &all).starts_with("no runs yet; start one with `midwatch schedule")
        );
        for request in [
            RunList { schedule: Some("sch_0a1b2c3d".into()), ..RunList::default() },
            RunList { state: Some(RunState::Failed), ..RunList::default() },
            RunList { cursor: Some("run_1".into()), ..RunList::default() },
        ] {
            let expected = "no matching runs; `midwatch run list` shows all";
            assert_eq!(render(&nothing, &request), expected);
        }
    }
}
