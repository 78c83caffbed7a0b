//! `midwatch approval …`

mod approve;
mod decide;
mod deny;
mod key;
mod list;
mod revoke;
mod show;
mod sign;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

const ID: &str = "The approval: its id, or the beginning of it, from `midwatch approval list`";
const REASON: &str = "Why; recorded in the ledger";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    List(list::List),
    Show(show::Show),
    Approve(approve::Approve),
    Deny(deny::Deny),
    Revoke(revoke::Revoke),
    Key(key::Key),
    Sign(sign::Sign),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::List(list) => list::run(context, list).await,
        Command::Show(show) => show::run(context, show).await,
        Command::Approve(approve) => approve::run(context, approve).await,
        Command::Deny(deny) => deny::run(context, deny).await,
        Command::Revoke(revoke) => revoke::run(context, revoke).await,
        Command::Key(key) => key::run(context, key),
        Command::Sign(sign) => sign::run(context, &sign),
    }
}

#[cfg(test)]
mod tests {
    use api::Approval;
    use serde_json::json;

    /// A pending approval of a run with this prompt.
    pub(super) fn pending(prompt: &str) -> Approval {
        let document = json!({
            "id": "apr_1", "state": "pending", "run_id": "run_1", "schedule_id": "sch_1",
            "schedule_name": "standup",
            "agent": "ada", "tier": 2, "asked_at": "2026-11-16T09:00:00Z",
            "approve_by": "2026-11-17T09:00:00Z", "plan_hash": "00ff",
            "needs": {"persons": 1, "role": "operator", "others": false, "signed": false},
            "ruling": {
                "verdict": "ask", "rules": ["@tier-2"], "posture": "staging", "policy": "abc",
            },
            "plan": {"agent": "ada", "prompt": prompt},
        });
        serde_json::from_value(document).unwrap()
    }
}
