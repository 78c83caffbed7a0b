//! `midwatch approval list`

use std::process::ExitCode;

use api::{ApprovalList, Approvals, Error};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::view::View;

const COLUMNS: [Column; 7] = [
    whole("APPROVAL"),
    whole("STATE"),
    shortened("SCHEDULE", 10),
    shortened("FOR", 8).or_left_out(2),
    whole("TIER").or_left_out(3),
    whole("EXPIRES"),
    whole("").or_left_out(1),
];

/// List pending approvals, newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    /// Include approvals that are no longer pending
    #[arg(long)]
    all: bool,
    /// Only approvals for this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { all, agent, page: Page { limit, cursor } } = list;
    let answer = send(context, ApprovalList { agent, all, limit, cursor }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Approvals, view: &View) -> String {
    if answer.approvals.is_empty() {
        return "no pending approvals".into();
    }
    let ids = short_ids(answer.approvals.iter().map(|it| it.id.as_str()));
    let rows = answer.approvals.iter().zip(ids).map(|(it, id)| {
        let until = it.approve_by.as_deref().or(it.execute_by.as_deref());
        [
            id,
            it.state.to_string(),
            it.schedule_name.as_ref().unwrap_or(&it.schedule_id).clone(),
            it.about().to_owned(),
            it.tier.to_string(),
            until.map(|at| view.time(at)).unwrap_or_default(),
            until.map(|at| view.relative(at)).unwrap_or_default(),
        ]
    });
    let table = table_with_cursor(view, COLUMNS, rows, answer.cursor.as_deref());
    format!("{table}\ntimes are {}", view.zone_name())
}

#[cfg(test)]
mod tests {
    use super::super::tests::pending;
    use super::*;

    #[test]
    fn list_is_a_table_or_says_that_it_is_empty() {
        let nothing = Approvals { approvals: Vec::new(), cursor: None };
        let view = View::fixed(80, "Europe/Berlin", "2026-11-16T21:00:00Z");
        assert_eq!(render(&nothing, &view), "no pending approvals");
        let one = render(&Approvals { approvals: vec![pending("hello")], cursor: None }, &view);
        let expected = [
            "APPROVAL  STATE    SCHEDULE  FOR  TIER  EXPIRES",
            "apr_1     pending  standup   ada  2     17 Nov 10:00:00  in 12h",
            "times are Europe/Berlin",
        ];
        assert_eq!(one.lines().collect::<Vec<_>>(), expected);
    }
}
