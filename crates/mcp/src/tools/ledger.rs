//! Tools for the ledger, the log of everything that happened.

use api::{Error, LedgerTail};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_ITEMS_MAX, load_page};
use crate::schema::FieldType::{Integer, Objects};
use crate::selection::Toolset;
use crate::tool::{Tool, ToolContext, ToolInput, object, pick_fields};

/// Fields of each entry.
const LIST_FIELDS: &[&str] = &["seq", "at", "kind", "actor", "role", "noun", "id", "body"];

pub(super) const TOOLS: &[Tool] = &[Tool::reads::<LedgerQueryInput>(
    "ledger_query",
    Toolset::Ledger,
    "ledger tail",
    "Read ledger entries after a cursor, or the newest ones. To find out about one slot, use slot_explain.",
    &[("events", Objects), ("cursor", Integer)],
)];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LedgerQueryInput {
    /// The `cursor` of an earlier answer, to read what came after it; 0 to start with the first entry. Default: the newest entries.
    #[serde(alias = "after")]
    cursor: Option<u64>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_ITEMS_MAX))]
    limit: Option<u32>,
}

impl ToolInput for LedgerQueryInput {
    async fn call(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let LedgerQueryInput { cursor: after, limit } = self;
        load_page(limit, |limit| async move {
            let tail = context.read(LedgerTail { after, limit, wait_ms: 0 }).await?;
            Ok(object([
                ("events", pick_fields(&tail.events, LIST_FIELDS)?),
                ("cursor", tail.cursor.into()),
            ]))
        })
        .await
    }
}
