//! Reading the ledger: the feed for callers that follow it, and the entries of one run.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use api::{
    Changes, Code, Error, Event, Events, LIST_BYTES_MAX, LedgerTail, RunAttempt, RunEventList,
    RunEvents, WaitForChanges,
};
use kernel::run::{Origin, Run};
use kernel::slot::Source;
use kernel::{EventBody, Noun, RunId, Timestamp, run};
use ledger::EntryRef;
use store::{PAGE_ENTRIES_MAX, Page, Store};
use tokio::time::{Instant, timeout, timeout_at};

use crate::commit::codec;
use crate::commit::ids::{run_id, schedule_id};
use crate::commit::transaction::Transactions;
use crate::errors::{self, internal};
use crate::ledger::attempts;
use crate::pages::page_size;
use crate::timestamps::rfc3339;

/// The longest time that one request waits for changes.
pub(crate) const WAIT_MS_MAX: u32 = 25_000;
/// Ids that one request can watch for changes.
const ABOUT_MAX: usize = 64;
/// Entries that are searched for those of one run.
const ENTRIES_SEARCHED_MAX: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Feed {
    /// The id of the installation whose ledger it is.
    pub(crate) instance: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transactions: Arc<Transactions>,
}

impl Feed {
    pub(crate) async fn tail(&self, request: LedgerTail) -> Result<Events, Error> {
        let LedgerTail { after, limit, wait_ms, kind, schedule, run, log } = request;
        let (log, instance) = (log.as_deref(), self.instance.clone());
        if log.is_some_and(|log| log != self.instance) {
            let what = "the position belongs to the ledger of another installation";
            return Err(Error::new(Code::OtherLedger, what).hint("start anew, without `after`"));
        }
        if let Some(filter) = EventFilter::parse(kind, schedule, run)? {
            return self.filtered(filter, after, page_size(limit)?, wait_ms).await;
        }
        let (page, after) = self.page(after, page_size(limit)?, wait_ms).await?;
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
        Ok(Events { events, cursor, log: instance })
    }

