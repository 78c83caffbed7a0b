//! Encodes the kernel's types for the store, and decodes them.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use api::{Code, Error};
use kernel::event::Label;
use kernel::noun::OwnedId;
use kernel::private_fields::PrivateFields;
use kernel::{Event, EventBody, Noun, NounState, Row, State, Tables, Timestamp};
use ledger::{Draft, EntryRef, Header, Private, PrivateRef, canonical_json, canonical_json_shared};
use store::{DerivedTables, Item, UnchangedKeys, Write};

use crate::errors::internal;

/// An event as an entry to commit, with its private fields apart from its facts.
pub(crate) fn draft_entry(event: Event<'_>) -> Result<Draft, Error> {
    let Event { at, actor, cause, body } = event;
    let private_fields = body.take_private_fields();
    let label = body.label();
    let header = Header {
        ts_us: at.as_micros(),
        kind: label.kind,
        version: label.version,
        actor: actor.name(),
        role: actor.role.name(),
        cause,
        noun: body.noun().name(),
        noun_id: label.noun_id,
    };
    let facts = canonical_json(body).map_err(internal)?;
    let draft = Draft::new(header, facts, encode_private_fields(&private_fields)?);
    body.put_private_fields(private_fields);
    draft.map_err(|too_large| Error::new(Code::InvalidInput, too_large))
}

fn encode_private_fields(private_fields: &PrivateFields) -> Result<Option<Private>, Error> {
    if private_fields.is_empty() {
        return Ok(None);
    }
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(internal)?;
    Ok(Some(Private { salt, bytes: canonical_json(private_fields).map_err(internal)? }))
}

/// The write of a changed row.
pub(crate) fn write_row(noun: Noun, id: String, before: &Row, row: &Row) -> Result<Write, Error> {
    let (due, index_key) = (row.due(), row.index_key());
    let unchanged_keys = match (before.due() == due, before.index_key() == index_key) {
        (true, true) => UnchangedKeys::Both,
        (false, true) => UnchangedKeys::IndexKey,
        (_, false) => UnchangedKeys::Unknown,
    };
    Ok(Write {
        noun: noun.name(),
        id,
        expected_version: before.version,
        version: row.version,
        body: row.state.as_ref().map(encode_state).transpose()?,
        due_us: due.map(Timestamp::as_micros),
        index_key,
        unchanged_keys,
    })
}

/// The event of a stored entry.
pub(crate) fn decode_event(fields: &EntryRef<'_>) -> Result<EventBody, Error> {
    let mut body = decode_facts(fields)?;
    body.put_private_fields(
        decode_private_fields(fields).map_err(|error| undecodable(fields, &error))?,
    );
    Ok(body)
}

/// The event of a stored entry without its private fields: each is an empty text.
pub(crate) fn decode_facts(fields: &EntryRef<'_>) -> Result<EventBody, Error> {
    let label = Label { kind: fields.kind, version: fields.version, noun_id: fields.noun_id };
    let mut facts = serde_json::Deserializer::from_slice(fields.facts);
    EventBody::decode(label, &mut facts).map_err(|error| undecodable(fields, &error))
}

fn undecodable(fields: &EntryRef<'_>, error: &serde_json::Error) -> Error {
    Error::new(Code::LogDamaged, format!("entry {} cannot be decoded: {error}", fields.seq))
        .hint("a newer version of Midwatch may have written it")
}

/// The private fields of an entry, unless they were redacted.
pub(crate) fn decode_private_fields(fields: &EntryRef<'_>) -> serde_json::Result<PrivateFields> {
    match fields.private {
        PrivateRef::Present { bytes, .. } => serde_json::from_slice(bytes),
        PrivateRef::None | PrivateRef::Redacted { .. } => Ok(PrivateFields::new()),
    }
}

pub(crate) fn encode_state(state: &State) -> Result<Arc<[u8]>, Error> {
    canonical_json_shared(state).map_err(internal)
}

pub(crate) fn decode_row(noun: Noun, row: store::Row) -> Result<kernel::Row, Error> {
    let state = row.body.map(|bytes| decode_state(noun, &bytes)).transpose()?;
    Ok(kernel::Row { version: row.version, state })
}

fn decode_state(noun: Noun, bytes: &[u8]) -> Result<State, Error> {
    let mut body = serde_json::Deserializer::from_slice(bytes);
    State::decode(noun, &mut body).map_err(|error| undecodable_state(noun, &error))
}

/// The state of a stored item, unless the object was removed.
pub(crate) fn decode_item<T: NounState>(item: &Item) -> Result<Option<T>, Error> {
    let decode =
        |bytes: &Arc<[u8]>| T::deserialize(&mut serde_json::Deserializer::from_slice(bytes));
    let state = item.body.as_ref().map(decode).transpose();
    state.map_err(|error| undecodable_state(T::NOUN, &error))
}

/// The id and state of a listed item, which always has a state.
pub(crate) fn decode_listed<T>(item: &Item) -> Result<(OwnedId<T>, T), Error>
where
    T: NounState,
    OwnedId<T>: FromStr<Err: Display>,
{
    let missing = || internal(format!("the listed {} `{}` has no state", item.noun, item.id));
    let state = decode_item(item)?;
    Ok((item.id.parse().map_err(internal)?, state.ok_or_else(missing)?))
}

fn undecodable_state(noun: Noun, error: &serde_json::Error) -> Error {
    let what = format!("a stored {} cannot be decoded: {error}", noun.name());
    Error::new(Code::Failed, what)
        .hint("`midwatch ledger rebuild` rebuilds the tables from the ledger")
}

/// The derived tables as the store keeps them.
pub(crate) fn encode_tables(tables: &Tables, through: u64) -> Result<DerivedTables, Error> {
    let mut items = Vec::with_capacity(tables.rows.len());
    for ((noun, id), row) in &tables.rows {
        items.push(Item {
            noun: noun.name().to_owned(),
            id: id.clone(),
            version: row.version,
            body: row.state.as_ref().map(encode_state).transpose()?,
            due_us: row.due().map(Timestamp::as_micros),
            index_key: row.index_key(),
        });
    }
    items.sort();
    let counters = tables.counters.iter().filter(|(_, value)| **value != 0);
    let mut counters: Vec<(String, i64)> =
        counters.map(|(counter, value)| (counter.name().into_owned(), *value)).collect();
    counters.sort();
    Ok(DerivedTables { through, items, counters })
}
