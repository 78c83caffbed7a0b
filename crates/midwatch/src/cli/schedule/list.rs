//! `midwatch schedule list`

use std::process::ExitCode;

use api::{Error, ScheduleList, Schedules};
use clap::Args;

use super::target;
use super::upcoming::when;
use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::render::table_with_cursor;
use crate::context::Context;

/// List schedules
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Only schedules for this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { agent, page: Page { limit, cursor } } = list;
    let answer = send(context, ScheduleList { agent, limit, cursor }).await?;
    context.output.show(&answer, render);
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Schedules) -> String {
    if answer.schedules.is_empty() && answer.agent.is_some() {
        return "no matching schedules; `midwatch schedule list` shows all".into();
    }
    if answer.schedules.is_empty() {
        return "no schedules yet; add one with `midwatch schedule add --name NAME --every 1h \
                --agent AGENT --prompt TEXT`"
            .into();
    }
    let rows = answer.schedules.iter().map(|schedule| {
        [
            schedule.id.clone(),
            schedule.name.clone(),
            schedule.status.to_string(),
            schedule.next_run_at.clone().unwrap_or_default(),
            target(&schedule.action),
            when(&schedule.describe, &schedule.tz),
        ]
    });
    let head = ["ID", "NAME", "STATUS", "NEXT", "TARGET", "WHEN"];
    table_with_cursor(head, rows, answer.cursor.as_deref())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent_schedule, paused_tool_schedule};
    use super::*;

    #[test]
    fn list_is_a_table_or_says_what_to_do() {
        let schedules = vec![agent_schedule(), paused_tool_schedule()];
        let text =
            render(&Schedules { schedules, agent: None, cursor: Some("sch_ffffffff".into()) });
        let expected = [
            "ID            NAME     STATUS  NEXT                  TARGET        WHEN",
            "sch_0a1b2c3d  standup  active  2026-03-28T12:30:00Z  agent ada     at 13:30 every day (Europe/Berlin)",
            "sch_ffffffff  look     paused                        tool fs.list  every hour (UTC)",
            "more: --cursor sch_ffffffff",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let nothing = render(&Schedules { schedules: Vec::new(), agent: None, cursor: None });
        assert!(nothing.starts_with("no schedules yet; add one with `midwatch schedule add"));
        let agent = Some("ada".to_owned());
        let nothing = render(&Schedules { schedules: Vec::new(), agent, cursor: None });
        assert_eq!(nothing, "no matching schedules; `midwatch schedule list` shows all");
    }
}
