//! Between the kernel's types and the bytes that a store keeps.

use std::sync::Arc;

use api::{Code, Error};
use kernel::event::Label;
use kernel::words::Words;
use kernel::{Body, Event, Noun, Row, State, Tables, Timestamp};
use ledger::{Draft, Fields, Header, Private, PrivateRef, canonical, canonical_shared};
use store::{Derived, Item, Keeps, Write};

use crate::errors::internal;

/// An event, ready to be committed: its words apart from its facts.
pub(crate) fn draft(event: Event<'_>) -> Result<Draft, Error> {
    let Event { at, actor, cause, body } = event;
    let words = body.take_words();
    let label = body.label();
    let header = Header {
        ts_us: at.as_micros(),
        kind: label.kind,
        version: label.version,
        actor: &actor.name,
        role: actor.role.name(),
        cause,
        noun: body.noun().name(),
        noun_id: label.noun_id,
    };
    let facts = canonical(body).map_err(internal)?;
    let draft = Draft::new(header, facts, private(&words)?);
    body.put_words(words);
    draft.map_err(|too_large| Error::new(Code::InvalidInput, too_large))
}

fn private(words: &Words) -> Result<Option<Private>, Error> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(internal)?;
    Ok(Some(Private { salt, bytes: canonical(words).map_err(internal)? }))
}

/// A row, ready to be committed.
pub(crate) fn write(noun: Noun, id: String, before: &Row, row: &Row) -> Result<Write, Error> {
    let (due, under) = (row.due(), row.under());
    let keeps = match (before.due() == due, before.under() == under) {
        (true, true) => Keeps::Both,
        (false, true) => Keeps::Under,
        (_, false) => Keeps::Unknown,
    };
    Ok(Write {
        noun: noun.name(),
        id,
        expected: before.version,
        version: row.version,
        body: row.state.as_ref().map(state_bytes).transpose()?,
        due_us: due.map(Timestamp::as_micros),
        under,
        keeps,
    })
}

/// What a stored entry says happened.
pub(crate) fn body(fields: &Fields<'_>) -> Result<Body, Error> {
    let mut body = facts(fields)?;
    body.put_words(words(fields).map_err(|error| not_understood(fields, &error))?);
    Ok(body)
}

/// The same without its words: each is an empty text.
pub(crate) fn facts(fields: &Fields<'_>) -> Result<Body, Error> {
    let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
    let mut facts = serde_json::Deserializer::from_slice(fields.facts);
    Body::decode(label, &mut facts).map_err(|error| not_understood(fields, &error))
}

fn not_understood(fields: &Fields<'_>, error: &serde_json::Error) -> Error {
    Error::new(Code::LogDamaged, format!("entry {} cannot be understood: {error}", fields.seq))
        .hint("a newer version of Midwatch may have written it")
}

/// The words of an entry, as far as they are still there.
pub(crate) fn words(fields: &Fields<'_>) -> serde_json::Result<Words> {
    match fields.private {
        PrivateRef::Present { bytes, .. } => serde_json::from_slice(bytes),
        PrivateRef::None | PrivateRef::Redacted { .. } => Ok(Words::new()),
    }
}

/// The stored form of a row's state.
pub(crate) fn state_bytes(state: &State) -> Result<Arc<[u8]>, Error> {
    canonical_shared(state).map_err(internal)
}

/// A row as the kernel knows it.
pub(crate) fn row(noun: Noun, row: store::Row) -> Result<kernel::Row, Error> {
    let state = row.body.map(|bytes| state(noun, &bytes)).transpose()?;
    Ok(kernel::Row { version: row.version, state })
}

pub(crate) fn state(noun: Noun, bytes: &[u8]) -> Result<State, Error> {
    let mut body = serde_json::Deserializer::from_slice(bytes);
    State::decode(noun, &mut body).map_err(|error| {
        let what = format!("a stored {} cannot be understood: {error}", noun.name());
        Error::new(Code::Failed, what)
            .hint("`midwatch ledger rebuild` makes the tables anew from the log")
    })
}

/// All derived tables in stored form.
pub(crate) fn derived(tables: &Tables, through: u64) -> Result<Derived, Error> {
    let mut items = Vec::with_capacity(tables.rows.len());
    for ((noun, id), row) in &tables.rows {
        items.push(Item {
            noun: noun.name().to_owned(),
            id: id.clone(),
            version: row.version,
            body: row.state.as_ref().map(state_bytes).transpose()?,
            due_us: row.due().map(Timestamp::as_micros),
            under: row.under(),
        });
    }
    items.sort();
    let counters = tables.counters.iter().filter(|(_, value)| **value != 0);
    let mut counters: Vec<(String, i64)> =
        counters.map(|(counter, value)| (counter.name().into_owned(), *value)).collect();
    counters.sort();
    Ok(Derived { through, items, counters })
}
