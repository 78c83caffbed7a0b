//! A whole store into another, whatever engine each is on.

use api::{Code, Error, ProgressSink};
use futures::future::try_join_all;
use ledger::Chain;
use store::{Checkpoint, Commit, Derived, Outcome, PAGE_ENTRIES_MAX, Store};

use crate::errors::{self, internal};
use crate::rebuild::Fold;

const NOTES_MAX: usize = 1_000;
/// Answers in one step; they are kept concurrently, so that they share transactions.
const ANSWERS_MAX: usize = 256;

/// Copies everything into a store that is empty, link by link, and compares the ends.
pub async fn copy(
    from: &dyn Store,
    to: &dyn Store,
    progress: &ProgressSink,
) -> Result<Chain, Error> {
    if to.head().await.map_err(errors::store)?.size() != 0 {
        let what = "the store to copy into has a log already";
        return Err(Error::new(Code::Exists, what).hint("name an empty one"));
    }
    let end = from.head().await.map_err(errors::store)?;
    copy_log(from, to, &end, progress).await?;
    copy_answers(from, to).await?;
    copy_tables(to, &end).await?;
    let (source, copied) = (from.head().await, to.head().await);
    let (source, copied) = (source.map_err(errors::store)?, copied.map_err(errors::store)?);
    if source != end {
        return Err(Error::new(Code::Busy, "the log grew while it was copied")
            .hint("stop whoever writes it, empty the copy, and try again"));
    }
    match copied == end {
        true => Ok(end),
        false => Err(internal("the copy does not end as its source does")),
    }
}

/// Entries, and each checkpoint when the copy is as long as it says.
async fn copy_log(
    from: &dyn Store,
    to: &dyn Store,
    end: &Chain,
    progress: &ProgressSink,
) -> Result<(), Error> {
    let mut chain = Chain::empty();
    let mut notes = Vec::new().into_iter().peekable();
    let mut noted = 0;
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
            chain.check(&fields).map_err(damaged).map_err(errors::store)?;
            if notes.peek().is_none() {
                let more = from.checkpoint_notes(noted, NOTES_MAX).await.map_err(errors::store)?;
                notes = more.into_iter().peekable();
            }
            if let Some((size, note)) = notes.next_if(|(size, _)| *size <= chain.size()) {
                noted = size;
                reached.push(Checkpoint { chain: chain.clone(), note });
            }
        }
        to.append_sealed(page).await.map_err(errors::store)?;
        for checkpoint in reached {
            to.keep_checkpoint(checkpoint).await.map_err(errors::store)?;
        }
        progress.show(chain.size(), end.size());
    }
    Ok(())
}

async fn copy_answers(from: &dyn Store, to: &dyn Store) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let answers = from.answers(&after, ANSWERS_MAX).await.map_err(errors::store)?;
        let Some(last) = answers.last() else { return Ok(()) };
        after = last.key.clone();
        let kept = answers
            .into_iter()
            .map(|answer| to.commit(Commit { answer: Some(answer), ..Commit::default() }));
        try_join_all(kept).await.map_err(errors::store)?;
    }
}

/// From the log, so that a fault in the tables of the source is not taken along.
async fn copy_tables(to: &dyn Store, end: &Chain) -> Result<(), Error> {
    let mut fold = Fold::default();
    fold.advance(to, end.size(), &ProgressSink::default()).await?;
    let derived: Derived = fold.derived()?;
    let commit = Commit { replace: Some(derived), ..Commit::default() };
    match to.commit(commit).await.map_err(errors::store)? {
        Outcome::Committed(_) => Ok(()),
        other => Err(internal(format!("the store answered out of turn: {other:?}"))),
    }
}
