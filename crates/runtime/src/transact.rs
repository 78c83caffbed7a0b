//! Load, decide, commit: the way of every change.
//!
//! The kernel decides on what was loaded; the commit names the version it was decided on. When
//! somebody else was faster, the whole is done again on what they left.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use api::{Answer, Call, Code, Error, Request, ScheduleEdit};
use kernel::budget::Limits;
use kernel::tables::{deltas, guards, test_guards};
use kernel::{Actor, Body, Counter, Event, Noun, Timestamp, agent};
use ledger::Hash;
use sha2::{Digest, Sha256};
use store::{Commit, Delta, Outcome};

use crate::errors::{self, internal};
use crate::remembered::Remembered;
use crate::rows::{RowKey, Rows};
use crate::sealing::Sealing;
use crate::stored;
use crate::turns::Turn;
use crate::watch::Engine;

/// How often a change is decided anew because others were faster.
const DECISIONS_MAX: usize = 32;
/// How often others may be faster before they have to wait for one's turn.
const OVERTAKEN_MAX: usize = 2;

const KEY_BYTES_MAX: usize = 128;

/// A change, as somebody asked for it.
pub(crate) struct Change<'a> {
    /// What it depends on, and may change: all of it must still be so when it is committed.
    pub rows: Vec<RowKey>,
    /// What it only looks at, whatever becomes of it meanwhile: its version is named only if it is written.
    pub reads: Vec<RowKey>,
    pub actor: &'a Actor,
    pub key: Option<Key>,
    /// Everything but the commit; no answer is kept.
    pub is_dry_run: bool,
}

impl<'a> Change<'a> {
    /// Nothing yet.
    pub(crate) fn by(actor: &'a Actor, key: Option<Key>) -> Change<'a> {
        Change { rows: Vec::new(), reads: Vec::new(), actor, key, is_dry_run: false }
    }
}

/// What was decided and committed.
#[derive(Debug)]
pub(crate) struct Done {
    pub bodies: Vec<Body>,
    pub after: Rows,
}

/// What a row may be taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// What this process remembers, though another may have changed it since: good for a decision
    /// whose commit names the version.
    Remembered,
    /// What this process remembers, where no other writes.
    Known,
    /// Nothing but the store.
    Stored,
}

/// A commit that may have been made, whether its answer is lost or nobody waits for it any more: what it
/// writes is forgotten.
struct InDoubt<'a> {
    remembered: &'a Remembered,
    before: &'a Rows,
    after: &'a Rows,
}

impl Drop for InDoubt<'_> {
    fn drop(&mut self) {
        self.remembered.forget(self.after.changed(self.before).map(|(key, _)| key));
    }
}

/// What came of a change.
enum CarriedOut<T> {
    Now(T, Done),
    /// An earlier call with the same key got this answer.
    Before(Box<Answer>),
}

/// An idempotency key, bound to who used it and for what.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// As the store knows it: the actor's own.
    name: String,
    request_hash: Hash,
}

impl Key {
    /// As the store knows it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn of(call: &Call, actor: &Actor, sealing: &Sealing) -> Result<Option<Key>, Error> {
        let Some(key) = &call.key else { return Ok(None) };
        if key.is_empty() || KEY_BYTES_MAX < key.len() || !key.chars().all(|c| c.is_ascii_graphic())
        {
            let what = "an idempotency key is 1 to 128 printable characters without blanks";
            return Err(Error::new(Code::InvalidInput, what));
        }
        let name = format!("{}/{key}", actor.name);
        Ok(Some(Key { name, request_hash: request_hash(&call.request, sealing)? }))
    }
}

/// Of the request as this version of the program writes it; its fields have one order. Sensitive words are
/// not to be guessed by their hash, so that takes a key.
fn request_hash(request: &Request, sealing: &Sealing) -> Result<Hash, Error> {
    let bytes = serde_json::to_vec(request).map_err(internal)?;
    Ok(Hash::from_bytes(match may_be_sensitive(request) {
        true => sealing.fingerprint(&bytes)?,
        false => Sha256::digest(&bytes).into(),
    }))
}

/// An edit does not say whether its schedule is.
fn may_be_sensitive(request: &Request) -> bool {
    match request {
        Request::ScheduleAdd(asked) => asked.sensitive,
        Request::ScheduleAddAll(asked) => asked.schedules.iter().any(|it| it.sensitive),
        Request::ScheduleEdit(ScheduleEdit { action, .. }) => {
            action.prompt.is_some() || action.payload.is_some()
        }
        _ => false,
    }
}

