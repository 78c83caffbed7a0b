//! Tools that show approvals. No tool decides one: a call from an agent's host does not prove that a human made it.

use api::{Approval, ApprovalList, ApprovalShow, ApprovalState, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_ITEMS_MAX, load_page};
use crate::schema::FieldType::{Boolean, Cursor, Object, Objects, Text};
use crate::selection::Toolset;
use crate::tool::{
    Tool, ToolContext, ToolInput, list_page, object, pick_fields, to_json, with_field,
};

/// Fields of each item of a list.
const LIST_FIELDS: &[&str] =
    &["id", "state", "run_id", "schedule_id", "agent", "tool", "tier", "asked_at", "approve_by"];

pub(super) const TOOLS: &[Tool] = &[
    Tool::reads::<ApprovalListInput>(
        "approval_list",
        Toolset::Approval,
        "approval list",
        "List the approvals that wait for a human's decision. You cannot decide them.",
        &[("approvals", Objects), ("cursor", Cursor)],
    ),
    Tool::reads::<ApprovalGetInput>(
        "approval_get",
        Toolset::Approval,
        "approval show",
        "Show one approval: its exact plan, and whether a human has decided it.",
        &[("approval", Object), ("next_action", Text)],
    ),
    Tool::reads::<ApprovalCallHumanInput>(
        "approval_call_human",
        Toolset::Approval,
        "approval show",
        "Ask your user to decide an approval. Clients that can open links show them the approval page. The answer has \
         a message for them, the link, and the commands with which they inspect and decide it. Pass these on \
         unchanged; do not open the link or run the commands yourself.",
        &[
            ("id", Text),
            ("waiting", Boolean),
            ("tell", Text),
            ("link", Text),
            ("look", Text),
            ("approve", Text),
            ("deny", Text),
        ],
    )
    .elicits_human()
    .not_schedulable(
        "its answer is for a user who is present; set `notice.command` to have a human notified",
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalListInput {
    /// Only approvals for runs of this agent.
    agent: Option<String>,
    /// Also list approvals that are already decided or expired. Default: false.
    all: Option<bool>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_ITEMS_MAX))]
    limit: Option<u32>,
    /// The `cursor` of the previous page.
    cursor: Option<String>,
}

impl ToolInput for ApprovalListInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let ApprovalListInput { agent, all, limit, cursor } = self;
        let request = &ApprovalList { agent, all: all.unwrap_or(false), limit: None, cursor };
        load_page(limit, |limit| async move {
            let listed = context.read(ApprovalList { limit, ..request.clone() }).await?;
            Ok(list_page("approvals", pick_fields(&listed.approvals, LIST_FIELDS)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalGetInput {
    /// `apr_…`, from approval_list or a run.
    id: String,
}

impl ToolInput for ApprovalGetInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let shown = context.read(ApprovalShow { id: self.id }).await?;
        let next = next_action(&shown.approval);
        Ok(with_field(to_json(&shown)?, "next_action", next))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalCallHumanInput {
    /// `apr_…`, from approval_list or a run.
    id: String,
}

impl ToolInput for ApprovalCallHumanInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let Approval { id, agent, tool, tier, state, approve_by, link, .. } =
            context.read(ApprovalShow { id: self.id }).await?.approval;
        let deadline = approve_by.map_or(String::new(), |at| format!(" until {at}"));
        let subject = match (agent, tool) {
            (_, Some(tool)) => format!("tool `{tool}`"),
            (agent, None) => format!("agent `{}`", agent.unwrap_or_default()),
        };
        let look = format!("midwatch approval show {id}");
        if state != ApprovalState::Pending {
            let tell = format!("Approval {id} no longer needs a decision: it is {state}.");
            let (id, tell, look) = (id.into(), tell.into(), look.into());
            return Ok(object([
                ("id", id),
                ("waiting", false.into()),
                ("tell", tell),
                ("look", look),
            ]));
        }
        let tell = format!(
            "A run of {subject} (tier {tier}) needs your decision{deadline}: approval {id}."
        );
        let approve = format!("midwatch approval approve {id} --reason TEXT");
        let deny = format!("midwatch approval deny {id} --reason TEXT");
        let answer = object([
            ("id", id.into()),
            ("waiting", true.into()),
            ("tell", tell.into()),
            ("look", look.into()),
            ("approve", approve.into()),
            ("deny", deny.into()),
        ]);
        Ok(match link {
            Some(link) => with_field(answer, "link", link),
            None => answer,
        })
    }
}

fn next_action(approval: &Approval) -> &'static str {
    match approval.state {
        ApprovalState::Pending => {
            "A human must decide; you cannot. Do other work and check again later."
        }
        ApprovalState::Approved => {
            "It is approved, and the run starts by itself; follow it with run_wait."
        }
        ApprovalState::Denied
        | ApprovalState::Consumed
        | ApprovalState::Expired
        | ApprovalState::Revoked
        | ApprovalState::Changed
        | ApprovalState::Unsigned
        | ApprovalState::Cancelled
        | ApprovalState::NotNeeded => "It is closed; run_get shows the outcome of the run.",
    }
}
