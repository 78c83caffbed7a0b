//! Tools for the ledger, the log of everything that happened.

use api::LedgerTail;

use crate::arguments::renamed;
use crate::schema::FieldType::{Integer, Objects};
use crate::tool::Tool;
use crate::tools::Toolset;

pub(super) const TOOLS: &[Tool] = &[Tool::new::<LedgerTail>(
    "ledger_query",
    Toolset::Ledger,
    "ledger tail",
    "Read ledger entries after a cursor, or the newest ones. To find out about one slot, use slot_explain.",
    &[("events", Objects), ("cursor", Integer)],
)
.paged(&["seq", "at", "kind", "actor", "role", "noun", "id", "body"])
.arguments(&[renamed("after", "cursor").or_field().described(
    "The `cursor` of an earlier answer, to read what came after it; 0 to start with the first entry. \
     Default: the newest entries.",
)])
.without(&["wait_ms", "kind", "schedule", "run", "log"])];
