//! The log of everything that happened.

use api::{Error, LedgerTail};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_MAX, paged};
use crate::schema::Kind::{Number, Objects};
use crate::tool::{Input, Through, Tool, brief, fields};
use crate::toolset::Toolset;

/// What is shown of each.
const BRIEF: &[&str] = &["seq", "at", "kind", "actor", "role", "noun", "id", "body"];

pub(super) const TOOLS: &[Tool] = &[Tool::reads::<LedgerQuery>(
    "ledger_query",
    Toolset::Ledger,
    "ledger tail",
    "Read entries of the log after a place in it, or the last ones. To ask about one slot, use slot_explain.",
    &[("events", Objects), ("cursor", Number)],
)];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LedgerQuery {
    /// What an earlier answer gave as `cursor`, for what came after it; 0 for the first entries. Default: the last ones.
    #[serde(alias = "after")]
    cursor: Option<u64>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<u32>,
}

impl Input for LedgerQuery {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let LedgerQuery { cursor: after, limit } = self;
        paged(limit, |limit| async move {
            let tail = through.read(LedgerTail { after, limit, wait_ms: 0 }).await?;
            Ok(fields([("events", brief(&tail.events, BRIEF)?), ("cursor", tail.cursor.into())]))
        })
        .await
    }
}
