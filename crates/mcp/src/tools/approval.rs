//! Tools that show approvals. No tool decides one: a call from an agent's host does not prove that a human made it.

use api::{Approval, ApprovalList, ApprovalShow, ApprovalShown, ApprovalState, Error};
use serde_json::Value;

use crate::arguments::{Argument, described};
use crate::schema::FieldType::{Boolean, Cursor, Object, Objects, Text};
use crate::tool::{Tool, from_json, object, with_field};
use crate::tools::Toolset;

const ID: Argument = described("id", "`apr_…`, from approval_list or a run.");

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
    .then(add_next_action),
    Tool::new::<ApprovalShow>(
        "approval_call_human",
        Toolset::Approval,
        "approval show",
        "Ask your user to decide an approval. Clients that can open links show them the approval page. The answer has \
         a message for them, the link, and the command with which they inspect it. Pass these on unchanged; do not \
         open the link or run the command yourself.",
        &[("id", Text), ("waiting", Boolean), ("tell", Text), ("link", Text), ("look", Text)],
    )
    .arguments(&[ID])
    .then(call_human)
    .elicits_human()
    .not_schedulable(
        "its answer is for a user who is present; set `notice.command` to have a human notified",
    ),
];

fn add_next_action(shown: Value) -> Result<Value, Error> {
    let ApprovalShown { approval } = from_json(shown.clone())?;
    Ok(with_field(shown, "next_action", next_action(&approval)))
}

fn next_action(approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Pending => {
            "A human must decide; you cannot. Do other work and check again later."
        }
        ApprovalState::Approved => {
            "It is approved, and the run starts by itself; follow it with run_wait."
        }
        _ => "It is closed; run_get shows the outcome of the run.",
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
        let (id, tell, look) = (id.into(), tell.into(), look.into());
        return Ok(object([("id", id), ("waiting", false.into()), ("tell", tell), ("look", look)]));
    }
    let tell =
        format!("A run of {subject} (tier {tier}) needs your decision{deadline}: approval {id}.");
    let answer = object([
        ("id", id.into()),
        ("waiting", true.into()),
        ("tell", tell.into()),
        ("look", look.into()),
    ]);
    Ok(match link {
        Some(link) => with_field(answer, "link", link),
        None => answer,
    })
}
