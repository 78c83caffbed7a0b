//! What waits for a human. Nothing here decides on it: what comes from the host of an agent is no proof of a
//! human, so there is no such tool.

use api::{Approval, ApprovalList, ApprovalShow, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_MAX, paged};
use crate::schema::Kind::{Cursor, Flag, Object, Objects, Text};
use crate::tool::{Input, Through, Tool, brief, fields, page_of, shown, with};
use crate::toolset::Toolset;

/// What a list shows of each.
const BRIEF: &[&str] =
    &["id", "state", "run_id", "schedule_id", "agent", "tool", "tier", "asked_at", "approve_by"];

pub(super) const TOOLS: &[Tool] = &[
    Tool::reads::<ApprovalListed>(
        "approval_list",
        Toolset::Approval,
        "approval list",
        "List what waits for a human's decision. You cannot decide it.",
        &[("approvals", Objects), ("cursor", Cursor)],
    ),
    Tool::reads::<ApprovalGet>(
        "approval_get",
        Toolset::Approval,
        "approval show",
        "Show one approval with its exact plan, and whether a human has decided yet.",
        &[("approval", Object), ("next_action", Text)],
    ),
    Tool::reads::<ApprovalCallHuman>(
        "approval_call_human",
        Toolset::Approval,
        "approval show",
        "Call your user to what waits for their decision. A client that can opens the page for them; in any case you get \
         the words to tell them, the link, and the commands with which they look at it and decide. Pass them on as \
         they are; do not open or run them yourself.",
        &[
            ("id", Text),
            ("waiting", Flag),
            ("tell", Text),
            ("link", Text),
            ("look", Text),
            ("approve", Text),
            ("deny", Text),
        ],
    )
    .calls_human()
    .not_scheduled("it gives words to pass on; `notice.command` calls a human by itself"),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalListed {
    /// Only those about this agent.
    agent: Option<String>,
    /// Also those that nobody needs to answer any more. Default: false.
    all: Option<bool>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<u32>,
    /// What an earlier page gave as `cursor`.
    cursor: Option<String>,
}

impl Input for ApprovalListed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ApprovalListed { agent, all, limit, cursor } = self;
        let asked = &ApprovalList { agent, all: all.unwrap_or(false), limit: None, cursor };
        paged(limit, |limit| async move {
            let listed = through.read(ApprovalList { limit, ..asked.clone() }).await?;
            Ok(page_of("approvals", brief(&listed.approvals, BRIEF)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalGet {
    /// `apr_…`
    id: String,
}

impl Input for ApprovalGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let shown_one = through.read(ApprovalShow { id: self.id }).await?;
        let next = next_action(&shown_one.approval);
        Ok(with(shown(&shown_one)?, "next_action", next))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalCallHuman {
    /// `apr_…`
    id: String,
}

impl Input for ApprovalCallHuman {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let Approval { id, agent, tool, tier, state, approve_by, link, .. } =
            through.read(ApprovalShow { id: self.id }).await?.approval;
        let by = approve_by.map_or(String::new(), |at| format!(" until {at}"));
        let of = match (agent, tool) {
            (_, Some(tool)) => format!("tool `{tool}`"),
            (agent, None) => format!("agent `{}`", agent.unwrap_or_default()),
        };
        let look = format!("midwatch approval show {id}");
        if state != "pending" {
            let tell = format!("Approval {id} waits for nobody any more: it is {state}.");
            let (id, tell, look) = (id.into(), tell.into(), look.into());
            return Ok(fields([
                ("id", id),
                ("waiting", false.into()),
                ("tell", tell),
                ("look", look),
            ]));
        }
        let tell =
            format!("A run of {of} (tier {tier}) waits for your decision{by}: approval {id}.");
        let approve = format!("midwatch approval approve {id} --reason TEXT");
        let deny = format!("midwatch approval deny {id} --reason TEXT");
        let told = fields([
            ("id", id.into()),
            ("waiting", true.into()),
            ("tell", tell.into()),
            ("look", look.into()),
            ("approve", approve.into()),
            ("deny", deny.into()),
        ]);
        Ok(match link {
            Some(link) => with(told, "link", link),
            None => told,
        })
    }
}

fn next_action(approval: &Approval) -> &'static str {
    match approval.state.as_str() {
        "pending" => "A human must decide; you cannot. Do other work, and look again later.",
        "approved" => "It was approved and runs by itself; follow it with run_wait.",
        _ => "It is settled; run_get shows what became of the run.",
    }
}
