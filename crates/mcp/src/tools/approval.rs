//! Tools that show approvals. No tool decides one: a call from an agent's host does not prove that a human made it.

use api::{Approval, ApprovalList, ApprovalShow, ApprovalShown, ApprovalState, Error};
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;

use crate::arguments::{Argument, renamed};
use crate::schema::FieldType::{Boolean, Cursor, Object, Objects, Text};
use crate::tool::{Tool, ToolContext, from_json, object, with_field};
use crate::tools::Toolset;

const ID: Argument =
    renamed("id", "approval_id").or_field().described("`apr_…`, from approval_list or a run.");

pub(super) const TOOLS: &[Tool] = &[
    Tool::new::<ApprovalList>(
        "approval_list",
        Toolset::Approval,
        "approval list",
        "List the approvals that wait for a human's decision. You cannot decide them.",
        &[("approvals", Objects), ("cursor", Cursor)],
    )
    .paged(&[
        "id",
        "state",
        "run_id",
        "schedule_id",
        "agent",
        "tool",
        "tier",
        "asked_at",
        "approve_by",
    ]),
    Tool::new::<ApprovalShow>(
        "approval_get",
        Toolset::Approval,
        "approval show",
        "Show one approval: its exact plan, and whether a human has decided it.",
        &[("approval", Object), ("next_action", Text)],
    )
    .arguments(&[ID])
    .then_requesting(add_next_action),
    Tool::new::<ApprovalShow>(
        "approval_call_human",
        Toolset::Approval,
        "approval show",
        "Ask your user to decide an approval. Clients that can open links show them the approval page. The answer has \
         a message for them, the link, and the command with which they inspect it. Pass these on unchanged; do not \
         open the link or run the command yourself.",
        &[("approval_id", Text), ("waiting", Boolean), ("tell", Text), ("link", Text), ("look", Text)],
    )
    .arguments(&[ID])
    .then(call_human)
    .elicits_human()
    .not_schedulable(
        "its answer is for a user who is present; set `notice.command` to have a human notified",
    ),
];

fn add_next_action<'a>(
    context: &'a ToolContext<'a>,
    shown: Value,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let ApprovalShown { approval } = from_json(shown.clone())?;
        Ok(with_field(shown, "next_action", next_action(context, &approval)))
    }
    .boxed()
}

fn next_action(context: &ToolContext<'_>, approval: &Approval) -> String {
    let Approval { id, run_id, .. } = approval;
    match approval.state {
        ApprovalState::Pending => format!(
            "A human must decide; you cannot. Do other work, and check again later with approval_get, approval_id {id}."
        ),
        ApprovalState::Approved if context.offers("run_wait") => format!(
            "It is approved, and the run starts by itself; follow it with run_wait, run_id {run_id}."
        ),
        ApprovalState::Approved => "It is approved, and the run starts by itself.".to_owned(),
        _ if context.offers("run_get") => {
            format!("It is closed; run_get with run_id {run_id} shows the outcome of the run.")
        }
        _ => "It is closed; there is nothing to wait for.".to_owned(),
    }
}

/// The message to a human who can decide the approval.
fn call_human(shown: Value) -> Result<Value, Error> {
    let ApprovalShown { approval } = from_json(shown)?;
    let Approval { id, agent, tool, tier, state, approve_by, link, .. } = approval;
    let deadline = approve_by.map_or(String::new(), |at| format!(" until {at}"));
    let subject = match (agent, tool) {
        (_, Some(tool)) => format!("tool `{tool}`"),
        (agent, None) => format!("agent `{}`", agent.unwrap_or_default()),
    };
    let look = format!("midwatch approval show {id}");
    if state != ApprovalState::Pending {
        let tell = format!("Approval {id} no longer needs a decision: it is {state}.");
        return Ok(object([
            ("approval_id", id.into()),
            ("waiting", false.into()),
            ("tell", tell.into()),
            ("look", look.into()),
        ]));
    }
    let tell =
        format!("A run of {subject} (tier {tier}) needs your decision{deadline}: approval {id}.");
    let answer = object([
        ("approval_id", id.into()),
        ("waiting", true.into()),
        ("tell", tell.into()),
        ("look", look.into()),
    ]);
    Ok(match link {
        Some(link) => with_field(answer, "link", link),
        None => answer,
    })
}
