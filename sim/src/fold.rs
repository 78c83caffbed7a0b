//! What a log says, without the runtime that wrote it: its events, and the tables they lead to as a
//! store keeps them.

use anyhow::{Context, Result};
use kernel::event::Label;
use kernel::{Body, Tables, Timestamp};
use ledger::{Fields, PrivateRef, canonical};
use store::{Derived, Item};

/// What an entry says happened.
pub(crate) fn decode(fields: &Fields<'_>) -> Result<Body> {
    let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
    let mut facts = serde_json::Deserializer::from_slice(fields.facts);
    let mut body =
        Body::decode(label, &mut facts).with_context(|| format!("entry {}", fields.seq))?;
    if let PrivateRef::Present { bytes, .. } = fields.private {
        body.put_words(serde_json::from_slice(bytes)?);
    }
    Ok(body)
}

/// The tables after so many entries.
pub(crate) fn derived(tables: &Tables, through: u64) -> Result<Derived> {
    let mut items = Vec::with_capacity(tables.rows.len());
    for ((noun, id), row) in &tables.rows {
        let body = row.state.as_ref().map(canonical).transpose()?;
        items.push(Item {
            noun: noun.name().to_owned(),
            id: id.clone(),
            version: row.version,
            body: body.map(Into::into),
            due_us: row.due().map(Timestamp::as_micros),
            under: row.under(),
        });
    }
    items.sort();
    let counters = tables.counters.iter().filter(|(_, value)| **value != 0);
    let mut counters: Vec<_> =
        counters.map(|(counter, value)| (counter.name().into_owned(), *value)).collect();
    counters.sort();
    Ok(Derived { through, items, counters })
}