impl Engine {
    /// The answer that an earlier call with this key got.
    pub(crate) async fn answered(&self, key: Option<&Key>) -> Result<Option<Answer>, Error> {
        let Some(key) = key else { return Ok(None) };
        match self.store().answer(&key.name).await.map_err(errors::store)? {
            None => Ok(None),
            Some(answer) if answer.request_hash != key.request_hash => Err(key_taken()),
            Some(answer) => stored_answer(&answer.body).map(Some),
        }
    }

    /// Carries out a change that somebody asked for. `decide` says what happens, or nothing; `answer`
    /// tells of the rows before and after.
    pub(crate) async fn transact(
        &self,
        change: Change<'_>,
        decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<Body>, Error>,
        answer: impl Fn(&Rows, &Rows) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        match self.carry_out(change, decide, answer, kept).await? {
            CarriedOut::Now(answer, _) => Ok(answer),
            CarriedOut::Before(answer) => Ok(*answer),
        }
    }

    /// Carries out what the watch itself decides. `None` when there is nothing to do.
    pub(crate) async fn act(
        &self,
        rows: Vec<RowKey>,
        reads: Vec<RowKey>,
        decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<Body>, Error>,
    ) -> Result<Option<Done>, Error> {
        let system = Actor::system();
        let change = Change { rows, reads, ..Change::by(&system, None) };
        let done = self.act_for(change, decide).await?;
        Ok(Some(done).filter(|done| !done.bodies.is_empty()))
    }

    /// Carries out what somebody led to, without an answer that is kept.
    pub(crate) async fn act_for(
        &self,
        change: Change<'_>,
        decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<Body>, Error>,
    ) -> Result<Done, Error> {
        match self.carry_out(change, decide, |_, _| Ok(()), |_, (), _| Ok(None)).await? {
            CarriedOut::Now((), done) => Ok(done),
            CarriedOut::Before(_) => Err(internal("the store answered out of turn")),
        }
    }

