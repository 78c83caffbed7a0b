//! Reading the log: the feed for whoever follows it, what it says of one run, and its verification.

use std::ops::ControlFlow;
use std::time::Duration;

use api::{
    Code, Error, Event, Events, Heard, LIST_BYTES_MAX, LedgerTail, News, ProgressSink, RunEvents,
    RunTold,
};
use futures::future::join;
use kernel::run::Origin;
use kernel::slot::Source;
use kernel::tables::touched;
use kernel::{Body, Noun, RunId, Timestamp, run};
use ledger::Fields;
use ledger::verify::{Anchors, Damage, LogVerifier, Report, Verdict};
use store::{PAGE_ENTRIES_MAX, Page, Store};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

use crate::errors::{self, internal};
use crate::page::page_size;
use crate::runs::run_id;
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Engine;

/// The longest that one request waits for something to happen.
pub(crate) const WAIT_MS_MAX: u32 = 25_000;
/// Things that one request asks for news of.
const ABOUT_MAX: usize = 64;
/// Entries that are looked through for those of one run.
const LOOKED_THROUGH_MAX: u64 = 100_000;
/// Checkpoints read at once.
const NOTES_MAX: usize = 64;

impl Engine {
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

    pub(crate) async fn news(&self, asked: News) -> Result<Heard, Error> {
        if ABOUT_MAX < asked.about.len() {
            let what = format!("news are of at most {ABOUT_MAX} things at once");
            return Err(Error::new(Code::InvalidInput, what));
        }
        let store = self.store();
        let size = store.head().await.map_err(errors::store)?.size();
        let after = asked.after.unwrap_or(size);
        // A log that was restored may be shorter.
        let mut cursor = after.min(size);
        let until = Instant::now() + Duration::from_millis(asked.wait_ms.min(WAIT_MS_MAX).into());
        let mut has_waited = false;
        loop {
            let page = store.entries(cursor, PAGE_ENTRIES_MAX).await.map_err(errors::store)?;
            cursor = page.last_seq().unwrap_or(cursor);
            let is_named = |id: &&String| page.iter().any(|fields| names(&fields, id));
            let about: Vec<String> = asked.about.iter().filter(is_named).cloned().collect();
            let is_news = (asked.any && !page.is_empty()) || !about.is_empty();
            // A store that is closed does not grow.
            let is_over = is_news || (has_waited && page.is_empty());
            if is_over || timeout_at(until, store.grown_past(cursor)).await.is_err() {
                return Ok(Heard { about, cursor });
            }
            has_waited = true;
        }
    }

    /// The row of a run counts the entries that changed it, so it is known when all are found.
    pub(crate) async fn run_events(&self, asked: RunEvents) -> Result<RunTold, Error> {
        let id = run_id(&asked.id)?;
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
        let queued_at = rows.run(&id).ok_or_else(unknown)?.queued_at;
        let count = rows.row(Noun::Run, id.as_str()).map_or(0, |row| row.version);
        let first = self.place_before(queued_at).await?;
        let mut told = RunTold { run_id: id.to_string(), events: Vec::new(), more_after: None };
        let (mut cursor, mut bytes) = (first, 0);
        loop {
            let page = self.store().entries(cursor, PAGE_ENTRIES_MAX).await;
            let page = page.map_err(errors::store)?;
            for fields in page.iter() {
                cursor = fields.seq;
                if changes_run(&fields, &id)? {
                    told.events.push(wire(&fields)?);
                    bytes += fields.facts.len() + fields.private.content_bytes();
                }
                if count <= told.events.len() as u64 {
                    return Ok(told);
                }
                if LIST_BYTES_MAX <= bytes || LOOKED_THROUGH_MAX <= cursor - first {
                    return Ok(RunTold { more_after: Some(cursor), ..told });
                }
            }
            if page.is_empty() {
                return Ok(told);
            }
        }
    }

    /// What made the slot of a run, if not the time: the log has it, the row has not.
    pub(crate) async fn source_of(
        &self,
        id: &RunId,
        run: &run::Run,
    ) -> Result<Option<Source>, Error> {
        if !matches!(run.origin, Origin::After | Origin::Event) {
            return Ok(None);
        }
        let first = self.place_before(run.queued_at).await?;
        let mut cursor = first;
        while cursor - first < LOOKED_THROUGH_MAX {
            let page = self.store().entries(cursor, PAGE_ENTRIES_MAX).await;
            let page = page.map_err(errors::store)?;
            for fields in page.iter().filter(|fields| fields.noun_id == id.as_str()) {
                if let Body::Run(_, run::Event::Queued(queued)) = stored::facts(&fields)? {
                    return Ok(queued.source().cloned());
                }
            }
            let Some(last) = page.last_seq() else { break };
            cursor = last;
        }
        Ok(None)
    }

    /// The place in the log after which every entry is of this instant or a later one.
    async fn place_before(&self, at: Timestamp) -> Result<u64, Error> {
        let store = self.store();
        let (mut low, mut high) = (0, store.head().await.map_err(errors::store)?.size());
        while low < high {
            let middle = low + (high - low) / 2;
            let page = store.entries(middle, 1).await.map_err(errors::store)?;
            match page.iter().next() {
                Some(fields) if fields.ts_us < at.as_micros() => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

/// Whether an entry may be about what has this id.
fn names(fields: &Fields<'_>, id: &str) -> bool {
    fields.noun_id == id || str::from_utf8(fields.facts).is_ok_and(|facts| facts.contains(id))
}

fn changes_run(fields: &Fields<'_>, id: &RunId) -> Result<bool, Error> {
    if !names(fields, id.as_str()) {
        return Ok(false);
    }
    let touched = touched(&stored::facts(fields)?);
    Ok(touched.iter().any(|it| it.noun == Noun::Run && it.id == id.as_str()))
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
