//! Load, decide, commit: how every change is made.
//!
//! The kernel decides on the loaded rows, and the commit names their versions. If another commit changed one of them in
//! between, the decision is made again on the new rows.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use api::{ApiRequest, Code, Error, Response};
use kernel::budget::Limits;
use kernel::device::Device;
use kernel::installation::Event as InstallationEvent;
use kernel::token::Token;
use kernel::{Actor, DeviceId, Event, EventBody, Noun, NounState, Timestamp, TokenId};
use ledger::Hash;
use metrics::Registry;
use store::{Commit, Delta, Outcome, Store, StoredResponse};

use crate::clock::{Time, whole_micros};
use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::counters::{CounterChange, counter_changes};
use crate::commit::growth::{growth_deltas, over_growth_limit};
use crate::commit::hooks::{CommitObserver, Consequences};
use crate::commit::idempotency::{IdempotencyKey, earlier_response, key_taken};
use crate::commit::row_cache::RowCache;
use crate::commit::row_locks::{RowLock, RowLocks};
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::config::Config;
use crate::damage::WriteGuard;
use crate::errors::{self, internal, invalid_token};

/// Decisions per transaction at most: the first, and one after each conflict, stale cache or wait for a lock.
const DECISIONS_MAX: usize = 32;
/// Conflicts and waits after which the transaction locks the row that it keeps losing.
const CONFLICTS_MAX: usize = 2;

/// A change to make: on whose behalf, and on which rows.
pub(crate) struct Transaction<'a> {
    /// Rows that the decision depends on. Their versions are part of the commit.
    pub rows: Vec<RowKey>,
    /// Rows that the decision reads but that may change before the commit. Their versions are checked only if they are
    /// written.
    pub reads: Vec<RowKey>,
    pub actor: &'a Actor,
    /// The token that authenticated the request. If it is revoked before the commit, nothing is committed.
    pub token: Option<&'a TokenId>,
    /// The device through which the request came. If it has ended before the commit, nothing is committed.
    pub device: Option<&'a DeviceId>,
    pub key: Option<&'a IdempotencyKey>,
    /// Do everything except the commit, and store no response.
    pub is_dry_run: bool,
    /// A request, whose entries count for the agent that made it.
    pub is_request: bool,
}

impl<'a> Transaction<'a> {
    /// A change that no request makes.
    pub(crate) fn by(actor: &'a Actor) -> Transaction<'a> {
        let (rows, reads) = (Vec::new(), Vec::new());
        let (is_dry_run, is_request) = (false, false);
        Transaction {
            rows,
            reads,
            actor,
            token: None,
            device: None,
            key: None,
            is_dry_run,
            is_request,
        }
    }

    /// A change that a request makes.
    pub(crate) fn of(caller: &'a Caller) -> Transaction<'a> {
        let Caller { actor, key, .. } = caller;
        let (token, device) = (actor.token.as_ref(), actor.device.as_deref());
        let key = key.as_ref();
        Transaction { token, device, key, is_request: true, ..Transaction::by(actor) }
    }
}

/// What was decided and committed.
#[derive(Debug)]
pub(crate) struct Committed {
    pub events: Vec<EventBody>,
    pub before: Rows,
    pub after: Rows,
}

/// Where a row may be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadFrom {
    /// The cache, even if another process may have changed the row since: good for a decision whose commit names the
    /// version.
    Cache,
    /// The cache, if no other process writes to the store.
    CacheIfExclusive,
    Store,
}

/// A commit whose outcome is unknown until it is disarmed: dropped, it invalidates the rows that it may have written.
struct InDoubt<'a> {
    cache: &'a RowCache,
    before: &'a Rows,
    after: &'a Rows,
}

impl Drop for InDoubt<'_> {
    fn drop(&mut self) {
        self.cache.invalidate(self.after.changed(self.before).map(|(key, _)| key));
    }
}

enum Executed {
    /// With the response, if one was wanted.
    Now(Option<Box<Response>>, Committed),
    /// An earlier request with the same key got this response.
    Before(Box<Response>),
}

/// Decides on rows: the events that follow.
type Decide<'a> = dyn FnMut(&Rows, Timestamp) -> Result<Vec<EventBody>, Error> + Send + 'a;
/// Makes a response from the rows before and after the events.
type Respond<'a> = dyn Fn(&Rows, &Rows) -> Result<Option<Box<Response>>, Error> + Sync + 'a;