    /// Load, decide, commit, until nobody was faster.
    async fn carry_out<T>(
        &self,
        change: Change<'_>,
        mut decide: impl FnMut(&Rows, Timestamp) -> Result<Vec<Body>, Error>,
        tell: impl Fn(&Rows, &Rows) -> Result<T, Error>,
        keep: impl Fn(Option<&Key>, &T, Timestamp) -> Result<Option<store::Answer>, Error>,
    ) -> Result<CarriedOut<T>, Error> {
        let Change { rows, reads, actor, key, is_dry_run } = change;
        let key = key.as_ref().filter(|_| !is_dry_run);
        let cause = key.map_or_else(String::new, |key| format!("key:{}", key.name));
        // No commit would show that what is remembered is out of date.
        let mut may_remember = !is_dry_run;
        let (mut overtaken, mut turn) = (0, None);
        let _unchanged = self.steady().await;
        let in_force = self.in_force();
        for _ in 0..DECISIONS_MAX {
            let (trust, trust_reads) = match may_remember {
                true => (Trust::Remembered, Trust::Known),
                false => (Trust::Stored, Trust::Stored),
            };
            let mut before = self.load_with(trust, &rows).await?;
            before.extend(self.load_with(trust_reads, &reads).await?);
            may_remember = false;
            let is_unsure = trust == Trust::Remembered && self.store().is_shared();
            let now = match runs_out(rows.iter().chain(&reads)) {
                true => self.by_log().latest,
                false => self.now(),
            };
            let mut bodies = match decide(&before, now) {
                // What is remembered may be out of date, and only a write would show it.
                Ok(bodies) if bodies.is_empty() && is_unsure => continue,
                Err(_) if is_unsure => continue,
                Ok(bodies) => bodies,
                // Whoever may not ask gets nobody's answer, of whatever name they are.
                Err(refusal) if refusal.code == Code::RoleTooLow => return Err(refusal),
                // The first call with this key may be what the second is refused for.
                Err(refusal) => {
                    let earlier = self.answered(key).await?;
                    return earlier.map(|it| CarriedOut::Before(Box::new(it))).ok_or(refusal);
                }
            };
            bodies.extend(self.followers_of(&mut before, &bodies, now).await?);
            let before = self.with_missing(before, &bodies).await?;
            let after = before.after(&bodies);
            let told = tell(&before, &after)?;
            let answer = keep(key, &told, now)?;
            if bodies.is_empty() && answer.is_none() {
                return Ok(CarriedOut::Now(told, Done { bodies, after }));
            }
            let event = |body| Event { at: now, actor, cause: &cause, body };
            let limits = &in_force.limits;
            let mut commit = commit_of(bodies.iter_mut().map(event), &before, &after, limits)?;
            if is_dry_run {
                self.check_limits(&commit.deltas).await?;
                return Ok(CarriedOut::Now(told, Done { bodies: Vec::new(), after: before }));
            }
            if turn.is_none() && self.turns().pass(after.changed(&before).map(|(key, _)| key)).await
            {
                continue;
            }
            commit.expects = before.unchanged(&after, &rows);
            let written_since = self.remembered().mark();
            let in_doubt =
                InDoubt { remembered: self.remembered(), before: &before, after: &after };
            let committed = self.commit(Commit { answer, ..commit }).await?;
            mem::forget(in_doubt);
            match committed {
                Outcome::Committed(_) => {
                    for (key, row) in after.changed(&before) {
                        self.remembered().keep_written(written_since, key, row);
                    }
                    let done = Done { bodies, after };
                    self.noticed(&done);
                    return Ok(CarriedOut::Now(told, done));
                }
                Outcome::Conflict { noun, id } => {
                    overtaken += 1;
                    let has_it = turn.as_ref().is_some_and(|turn: &Turn<'_>| turn.is_at(noun, &id));
                    let writes_it = after.is_changed(&before, noun, &id);
                    if OVERTAKEN_MAX <= overtaken && writes_it && !has_it {
                        drop(turn.take());
                        turn = Some(self.turns().take((noun, id)).await);
                    }
                }
                Outcome::OverLimit { counter } => return Err(over_limit(&counter)),
                Outcome::Answered(body) => {
                    return Ok(CarriedOut::Before(Box::new(stored_answer(&body)?)));
                }
                Outcome::KeyTaken => return Err(key_taken()),
                Outcome::Moved { .. } => return Err(internal("the store answered out of turn")),
            }
        }
        Err(too_busy())
    }

    /// Rows as they are now.
    pub(crate) async fn load(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_with(Trust::Known, keys).await
    }

    /// Rows as this process has seen them last, which another may have changed since: good for a hint.
    pub(crate) async fn load_remembered(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_with(Trust::Remembered, keys).await
    }

    /// Rows as the store has them, whatever is remembered.
    pub(crate) async fn load_stored(&self, keys: &[RowKey]) -> Result<Rows, Error> {
        self.load_with(Trust::Stored, keys).await
    }

    async fn load_with(&self, trust: Trust, keys: &[RowKey]) -> Result<Rows, Error> {
        let may_remember = match trust {
            Trust::Remembered => true,
            Trust::Known => !self.store().is_shared(),
            Trust::Stored => false,
        };
        let mark = self.remembered().mark();
        let mut rows = Rows::default();
        let mut missing: BTreeMap<Noun, Vec<&str>> = BTreeMap::new();
        for key in keys {
            match self.remembered().get(key).filter(|_| may_remember) {
                Some(row) => rows.insert(key.clone(), row),
                None => missing.entry(key.0).or_default().push(&key.1),
            }
        }
        for (noun, ids) in missing {
            let found = match ids.as_slice() {
                [id] => vec![self.store().load(noun.name(), id).await.map_err(errors::store)?],
                ids => self.store().load_all(noun.name(), ids).await.map_err(errors::store)?,
            };
            for (id, row) in ids.into_iter().zip(found) {
                let (key, row) = ((noun, id.to_owned()), Arc::new(stored::row(noun, row)?));
                self.remembered().keep_read(mark, &key, &row);
                rows.insert(key, row);
            }
        }
        Ok(rows)
    }

    /// Refuses what a commit of these would be refused for.
    async fn check_limits(&self, deltas: &[Delta]) -> Result<(), Error> {
        self.may_write()?;
        let mut values: BTreeMap<&str, i64> = BTreeMap::new();
        for Delta { counter, add, max } in deltas {
            let before = match values.get(&**counter) {
                Some(value) => *value,
                None => self.store().counter(counter).await.map_err(errors::store)?,
            };
            if *max < before + add {
                return Err(over_limit(counter));
            }
            values.insert(counter, before + add);
        }
        Ok(())
    }

    /// These rows, and those that the events change besides.
    async fn with_missing(&self, mut rows: Rows, bodies: &[Body]) -> Result<Rows, Error> {
        rows.extend(self.load_with(Trust::Stored, &rows.missing(bodies)).await?);
        Ok(rows)
    }
}

/// Whether it is about something that runs out: an approval, the lease, the budget of the day in which a run
/// begins. A clock that is set back must not give it more time.
fn runs_out<'a>(mut keys: impl Iterator<Item = &'a RowKey>) -> bool {
    keys.any(|(noun, _)| matches!(noun, Noun::Approval | Noun::Authority))
}

/// All that the events change, in one commit.
fn commit_of<'a>(
    events: impl Iterator<Item = Event<'a>>,
    before: &Rows,
    after: &Rows,
    limits: &Limits,
) -> Result<Commit, Error> {
    let (mut drafts, mut added) = (Vec::new(), Vec::new());
    for event in events {
        added.extend(added_by(event.body, after, limits).into_iter().map(|it| {
            let Added { counter, add, max } = it;
            Delta { counter: counter.name(), add, max }
        }));
        drafts.push(stored::draft(event)?);
    }
    Ok(Commit { drafts, writes: before.writes(after)?, deltas: added, ..Commit::default() })
}

