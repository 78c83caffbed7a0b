//! Load, decide, commit: the way of every change to a row.
//!
//! The kernel decides on what was loaded; the commit names the version it was decided on. When
//! somebody else was faster, the whole is done again on what they left.

use api::{Answer, Call, Code, Error, Request};
use kernel::tables::delta;
use kernel::{Actor, Body, Event, Noun, Row, Timestamp};
use ledger::Hash;
use sha2::{Digest, Sha256};
use store::{Commit, Delta, Outcome, Write};

use crate::errors::{self, internal};
use crate::stored;
use crate::watch::Watch;

/// How often a change is decided anew because others were faster.
const DECISIONS_MAX: usize = 32;

const KEY_BYTES_MAX: usize = 128;

/// A change to one row, as somebody asked for it.
pub(crate) struct Change<'a> {
    pub noun: Noun,
    pub id: &'a str,
    pub actor: &'a Actor,
    pub key: Option<Key>,
}

/// An idempotency key, bound to who used it and for what.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// As the store knows it: the actor's own.
    name: String,
    request_hash: Hash,
}

impl Key {
    pub(crate) fn of(call: &Call, actor: &Actor) -> Result<Option<Key>, Error> {
        let Some(key) = &call.key else { return Ok(None) };
        if key.is_empty() || KEY_BYTES_MAX < key.len() || !key.chars().all(|c| c.is_ascii_graphic())
        {
            let what = "an idempotency key is 1 to 128 printable characters without blanks";
            return Err(Error::new(Code::InvalidInput, what));
        }
        let name = format!("{}/{key}", actor.name);
        Ok(Some(Key { name, request_hash: request_hash(&call.request)? }))
    }
}

/// Of the request as this version of the program writes it; its fields have one order.
fn request_hash(request: &Request) -> Result<Hash, Error> {
    let bytes = serde_json::to_vec(request).map_err(internal)?;
    Ok(Hash::from_bytes(Sha256::digest(&bytes).into()))
}

impl Watch {
    /// The answer that an earlier call with this key got.
    pub(crate) async fn answered(&self, key: Option<&Key>) -> Result<Option<Answer>, Error> {
        let Some(key) = key else { return Ok(None) };
        match self.store().answer(&key.name).await.map_err(errors::store)? {
            None => Ok(None),
            Some(answer) if answer.request_hash != key.request_hash => Err(key_taken()),
            Some(answer) => stored_answer(&answer.body).map(Some),
        }
    }

    /// Carries out a change. `decide` says what happens to the row, or nothing; `answer` tells of
    /// the row before and after.
    pub(crate) async fn transact(
        &self,
        change: Change<'_>,
        decide: impl Fn(&Row, Timestamp) -> Result<Option<Body>, Error>,
        answer: impl Fn(&Row, &Row) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let (noun, id) = (change.noun.name(), change.id);
        let mut remembered = self.store().remembered(noun, id);
        for _ in 0..DECISIONS_MAX {
            let is_remembered = remembered.is_some();
            let loaded = match remembered.take() {
                Some(row) => row,
                None => self.store().load(noun, id).await.map_err(errors::store)?,
            };
            let loaded = stored::row(change.noun, loaded)?;
            let plan = plan(&change, loaded, self.now(), &decide, &answer)?;
            // What is remembered may be out of date, and only a write would show it.
            if is_remembered && !plan.writes() {
                continue;
            }
            let (commit, answer) = match plan {
                Plan::Commit(commit, answer) => (commit, answer),
                Plan::Nothing(answer) => return Ok(*answer),
                // The first call with this key may be what the second is refused for.
                Plan::Refuse(refusal) => {
                    let earlier = self.answered(change.key.as_ref()).await?;
                    return earlier.ok_or(*refusal);
                }
            };
            match self.commit(*commit).await? {
                Outcome::Committed(_) => return Ok(*answer),
                Outcome::Conflict { .. } => {}
                Outcome::OverLimit { counter } => return Err(over_limit(counter)),
                Outcome::Answered(body) => return stored_answer(&body),
                Outcome::KeyTaken => return Err(key_taken()),
                Outcome::Moved { .. } => return Err(internal("the store answered out of turn")),
            }
        }
        Err(Error::new(
            Code::Busy,
            "too many changes to the same thing at once, nothing was changed",
        )
        .hint("try again"))
    }
}

/// What a decision leads to. Boxed, because it is held while the store is waited for.
enum Plan {
    Commit(Box<Commit>, Box<Answer>),
    /// It is so already, and there is no key under which to keep the answer.
    Nothing(Box<Answer>),
    Refuse(Box<Error>),
}

impl Plan {
    /// Whether a commit will check the row that this was decided on.
    fn writes(&self) -> bool {
        matches!(self, Plan::Commit(commit, _) if !commit.writes.is_empty())
    }
}

/// Decides on a row as it was loaded.
fn plan(
    change: &Change<'_>,
    before: Row,
    now: Timestamp,
    decide: &impl Fn(&Row, Timestamp) -> Result<Option<Body>, Error>,
    answer: &impl Fn(&Row, &Row) -> Result<Answer, Error>,
) -> Result<Plan, Error> {
    let body = match decide(&before, now) {
        Ok(Some(body)) => body,
        Ok(None) => {
            let answer = Box::new(answer(&before, &before)?);
            return Ok(match kept(change.key.as_ref(), &answer, now)? {
                Some(kept) => {
                    let commit = Commit { answer: Some(kept), ..Commit::default() };
                    Plan::Commit(Box::new(commit), answer)
                }
                None => Plan::Nothing(answer),
            });
        }
        Err(refusal) => return Ok(Plan::Refuse(Box::new(refusal))),
    };
    let mut after = before.clone();
    after.apply(&body);
    let answer = answer(&before, &after)?;
    let commit = commit_of(change, (before.version, &after), (now, body), &answer)?;
    Ok(Plan::Commit(Box::new(commit), Box::new(answer)))
}

/// All that the change writes, in one commit.
fn commit_of(
    change: &Change<'_>,
    (expected, row): (u64, &Row),
    (at, body): (Timestamp, Body),
    answer: &Answer,
) -> Result<Commit, Error> {
    let deltas = delta(&body).map(|(counter, add)| Delta {
        counter: counter.name(),
        add,
        max: counter.max(),
    });
    let cause = change.key.as_ref().map_or_else(String::new, |key| format!("key:{}", key.name));
    let event = Event { at, actor: change.actor.clone(), cause, body };
    let write = Write {
        noun: change.noun.name(),
        id: change.id.to_owned(),
        expected,
        version: row.version,
        body: row.state.as_ref().map(stored::state_bytes).transpose()?,
        due_us: None,
        under: None,
    };
    Ok(Commit {
        drafts: vec![stored::draft(&event)?],
        writes: vec![write],
        deltas: deltas.into_iter().collect(),
        answer: kept(change.key.as_ref(), answer, at)?,
        replace: None,
    })
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
    serde_json::from_slice(body).map_err(internal)
}

fn key_taken() -> Error {
    Error::new(Code::KeyTaken, "this idempotency key was used before, for another request")
        .hint("use a new key for a new request")
}

fn over_limit(counter: &str) -> Error {
    Error::new(
        Code::LimitReached,
        format!("the limit on {counter} is reached, nothing was changed"),
    )
    .hint(format!("remove some {counter} first"))
}