/// Executes transactions on the store.
#[derive(Debug)]
pub(crate) struct Transactions {
    store: Arc<dyn Store>,
    time: Arc<Time>,
    config: Arc<Config>,
    write_guard: Arc<WriteGuard>,
    instance: String,
    consequences: Arc<dyn Consequences>,
    observer: Arc<dyn CommitObserver>,
    metrics: Arc<Registry>,
    pub cache: RowCache,
    locks: RowLocks,
}

/// What [`Transactions`] is built from.
#[derive(Debug)]
pub(crate) struct TransactionParts {
    pub store: Arc<dyn Store>,
    pub time: Arc<Time>,
    pub config: Arc<Config>,
    pub write_guard: Arc<WriteGuard>,
    pub instance: String,
    pub consequences: Arc<dyn Consequences>,
    pub observer: Arc<dyn CommitObserver>,
    pub metrics: Arc<Registry>,
}

impl Transactions {
    pub(crate) fn new(parts: TransactionParts) -> Transactions {
        let TransactionParts { store, time, config, write_guard, instance, .. } = parts;
        let TransactionParts { consequences, observer, metrics, .. } = parts;
        let (cache, locks) = (RowCache::default(), RowLocks::default());
        Transactions {
            store,
            time,
            config,
            write_guard,
            instance,
            consequences,
            observer,
            metrics,
            cache,
            locks,
        }
    }

