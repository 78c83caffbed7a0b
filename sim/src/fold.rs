//! Decodes ledger entries and derives the tables from them, without the runtime that wrote them.

use anyhow::{Context, Result};
use kernel::event::Label;
use kernel::{EventBody, Tables, Timestamp};
use ledger::{EntryRef, PrivateRef, canonical_json};
use store::{DerivedTables, Item};

/// The event of an entry, with its private fields.
pub(crate) fn decode(fields: &EntryRef<'_>) -> Result<EventBody> {
    let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
    let mut facts = serde_json::Deserializer::from_slice(fields.facts);
    let mut body =
        EventBody::decode(label, &mut facts).with_context(|| format!("entry {}", fields.seq))?;
    if let PrivateRef::Present { bytes, .. } = fields.private {
        body.put_private_fields(serde_json::from_slice(bytes)?);
    }
    Ok(body)
}

/// The tables after `through` entries, in the form in which a store returns them.
pub(crate) fn derived(tables: &Tables, through: u64) -> Result<DerivedTables> {
    let mut items = Vec::with_capacity(tables.rows.len());
    for ((noun, id), row) in &tables.rows {
        let body = row.state.as_ref().map(canonical_json).transpose()?;
        items.push(Item {
            noun: noun.name().to_owned(),
            id: id.clone(),
            version: row.version,
            body: body.map(Into::into),
            due_us: row.due().map(Timestamp::as_micros),
            index_key: row.index_key(),
        });
    }
    items.sort();
    let counters = tables.counters.iter().filter(|(_, value)| **value != 0);
    let mut counters: Vec<_> =
        counters.map(|(counter, value)| (counter.name().into_owned(), *value)).collect();
    counters.sort();
    Ok(DerivedTables { through, items, counters })
}
