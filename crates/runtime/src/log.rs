//! Reading the log: the feed for whoever follows it, and its verification.

use std::ops::ControlFlow;
use std::time::Duration;

use api::{Error, Event, Events, LIST_BYTES_MAX, LedgerTail, ProgressSink};
use futures::future::join;
use kernel::Timestamp;
use ledger::Fields;
use ledger::verify::{Anchors, Damage, LogVerifier, Report, Verdict};
use store::{PAGE_ENTRIES_MAX, Page, Store};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::agents::page_size;
use crate::errors::{self, internal};
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Watch;

/// The longest that one request waits for something to happen.
pub(crate) const WAIT_MS_MAX: u32 = 25_000;
/// Checkpoints read at once.
const NOTES_MAX: usize = 64;

impl Watch {
    pub(crate) async fn tail(&self, asked: LedgerTail) -> Result<Events, Error> {
        let limit = page_size(asked.limit)?;
        let store = self.store();
        let size = store.head().await.map_err(errors::store)?.size();
        let after = asked.after.unwrap_or(size.saturating_sub(limit as u64));
        if size <= after && 0 < asked.wait_ms {
            let wait = Duration::from_millis(asked.wait_ms.min(WAIT_MS_MAX).into());
            // Nothing within the time is an answer too: an empty one.
            let _ = timeout(wait, store.grown_past(after)).await;
        }
        let page = store.entries(after, limit).await.map_err(errors::store)?;
        let mut events = Vec::with_capacity(page.len());
        let mut bytes = 0;
        for fields in page.iter() {
            events.push(wire(&fields)?);
            bytes += fields.facts.len() + fields.private.content_bytes();
            if LIST_BYTES_MAX <= bytes {
                break;
            }
        }
        let cursor = events.last().map_or(after, |event| event.seq);
        Ok(Events { events, cursor })
    }
}

fn wire(fields: &Fields<'_>) -> Result<Event, Error> {
    Ok(Event {
        seq: fields.seq,
        at: rfc3339(Timestamp::from_micros(fields.ts_us)),
        kind: fields.kind.to_owned(),
        version: fields.version,
        actor: fields.actor.to_owned(),
        role: fields.role.to_owned(),
        cause: fields.cause.to_owned(),
        noun: fields.noun.to_owned(),
        id: fields.noun_id.to_owned(),
        body: serde_json::from_slice(fields.facts).map_err(internal)?,
        words: stored::words(fields).map_err(internal)?,
        hash: fields.hash.to_string(),
    })
}

/// Verifies a whole log against its checkpoints and what is known from outside. The next page is
/// read while one is hashed. Entries that come meanwhile are verified too.
pub async fn verify(
    store: &dyn Store,
    anchors: Anchors,
    progress: &ProgressSink,
) -> Result<Report, Error> {
    let total = store.head().await.map_err(errors::store)?.size();
    let mut verifier = LogVerifier::new(anchors);
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
        // At the end of the log come the checkpoints that are left. A checkpoint is stored after its
        // entries, so those it speaks of can be read now, or are gone.
        let due = notes.up_to(end.unwrap_or(u64::MAX)).await?;
        let checked = spawn_blocking(move || {
            let flow = feed(&mut verifier, &found, &due);
            (verifier, flow)
        });
        let (next, checked) = join(store.entries(last, PAGE_ENTRIES_MAX), checked).await;
        let (fed, flow) = checked.map_err(internal)?;
        verifier = fed;
        progress.show(last, total.max(last));
        if flow.is_break() {
            return Ok(verifier.finish());
        }
        page = next;
    }
}

/// The report on a log of which nothing can be read.
pub fn report_unreadable(anchors: Anchors, what: String) -> Report {
    unreadable(LogVerifier::new(anchors), 1, what)
}

/// What was good so far, and that the store could not read on.
fn unreadable(verifier: LogVerifier, seq: u64, what: String) -> Report {
    let report = verifier.finish();
    let damage = Some(Damage { seq: Some(seq), file: None, what });
    Report { verdict: Verdict::Unreadable, damage, ..report }
}

fn feed(verifier: &mut LogVerifier, page: &Page, notes: &[(u64, String)]) -> ControlFlow<()> {
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

    /// Whether all were taken, whatever is stored later.
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
                // A note that is stored from now on for a size that is passed comes too late.
                self.after = self.after.max(size);
                break;
            }
        }
        Ok(due)
    }
}