/// What an event adds to a counter, nothing if it only looks at it, and the most that it may show then.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    pub counter: Counter,
    pub add: i64,
    pub max: i64,
}

/// What must be left of budgets when an event happens, and what it adds to them.
pub(crate) fn added_by(body: &Body, rows: &Rows, limits: &Limits) -> Vec<Added> {
    let run = match body {
        Body::Run(id, _) => rows.run(id),
        _ => None,
    };
    let schedule = run.and_then(|run| rows.schedule(&run.schedule));
    let mut guards = run.zip(schedule).map_or_else(Vec::new, |(run, schedule)| {
        guards(body, run, &schedule.definition.terms, limits)
    });
    if let Body::Agent(name, agent::Event::Tested(tested)) = body
        && let Some(agent) = rows.agent(name)
    {
        guards.extend(test_guards(agent, tested, limits));
    }
    let guards = guards.into_iter().map(|(counter, max)| Added { counter, add: 0, max });
    let deltas = deltas(body).into_iter().map(|(counter, add)| {
        // What is given back is not refused because a limit was made less meanwhile.
        let max = if add < 0 { i64::MAX } else { counter.limit(limits) };
        Added { counter, add, max }
    });
    guards.chain(deltas).collect()
}

/// The answer as it is kept for another call with the same key.
fn kept(key: Option<&Key>, answer: &Answer, at: Timestamp) -> Result<Option<store::Answer>, Error> {
    let Some(key) = key else { return Ok(None) };
    Ok(Some(store::Answer {
        key: key.name.clone(),
        request_hash: key.request_hash,
        body: serde_json::to_vec(answer).map_err(internal)?,
        at_us: at.as_micros(),
    }))
}

fn stored_answer(body: &[u8]) -> Result<Answer, Error> {
    let first = serde_json::from_slice(body).map_err(internal)?;
    Ok(Answer::Replayed(Box::new(first)))
}

fn key_taken() -> Error {
    Error::new(Code::KeyTaken, "this idempotency key was used before, for another request")
        .hint("use a new key for a new request")
}

fn too_busy() -> Error {
    Error::new(Code::Busy, "too many changes to the same thing at once, nothing was changed")
        .hint("try again")
}

fn over_limit(counter: &str) -> Error {
    Error::new(
        Code::LimitReached,
        format!("the limit on {counter} is reached, nothing was changed"),
    )
    .hint(format!("remove some {counter} first"))
}

#[cfg(test)]
mod tests {
    use api::{Action, ScheduleAdd};

    use super::*;

    /// Nobody waits for the answer any more, so nobody learns whether it was made.
    #[test]
    fn what_a_commit_would_have_written_is_forgotten_when_it_is_left() {
        let remembered = Remembered::default();
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
            remembered.keep_written(remembered.mark(), key, row);
        }
        let mark = remembered.mark();
        drop(InDoubt { remembered: &remembered, before: &before, after: &after });
        let [ada, eve] = ["ada", "eve"].map(|name| (Noun::Agent, name.to_owned()));
        assert_eq!(remembered.get(&ada), None);
        assert_eq!(remembered.get(&eve).map(|row| row.version), Some(1), "it was only read");
        remembered.keep_read(mark, &ada, &Arc::new(kernel::Row { version: 1, state: None }));
        assert_eq!(remembered.get(&ada), None, "it was read before");
    }

    /// Whoever has the store and not the key cannot try out what a sensitive schedule may say.
    #[test]
    fn what_was_asked_is_not_to_be_guessed_by_its_hash_where_it_is_sensitive() {
        let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let ours = || Sealing::new(data[0].path());
        let action = Action { prompt: Some("look at the inbox".into()), ..Action::default() };
        let add =
            |sensitive| ScheduleAdd { action: action.clone(), sensitive, ..Default::default() };
        let edit = ScheduleEdit { action: action.clone(), ..Default::default() };
        let plain = |request: &Request| {
            Hash::from_bytes(Sha256::digest(serde_json::to_vec(request).unwrap()).into())
        };
        let open = Request::ScheduleAdd(add(false));
        assert_eq!(request_hash(&open, &ours()).unwrap(), plain(&open));
        for request in [Request::ScheduleAdd(add(true)), Request::ScheduleEdit(edit)] {
            let hash = request_hash(&request, &ours()).unwrap();
            assert_ne!(hash, plain(&request));
            assert_eq!(request_hash(&request, &ours()).unwrap(), hash, "of another process");
            let theirs = Sealing::new(data[1].path());
            assert_ne!(request_hash(&request, &theirs).unwrap(), hash);
        }
    }
}
