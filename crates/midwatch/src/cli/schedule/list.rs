//! `midwatch schedule list`

use std::process::ExitCode;

use api::{Error, ScheduleList, Schedules};
use clap::Args;

use super::target;
use super::upcoming::when;
use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::view::View;
use crate::wrap::fit;

const COLUMNS: [Column; 7] = [
    shortened("NAME", 12),
    whole("ID"),
    whole("STATUS"),
    whole("NEXT"),
    whole("").or_left_out(1),
    shortened("TARGET", 10).or_left_out(3),
    shortened("WHEN", 20).or_left_out(2),
];

/// List schedules, the next due first
///
/// Those that are not due come last: paused ones, ended ones and those that wait for an event. A schedule that fires or
/// changes between two pages may be on both, or on neither.
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only schedules for this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Sort by id: pages then have each schedule once, whatever happens between them
    #[arg(long)]
    by_id: bool,
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { agent, by_id, page: Page { limit, cursor } } = list;
    let answer = send(context, ScheduleList { agent, limit, cursor, by_id }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Schedules, view: &View) -> String {
    if answer.schedules.is_empty() && answer.agent.is_some() {
        return "no matching schedules; `midwatch schedule list` shows all".into();
    }
    if answer.schedules.is_empty() {
        let text = "no schedules yet; add one with `midwatch schedule add --name NAME --every 1h --agent \
                    AGENT --prompt TEXT`";
        return fit(text, view.width);
    }
    let rows = answer.schedules.iter().map(|schedule| {
        let next = schedule.next_run_at.as_deref();
        [
            schedule.name.clone(),
            schedule.id.clone(),
            schedule.status.to_string(),
            next.map(|at| view.time(at)).unwrap_or_default(),
            next.map(|at| view.relative(at)).unwrap_or_default(),
            target(&schedule.action),
            when(&schedule.describe, &schedule.tz),
        ]
    });
    let table = table_with_cursor(view, COLUMNS, rows, answer.cursor.as_deref());
    format!("{table}\ntimes are {}", view.zone_name())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent_schedule, paused_tool_schedule};
    use super::*;

    #[test]
    fn list_is_a_table_or_says_what_to_do() {
        let schedules = vec![agent_schedule(), paused_tool_schedule()];
        let view = View::fixed(80, "Europe/Berlin", "2026-03-28T12:00:00Z")
            .for_command(["schedule", "list"].map(str::to_owned));
        let cursor = Some("sch_ffffffff".into());
        let text = render(&Schedules { schedules, agent: None, cursor }, &view);
        let expected = [
            "NAME     ID            STATUS  NEXT                     WHEN",
            "standup  sch_0a1b2c3d  active  28 Mar 13:30:00  in 30m  at 13:30 every day (Eur…",
            "look     sch_ffffffff  paused                           every hour (UTC)",
            "more: midwatch schedule list --cursor sch_ffffffff",
            "times are Europe/Berlin",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let nothing =
            render(&Schedules { schedules: Vec::new(), agent: None, cursor: None }, &view);
        assert!(
            nothing.starts_with("no schedules yet; add one with\n`midwatch schedule add --name")
        );
        let agent = Some("ada".to_owned());
        let nothing = render(&Schedules { schedules: Vec::new(), agent, cursor: None }, &view);
        assert_eq!(nothing, "no matching schedules; `midwatch schedule list` shows all");
    }
}
