//! `midwatch approval list`

use std::process::ExitCode;

use api::{ApprovalList, Approvals, Error};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::render::table_with_cursor;
use crate::context::Context;

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
    context.output.show(&answer, render);
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Approvals) -> String {
    if answer.approvals.is_empty() {
        return "no pending approvals".into();
    }
    let rows = answer.approvals.iter().map(|it| {
        let until = it.approve_by.clone().or(it.execute_by.clone()).unwrap_or_default();
        let (id, state, agent) = (it.id.clone(), it.state.to_string(), it.about().to_owned());
        [id, state, agent, it.tier.to_string(), it.run_id.clone(), it.requested_at.clone(), until]
    });
    let head = ["ID", "STATE", "FOR", "TIER", "RUN", "REQUESTED", "EXPIRES"];
    table_with_cursor(head, rows, answer.cursor.as_deref())
}

#[cfg(test)]
mod tests {
    use super::super::tests::pending;
    use super::*;

    #[test]
    fn list_is_a_table_or_says_that_it_is_empty() {
        let nothing = Approvals { approvals: Vec::new(), cursor: None };
        assert_eq!(render(&nothing), "no pending approvals");
        let one = render(&Approvals { approvals: vec![pending("hello")], cursor: None });
        assert!(one.lines().nth(1).unwrap().starts_with("apr_1  pending  ada"), "{one}");
    }
}
