//! The row that says whose ledger this is.

use api::Error;
use kernel::installation::Identity;
use kernel::{Actor, Event, EventBody, Noun, Timestamp};
use store::{Commit, Store};

use crate::commit::codec;
use crate::errors;

/// The instance that signs this ledger, according to the tables.
pub(crate) async fn identity(store: &dyn Store) -> Result<Option<Identity>, Error> {
    let found = store.list(Noun::Installation.name(), "", 1).await.map_err(errors::store)?;
    found.first().map_or(Ok(None), codec::decode_item)
}

/// Commits an event that changes the installation's own row.
pub(crate) async fn commit_identity(
    store: &dyn Store,
    now: Timestamp,
    mut body: EventBody,
) -> Result<(), Error> {
    let id = body.label().noun_id.to_owned();
    let loaded = store.load(Noun::Installation.name(), &id).await.map_err(errors::store)?;
    let before = codec::decode_row(Noun::Installation, loaded)?;
    let mut row = before.clone();
    row.apply(Noun::Installation, &id, &body);
    let actor = &Actor::system();
    let event = Event { at: now, actor, cause: "", body: &mut body };
    let write = codec::write_row(Noun::Installation, id, &before, &row)?;
    let drafts = vec![codec::draft_entry(event)?];
    let commit = Commit { drafts, writes: vec![write], ..Commit::default() };
    store.commit(commit).await.map_err(errors::store).map(drop)
}
