//! Copies a whole store into another, which may be of another kind.

use api::{Code, Error, ProgressSink};
use futures::future::try_join_all;
use ledger::Chain;
use store::{Checkpoint, Commit, DerivedTables, Outcome, PAGE_ENTRIES_MAX, Store};

use crate::errors::{self, internal};
use crate::ledger::rebuild::Fold;

const NOTES_MAX: usize = 1_000;
/// Stored responses copied at a time. They are committed concurrently, so that they share transactions.
const RESPONSES_MAX: usize = 256;

/// Copies everything into an empty store, verifies each entry, and compares the heads.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    progress: &ProgressSink,
) -> Result<Chain, Error> {
    if to.head().await.map_err(errors::store)?.size() != 0 {
        let what = "the target store is not empty";
        return Err(Error::new(Code::Exists, what).hint("choose an empty store"));
    }
    let end = from.head().await.map_err(errors::store)?;
    copy_ledger(from, to, &end, progress).await?;
    copy_responses(from, to).await?;
    rebuild_tables(to, &end).await?;
    let (source, copied) = (from.head().await, to.head().await);
    let (source, copied) = (source.map_err(errors::store)?, copied.map_err(errors::store)?);
    if source != end {
        return Err(Error::new(Code::Busy, "the ledger grew while it was copied")
            .hint("stop the daemon that writes it, empty the target, and try again"));
    }
    match copied == end {
        true => Ok(end),
        false => Err(internal("the copy differs from its source")),
    }
}

/// Copies the entries, and each checkpoint after its last entry.
async fn copy_ledger(
    from: &dyn Store,
    to: &dyn Store,
    end: &Chain,
    progress: &ProgressSink,
) -> Result<(), Error> {
    let mut chain = Chain::empty();
    let mut notes = Vec::new().into_iter().peekable();
    let mut last_noted = 0;
    while chain.size() < end.size() {
        let limit = usize::try_from(end.size() - chain.size()).unwrap_or(PAGE_ENTRIES_MAX);
        let page = from.entries(chain.size(), limit).await.map_err(errors::store)?;
        if page.is_empty() {
            let what = format!("entry {} is missing", chain.size() + 1);
            return Err(errors::store(store::Error::Damaged(what)));
        }
        let mut reached = Vec::new();
        for fields in page.iter() {
            let damaged = |fault: ledger::Fault| store::Error::Damaged(fault.to_string());
            chain.verify_next(&fields).map_err(damaged).map_err(errors::store)?;
            if notes.peek().is_none() {
                let more =
                    from.checkpoint_notes(last_noted, NOTES_MAX).await.map_err(errors::store)?;
                notes = more.into_iter().peekable();
            }
            if let Some((size, note)) = notes.next_if(|(size, _)| *size <= chain.size()) {
                last_noted = size;
                reached.push(Checkpoint { chain: chain.clone(), note });
            }
        }
        to.append_entries(page).await.map_err(errors::store)?;
        for checkpoint in reached {
            to.save_checkpoint(checkpoint).await.map_err(errors::store)?;
        }
        progress.show(chain.size(), end.size());
    }
    Ok(())
}

async fn copy_responses(from: &dyn Store, to: &dyn Store) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let responses = from.responses(&after, RESPONSES_MAX).await.map_err(errors::store)?;
        let Some(last) = responses.last() else { return Ok(()) };
        after = last.key.clone();
        let commits = responses
            .into_iter()
            .map(|response| to.commit(Commit { response: Some(response), ..Commit::default() }));
        try_join_all(commits).await.map_err(errors::store)?;
    }
}

/// Builds the tables from the ledger, so that damaged tables of the source are not copied.
async fn rebuild_tables(to: &dyn Store, end: &Chain) -> Result<(), Error> {
    let mut fold = Fold::default();
    fold.advance(to, end.size(), &ProgressSink::default()).await?;
    let derived: DerivedTables = fold.derived()?;
    let commit = Commit { replace_derived: Some(derived), ..Commit::default() };
    match to.commit(commit).await.map_err(errors::store)? {
        Outcome::Committed(_) => Ok(()),
        other => Err(internal(format!("unexpected outcome of a commit: {other:?}"))),
    }
}
