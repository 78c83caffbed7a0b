//! Verifies a whole ledger.

use std::ops::ControlFlow;

use api::{Error, ProgressSink};
use futures::future::join;
use ledger::verify::{Anchors, Damage, LedgerVerifier, Report, Verdict};
use store::{PAGE_ENTRIES_MAX, Page, Store};
use tokio::task::spawn_blocking;

use crate::errors::{self, internal};

/// Checkpoints read at once.
const NOTES_MAX: usize = 64;

/// Verifies a whole ledger against its checkpoints and the given anchors. The next page is read while one is hashed. Entries
/// that are added meanwhile are verified too.
pub async fn verify(
    store: &dyn Store,
    anchors: Anchors,
    progress: &ProgressSink,
) -> Result<Report, Error> {
    let total = store.head().await.map_err(errors::store)?.size();
    let mut verifier = LedgerVerifier::new(anchors);
    let mut notes = Notes::new(store);
    let (mut last, mut page) = (0, store.entries(0, PAGE_ENTRIES_MAX).await);
    loop {
        let found = match page {
            Ok(found) => found,
            Err(store::Error::Damaged(what)) => return Ok(unreadable(verifier, last + 1, what)),
            Err(error) => return Err(errors::store(error)),
        };
        let end = found.last_seq();
        if end.is_none() && notes.is_exhausted() {
            return Ok(verifier.finish());
        }
        last = end.unwrap_or(last);
        // The remaining checkpoints come after the last entry. A checkpoint is stored after its entries, so they can be
        // read now, or are missing.
        let due = notes.up_to(end.unwrap_or(u64::MAX)).await?;
        let checked = spawn_blocking(move || {
            let flow = feed(&mut verifier, &found, &due);
            (verifier, flow)
        });
        let (next, checked) = join(store.entries(last, PAGE_ENTRIES_MAX), checked).await;
        let (returned, flow) = checked.map_err(internal)?;
        verifier = returned;
        progress.show(last, total.max(last));
        if flow.is_break() {
            return Ok(verifier.finish());
        }
        page = next;
    }
}

/// The report on a ledger that cannot be read at all.
pub fn report_unreadable(anchors: Anchors, what: String) -> Report {
    unreadable(LedgerVerifier::new(anchors), 1, what)
}

/// The report on a ledger that cannot be read from an entry on.
fn unreadable(verifier: LedgerVerifier, seq: u64, what: String) -> Report {
    let report = verifier.finish();
    let damage = Some(Damage { seq: Some(seq), file: None, what });
    Report { verdict: Verdict::Unreadable, damage, ..report }
}

fn feed(verifier: &mut LedgerVerifier, page: &Page, notes: &[(u64, String)]) -> ControlFlow<()> {
    for (_, note) in notes {
        verifier.checkpoint(note)?;
    }
    for fields in page.iter() {
        verifier.entry(&fields)?;
    }
    ControlFlow::Continue(())
}

/// The stored checkpoints, in step with the entries.
struct Notes<'a> {
    store: &'a dyn Store,
    after: u64,
}

impl<'a> Notes<'a> {
    fn new(store: &'a dyn Store) -> Notes<'a> {
        Notes { store, after: 0 }
    }

    /// Whether all were read, whatever is stored later.
    fn is_exhausted(&self) -> bool {
        self.after == u64::MAX
    }

    async fn up_to(&mut self, size: u64) -> Result<Vec<(u64, String)>, Error> {
        let mut due = Vec::new();
        while !self.is_exhausted() {
            let notes = self.store.checkpoint_notes(self.after, NOTES_MAX).await;
            let notes = notes.map_err(errors::store)?;
            let (read, had) = (notes.len(), due.len());
            due.extend(notes.into_iter().take_while(|(at, _)| *at <= size));
            self.after = due.last().map_or(self.after, |(at, _)| *at);
            if read < NOTES_MAX || due.len() < had + read {
                // A note of an earlier size that is stored from now on is ignored.
                self.after = self.after.max(size);
                break;
            }
        }
        Ok(due)
    }
}