    /// The entries after a position that pass a filter. Waits if none does. The cursor is behind the last entry that was
    /// looked at.
    async fn filtered(
        &self,
        filter: EventFilter,
        after: Option<u64>,
        limit: usize,
        wait_ms: u32,
    ) -> Result<Events, Error> {
        let store = &*self.store;
        let until = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX).into());
        let size = store.head().await.map_err(errors::store)?.size();
        let first = after.unwrap_or(size.saturating_sub(limit as u64));
        let (mut cursor, mut events, mut bytes) = (first, Vec::new(), 0);
        'search: loop {
            let page = store.entries(cursor, PAGE_ENTRIES_MAX).await.map_err(errors::store)?;
            for fields in page.iter() {
                cursor = fields.seq;
                if self.passes(&filter, &fields).await? {
                    events.push(wire(&fields)?);
                    bytes += fields.facts.len() + fields.private.content_bytes();
                }
                let is_full = limit <= events.len() || LIST_BYTES_MAX <= bytes;
                if is_full || ENTRIES_SEARCHED_MAX <= cursor - first {
                    break 'search;
                }
            }
            let is_at_end = page.is_empty();
            // A closed store does not grow, and its wait returns at once.
            if is_at_end
                && (!events.is_empty()
                    || timeout_at(until, store.wait_for_entries_after(cursor)).await.is_err()
                    || store.head().await.map_err(errors::store)?.size() <= cursor)
            {
                break;
            }
        }
        Ok(Events { events, cursor, log: self.instance.clone() })
    }

    async fn passes(&self, filter: &EventFilter, fields: &EntryRef<'_>) -> Result<bool, Error> {
        let EventFilter { kind, schedule, run } = filter;
        if !kind.as_ref().is_none_or(|kind| kind.matches(fields.kind)) {
            return Ok(false);
        }
        if !run.as_ref().is_none_or(|run| mentions(fields, run)) {
            return Ok(false);
        }
        let Some(schedule) = schedule.as_ref().filter(|id| !mentions(fields, id)) else {
            return Ok(true);
        };
        // Most entries about a run do not name its schedule.
        let Ok(id) = fields.noun_id.parse::<RunId>() else { return Ok(false) };
        let rows = self.transactions.load(&[(Noun::Run, id.to_string())]).await?;
        Ok(rows.get::<Run>(&id).is_some_and(|run| run.schedule.as_str() == schedule))
    }

    /// The entries after a position, or the last ones, and the position. Waits for one if none follows it.
    pub(crate) async fn page(
        &self,
        after: Option<u64>,
        limit: usize,
        wait_ms: u32,
    ) -> Result<(Page, u64), Error> {
        let store = &*self.store;
        let size = store.head().await.map_err(errors::store)?.size();
        let after = after.unwrap_or(size.saturating_sub(limit as u64));
        if size <= after && 0 < wait_ms {
            let wait = Duration::from_millis(wait_ms.min(WAIT_MS_MAX).into());
            // After a timeout the page is empty.
            let _ = timeout(wait, store.wait_for_entries_after(after)).await;
        }
        Ok((store.entries(after, limit).await.map_err(errors::store)?, after))
    }

    pub(crate) async fn wait_for_changes(&self, request: WaitForChanges) -> Result<Changes, Error> {
        if ABOUT_MAX < request.about.len() {
            let what = format!("at most {ABOUT_MAX} ids can be watched at once");
            return Err(Error::new(Code::InvalidInput, what));
        }
        let store = &*self.store;
        let size = store.head().await.map_err(errors::store)?.size();
        let after = request.after.unwrap_or(size);
        // A restored ledger may be shorter.
        let mut cursor = after.min(size);
        let until = Instant::now() + Duration::from_millis(request.wait_ms.min(WAIT_MS_MAX).into());
        let mut has_waited = false;
        loop {
            let page = store.entries(cursor, PAGE_ENTRIES_MAX).await.map_err(errors::store)?;
            cursor = page.last_seq().unwrap_or(cursor);
            let is_mentioned = |id: &&String| page.iter().any(|fields| mentions(&fields, id));
            let about: Vec<String> = request.about.iter().filter(is_mentioned).cloned().collect();
            let has_changes = (request.any && !page.is_empty()) || !about.is_empty();
            // A closed store does not grow.
            let is_done = has_changes || (has_waited && page.is_empty());
            if is_done || timeout_at(until, store.wait_for_entries_after(cursor)).await.is_err() {
                return Ok(Changes { about, cursor });
            }
            has_waited = true;
        }
    }

    /// The entries that changed a run.
    pub(crate) async fn run_events(&self, request: RunEvents) -> Result<RunEventList, Error> {
        let id = run_id(&request.id)?;
        let (mut events, mut bytes) = (Vec::new(), 0);
        let more_after = self.each_entry_of(&id, |fields| {
            events.push(wire(fields)?);
            bytes += fields.facts.len() + fields.private.content_bytes();
            Ok(match LIST_BYTES_MAX <= bytes {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        });
        let more_after = more_after.await?;
        Ok(RunEventList { run_id: id.to_string(), events, more_after })
    }

    /// Visits the entries that changed a run. Its row counts them, so the search ends when all are found. Returns the
    /// last entry that was searched, if the search ended before that.
    async fn each_entry_of(
        &self,
        id: &RunId,
        mut visit: impl FnMut(&EntryRef<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<Option<u64>, Error> {
        let rows = self.transactions.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::refused(run::Refusal::Unknown(id.clone()));
        let queued_at = rows.get::<Run>(id).ok_or_else(unknown)?.queued_at;
        let count = rows.row(Noun::Run, id.as_str()).map_or(0, |row| row.version);
        let first = self.position_before(queued_at).await?;
        let (mut cursor, mut found) = (first, 0);
        loop {
            let page = self.store.entries(cursor, PAGE_ENTRIES_MAX).await;
            let page = page.map_err(errors::store)?;
            for fields in page.iter() {
                cursor = fields.seq;
                let mut is_full = false;
                if changes_run(&fields, id)? {
                    found += 1;
                    is_full = visit(&fields)?.is_break();
                }
                if count <= found {
                    return Ok(None);
                }
                if is_full || ENTRIES_SEARCHED_MAX <= cursor - first {
                    return Ok(Some(cursor));
                }
            }
            if page.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The attempts of a run, oldest first, as far as the search for its events gets.
    pub(crate) async fn attempts_of(&self, id: &RunId) -> Result<Vec<RunAttempt>, Error> {
        let mut found = Vec::new();
        let searched = self.each_entry_of(id, |fields| {
            if let EventBody::Run(_, event) = codec::decode_event(fields)? {
                attempts::record(&mut found, &event);
            }
            Ok(ControlFlow::Continue(()))
        });
        searched.await?;
        Ok(found)
    }

    /// The run or event that fired the schedule of a run, which only the ledger has. `None` for runs of another origin.
    pub(crate) async fn source_of(
        &self,
        id: &RunId,
        run: &run::Run,
    ) -> Result<Option<Source>, Error> {
        if !matches!(run.origin, Origin::After | Origin::Event) {
            return Ok(None);
        }
        let first = self.position_before(run.queued_at).await?;
        let mut cursor = first;
        while cursor - first < ENTRIES_SEARCHED_MAX {
            let page = self.store.entries(cursor, PAGE_ENTRIES_MAX).await;
            let page = page.map_err(errors::store)?;
            for fields in page.iter().filter(|fields| fields.noun_id == id.as_str()) {
                if let EventBody::Run(_, run::Event::Queued(queued)) = codec::decode_facts(&fields)?
                {
                    return Ok(queued.source().cloned());
                }
            }
            let Some(last) = page.last_seq() else { break };
            cursor = last;
        }
        Ok(None)
    }

    /// How many entries were recorded before an instant. Times in the ledger never decrease.
    pub(crate) async fn position_before(&self, at: Timestamp) -> Result<u64, Error> {
        let store = &*self.store;
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

/// Which entries a reader wants.
struct EventFilter {
    kind: Option<KindPattern>,
    /// The id of a schedule.
    schedule: Option<String>,
    /// The id of a run.
    run: Option<String>,
}

impl EventFilter {
    /// `None` if every entry is wanted.
    fn parse(
        kind: Option<String>,
        schedule: Option<String>,
        run: Option<String>,
    ) -> Result<Option<EventFilter>, Error> {
        let filter = EventFilter {
            kind: kind.map(KindPattern::parse).transpose()?,
            schedule: schedule
                .map(|id| Ok::<_, Error>(schedule_id(&id)?.to_string()))
                .transpose()?,
            run: run.map(|id| Ok::<_, Error>(run_id(&id)?.to_string())).transpose()?,
        };
        let EventFilter { kind, schedule, run } = &filter;
        Ok((kind.is_some() || schedule.is_some() || run.is_some()).then_some(filter))
    }
}

/// A kind of entries, or the start of several with `*`.
#[derive(Debug, PartialEq)]
enum KindPattern {
    Exact(String),
    Prefix(String),
}

impl KindPattern {
    fn parse(text: String) -> Result<KindPattern, Error> {
        let prefix = text.strip_suffix('*').map(str::to_owned);
        let pattern = prefix.map_or_else(|| KindPattern::Exact(text), KindPattern::Prefix);
        let (KindPattern::Exact(rest) | KindPattern::Prefix(rest)) = &pattern;
        match rest.chars().all(|c| c.is_ascii_lowercase() || c == '.' || c == '_') {
            true => Ok(pattern),
            false => Err(Error::new(Code::InvalidInput, "this is no kind of events")
                .hint("write it as `run.started`, or `run.*` for all that begin so")),
        }
    }

    fn matches(&self, kind: &str) -> bool {
        match self {
            KindPattern::Exact(exact) => kind == exact,
            KindPattern::Prefix(prefix) => kind.starts_with(prefix),
        }
    }
}

/// Whether an entry contains an id, and so may be about it.
fn mentions(fields: &EntryRef<'_>, id: &str) -> bool {
    fields.noun_id == id || str::from_utf8(fields.facts).is_ok_and(|facts| facts.contains(id))
}

fn changes_run(fields: &EntryRef<'_>, id: &RunId) -> Result<bool, Error> {
    if !mentions(fields, id.as_str()) {
        return Ok(false);
    }
    let changed = codec::decode_facts(fields)?.changed_rows();
    Ok(changed.iter().any(|it| it.noun == Noun::Run && it.id == id.as_str()))
}

fn wire(fields: &EntryRef<'_>) -> Result<Event, Error> {
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
        private_fields: codec::decode_private_fields(fields).map_err(internal)?,
        hash: fields.hash.to_string(),
    })
}