    /// The response that an earlier request with this key got.
    async fn earlier_response(
        &self,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<Response>, Error> {
        let Some(key) = key else { return Ok(None) };
        match self.store.response(&key.name).await.map_err(errors::store)? {
            None => Ok(None),
            Some(stored) if stored.request_hash != key.request_hash => Err(key_taken()),
            Some(stored) => earlier_response(&stored.body).map(Some),
        }
    }

    /// Executes a request that changes something. `decide` returns the events, `respond` makes the response from the rows
    /// before and after them.
    pub(crate) async fn respond<R: ApiRequest>(
        &self,
        caller: &Caller,
        transaction: Transaction<'_>,
        mut decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<EventBody>, Error> + Send,
        respond: impl Fn(&Rows, &Rows) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let respond = |before: &Rows, after: &Rows| {
            respond(before, after).map(|response| Some(Box::new(R::into_response(response))))
        };
        let response = match self.execute(transaction, &mut decide, &respond).await? {
            Executed::Now(response, _) => response,
            Executed::Before(response) => {
                caller.set_replayed();
                Some(response)
            }
        };
        let response = response.and_then(|response| R::from_response(*response));
        response.ok_or_else(|| internal("the response is of another request"))
    }

    /// Executes a request that changes one object. `decide` returns the event, if any; `respond` makes the response from
    /// the object before and after it.
    pub(crate) async fn change<R: ApiRequest, T: NounState>(
        &self,
        caller: &Caller,
        id: &T::Id,
        mut decide: impl FnMut(Option<&T>, Timestamp) -> Result<Option<EventBody>, Error> + Send,
        respond: impl Fn(Option<&T>, Option<&T>) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let transaction = Transaction { rows: vec![row_key::<T>(id)], ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| Ok(decide(rows.get(id), now)?.into_iter().collect());
        let respond = |before: &Rows, after: &Rows| respond(before.get(id), after.get(id));
        self.respond::<R>(caller, transaction, decide, respond).await
    }

    /// Commits what Midwatch decides by itself. `None` if there was nothing to do.
    pub(crate) async fn commit_own(
        &self,
        rows: Vec<RowKey>,
        reads: Vec<RowKey>,
        decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<EventBody>, Error> + Send,
    ) -> Result<Option<Committed>, Error> {
        let system = Actor::system();
        let transaction = Transaction { rows, reads, ..Transaction::by(&system) };
        let committed = self.commit(transaction, decide).await?;
        Ok(Some(committed).filter(|committed| !committed.events.is_empty()))
    }

    /// Commits a decision that needs no response.
    pub(crate) async fn commit(
        &self,
        transaction: Transaction<'_>,
        mut decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<EventBody>, Error> + Send,
    ) -> Result<Committed, Error> {
        match self.execute(transaction, &mut decide, &|_, _| Ok(None)).await? {
            Executed::Now(_, committed) => Ok(committed),
            Executed::Before(_) => Err(internal("the store replied to another request")),
        }
    }

    /// Loads, decides and commits, until there is no conflict. Not generic, because every request uses it.
    async fn execute(
        &self,
        transaction: Transaction<'_>,
        decide: &mut Decide<'_>,
        respond: &Respond<'_>,
    ) -> Result<Executed, Error> {
        let Transaction { mut rows, reads, actor, token, device, key, is_dry_run, is_request } =
            transaction;
        let growth_of = match is_request {
            true => self.growth_of(actor).await?,
            false => None,
        };
        rows.extend(token.map(row_key::<Token>));
        rows.extend(device.map(row_key::<Device>));
        let key = key.filter(|_| !is_dry_run);
        let cause = key.map_or_else(String::new, |key| format!("key:{}", key.name));
        // A dry run has no commit that would detect a stale row.
        let mut may_use_cache = !is_dry_run;
        let (mut conflicts, mut lock) = (0, None);
        let _pinned = self.config.pin().await;
        let config = self.config.active();
        for _ in 0..DECISIONS_MAX {
            let (rows_from, reads_from) = match may_use_cache {
                true => (ReadFrom::Cache, ReadFrom::CacheIfExclusive),
                false => (ReadFrom::Store, ReadFrom::Store),
            };
            let mut before = self.load_from(rows_from, &rows).await?;
            before.extend(self.load_from(reads_from, &reads).await?);
            may_use_cache = false;
            let may_be_stale = rows_from == ReadFrom::Cache && self.store.is_shared();
            let now = match expires(rows.iter().chain(&reads)) {
                true => self.time.monotonic_now().latest,
                false => self.time.now(),
            };
            let decided = check_token(token, &before)
                .and_then(|()| check_device(device, &before, now))
                .and_then(|()| decide(&before, now));
            let mut events = match decided {
                // Only a write would show that a cached row is stale.
                Ok(events) if events.is_empty() && may_be_stale => continue,
                Err(_) if may_be_stale => continue,
                Ok(events) => events,
                // A caller without the role or a valid token gets no stored response.
                Err(refusal) if is_about_caller(refusal.code) => return Err(refusal),
                // The refusal may be a consequence of the first request with this key.
                Err(refusal) => {
                    let earlier = self.earlier_response(key).await?;
                    return earlier.map(|it| Executed::Before(Box::new(it))).ok_or(refusal);
                }
            };
            let following = match self.consequences.of(self, &mut before, &events, now) {
                Some(following) => following.await?,
                None => Vec::new(),
            };
            events.extend(following);
            let before = self.load_missing(before, &events).await?;
            let after = before.after(&events);
            let response = respond(&before, &after)?;
            let stored_response = match (key, &response) {
                (Some(key), Some(response)) => Some(key.stored_response(response, now)?),
                _ => None,
            };
            if events.is_empty() && stored_response.is_none() {
                return Ok(Executed::Now(response, Committed { events, before, after }));
            }
            let event = |body| Event { at: now, actor, cause: &cause, body };
            let limits = &config.limits;
            let mut commit = commit_of(events.iter_mut().map(event), &before, &after, limits)?;
            if let Some(who) = &growth_of {
                commit.deltas.extend(growth_deltas(who, &commit.drafts, limits, now));
            }
            if is_dry_run {
                self.check_limits(&commit.deltas).await?;
                let nothing = Committed { events: Vec::new(), after: before.clone(), before };
                return Ok(Executed::Now(response, nothing));
            }
            if lock.is_none() {
                let changed = after.changed(&before).map(|(key, _)| key);
                if let Some(row) = self.locks.wait_for(changed).await {
                    // Who only waits may find the row locked again each time; who asks for the lock gets a turn.
                    conflicts += 1;
                    if CONFLICTS_MAX <= conflicts {
                        lock = Some(self.locks.lock(row).await);
                    }
                    continue;
                }
            }
            commit.expects = before.unchanged(&after, &rows);
            let generation = self.cache.generation();
            let in_doubt = InDoubt { cache: &self.cache, before: &before, after: &after };
            let outcome = self.append(Commit { response: stored_response, ..commit }).await?;
            mem::forget(in_doubt);
            match outcome {
                Outcome::Committed(_) => {
                    for (key, row) in after.changed(&before) {
                        self.cache.keep_written(generation, key, row);
                    }
                    let committed = Committed { events, before, after };
                    self.observer.committed(&committed);
                    return Ok(Executed::Now(response, committed));
                }
                Outcome::Conflict { noun, id } => {
                    conflicts += 1;
                    let has_lock =
                        lock.as_ref().is_some_and(|lock: &RowLock<'_>| lock.is_on(noun, &id));
                    let writes_it = after.is_changed(&before, noun, &id);
                    if CONFLICTS_MAX <= conflicts && writes_it && !has_lock {
                        drop(lock.take());
                        lock = Some(self.locks.lock((noun, id)).await);
                    }
                }
                Outcome::OverLimit { counter } => return Err(over_limit(&counter)),
                Outcome::Replayed(body) => {
                    return Ok(Executed::Before(Box::new(earlier_response(&body)?)));
                }
                Outcome::KeyTaken => return Err(key_taken()),
                Outcome::StaleDerived { .. } => {
                    return Err(internal("the store replied to another request"));
                }
            }
        }
        Err(too_busy())
    }

    /// Writes to the store, unless the ledger is damaged.
    pub(crate) async fn append(&self, commit: Commit) -> Result<Outcome, Error> {
        self.write_guard.check()?;
        let started = self.time.steady();
        let outcome = self.store.commit(commit).await;
        let took = self.time.steady().zip(started).map(|(end, start)| end.saturating_sub(start));
        if let (Ok(Outcome::Committed(_)), Some(took)) = (&outcome, took) {
            self.metrics.store_commit.observe(&[self.store.engine()], whole_micros(took));
        }
        self.write_guard.note_write(outcome.as_ref().map(drop));
        outcome.map_err(errors::store)
    }

    /// Records an event about the installation.
    pub(crate) async fn record(&self, event: InstallationEvent) -> Result<(), Error> {
        self.record_as(&Actor::system(), event).await
    }

    /// Records an event about the installation that an actor caused.
    pub(crate) async fn record_as(
        &self,
        actor: &Actor,
        event: InstallationEvent,
    ) -> Result<(), Error> {
        let body = &mut EventBody::Installation(self.instance.clone(), event);
        let event = Event { at: self.time.now(), actor, cause: "", body };
        let drafts = vec![codec::draft_entry(event)?];
        self.append(Commit { drafts, ..Commit::default() }).await.map(drop)
    }

    /// Records an event about the installation, unless one was recorded under the same key. Keys are dropped like stored
    /// responses.
    pub(crate) async fn record_once(
        &self,
        key: &str,
        event: InstallationEvent,
    ) -> Result<(), Error> {
        let at = self.time.now();
        let body = &mut EventBody::Installation(self.instance.clone(), event);
        let event = Event { at, actor: &Actor::system(), cause: "", body };
        let drafts = vec![codec::draft_entry(event)?];
        // No caller has this name, so the key is none of a request.
        let response = StoredResponse {
            key: format!("@once/{key}"),
            request_hash: Hash::ZERO,
            body: Vec::new(),
            at_us: at.as_micros(),
        };
        self.append(Commit { drafts, response: Some(response), ..Commit::default() })
            .await
            .map(drop)
    }

    /// Rows as they are now.
    pub(crate) async fn load(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_from(ReadFrom::CacheIfExclusive, keys).await
    }

    /// Rows as this process saw them last. Another process may have changed them since: good for a hint.
    pub(crate) async fn load_cached(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_from(ReadFrom::Cache, keys).await
    }

    /// Rows as the store has them, past the cache.
    pub(crate) async fn load_stored(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_from(ReadFrom::Store, keys).await
    }

    async fn load_from(&self, from: ReadFrom, keys: &[RowKey]) -> Result<Rows, Error> {
        let may_use_cache = match from {
            ReadFrom::Cache => true,
            ReadFrom::CacheIfExclusive => !self.store.is_shared(),
            ReadFrom::Store => false,
        };
        let generation = self.cache.generation();
        let mut rows = Rows::default();
        let mut missing: BTreeMap<Noun, Vec<&str>> = BTreeMap::new();
        for key in keys {
            match self.cache.get(key).filter(|_| may_use_cache) {
                Some(row) => rows.insert(key.clone(), row),
                None => missing.entry(key.0).or_default().push(&key.1),
            }
        }
        for (noun, ids) in missing {
            let found = match ids.as_slice() {
                [id] => vec![self.store.load(noun.name(), id).await.map_err(errors::store)?],
                ids => self.store.load_all(noun.name(), ids).await.map_err(errors::store)?,
            };
            for (id, row) in ids.into_iter().zip(found) {
                let (key, row) = ((noun, id.to_owned()), Arc::new(codec::decode_row(noun, row)?));
                self.cache.keep_read(generation, &key, &row);
                rows.insert(key, row);
            }
        }
        Ok(rows)
    }

    /// Refuses what the store would refuse when these are committed.
    async fn check_limits(&self, deltas: &[Delta]) -> Result<(), Error> {
        self.write_guard.check()?;
        let mut values: BTreeMap<&str, i64> = BTreeMap::new();
        for Delta { counter, add, max } in deltas {
            let before = match values.get(&**counter) {
                Some(value) => *value,
                None => self.store.counter(counter).await.map_err(errors::store)?,
            };
            if *max < before + add {
                return Err(over_limit(counter));
            }
            values.insert(counter, before + add);
        }
        Ok(())
    }

    /// Adds the rows that the events change and that were not loaded yet.
    async fn load_missing(&self, mut rows: Rows, events: &[EventBody]) -> Result<Rows, Error> {
        rows.extend(self.load_from(ReadFrom::Store, &rows.missing(events)).await?);
        Ok(rows)
    }
}

/// Whether a decision is about something that expires: an approval, the lease, or the daily budget of a run that starts. A
/// clock that is set back must not give it more time.
fn expires<'a>(mut keys: impl Iterator<Item = &'a RowKey>) -> bool {
    keys.any(|(noun, _)| matches!(noun, Noun::Approval | Noun::Authority))
}

fn commit_of<'a>(
    events: impl Iterator<Item = Event<'a>>,
    before: &Rows,
    after: &Rows,
    limits: &Limits,
) -> Result<Commit, Error> {
    let (mut drafts, mut deltas) = (Vec::new(), Vec::new());
    for event in events {
        deltas.extend(counter_changes(event.body, after, limits).into_iter().map(|it| {
            let CounterChange { counter, add, max } = it;
            Delta { counter: counter.name(), add, max }
        }));
        drafts.push(codec::draft_entry(event)?);
    }
    Ok(Commit { drafts, writes: before.writes(after)?, deltas, ..Commit::default() })
}

/// Fails if the token that authenticated the request has been revoked since.
fn check_token(token: Option<&TokenId>, rows: &Rows) -> Result<(), Error> {
    let Some(id) = token else { return Ok(()) };
    let is_valid = rows.get::<Token>(id).is_some_and(|token| token.revoked.is_none());
    if is_valid { Ok(()) } else { Err(invalid_token()) }
}

/// Fails if the device through which the request came has ended since.
fn check_device(device: Option<&DeviceId>, rows: &Rows, now: Timestamp) -> Result<(), Error> {
    let Some(id) = device else { return Ok(()) };
    let is_valid = rows.get::<Device>(id).is_some_and(|device| device.is_valid(now));
    if is_valid { Ok(()) } else { Err(invalid_token()) }
}

fn is_about_caller(code: Code) -> bool {
    matches!(code, Code::RoleTooLow | Code::TokenInvalid)
}

fn too_busy() -> Error {
    Error::new(Code::Busy, "too many changes to the same object at once, nothing was changed")
        .hint("try again")
}

/// `counter` has a colon if it counts for an agent, a schedule or a day.
fn over_limit(counter: &str) -> Error {
    if let Some(refusal) = over_growth_limit(counter) {
        return refusal;
    }
    let (what, hint) = match counter.contains(':') {
        false => (format!("the limit on {counter} is"), format!("remove some {counter} first")),
        true => ("a limit of the day is".into(), "`midwatch status --budgets` shows it".into()),
    };
    Error::new(Code::LimitReached, format!("{what} reached, nothing was changed")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_in_doubt_invalidates_the_rows_it_would_have_written() {
        let cache = RowCache::default();
        let rows = |version, names: &[&str]| {
            let mut rows = Rows::default();
            for name in names {
                let row = kernel::Row { version, state: None };
                rows.insert((Noun::Agent, (*name).to_owned()), Arc::new(row));
            }
            rows
        };
        let (before, mut after) = (rows(1, &["ada", "eve"]), rows(1, &["eve"]));
        after.extend(rows(2, &["ada"]));
        for (key, row) in before.changed(&Rows::default()) {
            cache.keep_written(cache.generation(), key, row);
        }
        let generation = cache.generation();
        drop(InDoubt { cache: &cache, before: &before, after: &after });
        let [ada, eve] = ["ada", "eve"].map(|name| (Noun::Agent, name.to_owned()));
        assert_eq!(cache.get(&ada), None);
        assert_eq!(cache.get(&eve).map(|row| row.version), Some(1), "only read");
        cache.keep_read(generation, &ada, &Arc::new(kernel::Row { version: 1, state: None }));
        assert_eq!(cache.get(&ada), None, "read before the commit");
    }
}
