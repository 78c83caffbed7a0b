//! Adding schedules, one or many, and changing one.

use std::collections::HashMap;

use api::{
    AddedOne, Answer, Code, Error, ScheduleAdd, ScheduleAddAll, ScheduleAdded, ScheduleEdit,
    ScheduleEdited, SchedulesAdded,
};
use kernel::id::SCHEDULE_DIGITS;
use kernel::progress::Progress;
use kernel::run::Cause;
use kernel::schedule::{self, Action, CHAIN_MAX, Command, Definition, Ground, Maker, Schedule};
use kernel::tool::Called;
use kernel::{Actor, Body, Noun, ScheduleId, Timestamp};
use ledger::canonical;
use sha2::{Digest, Sha256};

use super::define::{self, Defined};
use super::wire::{bounds, is_paused, upcoming, wire};
use super::{ground, parsed_id, rows_of};
use crate::errors::{self, internal};
use crate::reach::Asking;
use crate::rows::{RowKey, Rows};
use crate::sealing::Purpose;
use crate::transact::{Change, Key};
use crate::watch::Engine;

/// Schedules that are added at once.
const LIST_MAX: usize = 1_000;
/// How often ids are looked for that others take first.
const TRIES_MAX: usize = 8;

/// What is to be added, and for whom.
struct Addition<'a> {
    actor: &'a Actor,
    key: Option<Key>,
    defined: Vec<Defined>,
    dry_run: bool,
}

/// A schedule that is to be added or changed, with what the rules about it look at.
struct Draft {
    id: ScheduleId,
    definition: Definition,
    is_paused: bool,
    warnings: Vec<String>,
    upstream: Vec<(ScheduleId, Schedule, Progress)>,
    called: Option<Result<Called, Cause>>,
}

impl Engine {
    pub(crate) async fn schedule_add(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleAdd,
    ) -> Result<Answer, Error> {
        let dry_run = asked.dry_run;
        let addition =
            Addition { actor, key, defined: vec![self.reviewed(define::new(asked)?)?], dry_run };
        self.add(addition, |drafts, before, after| {
            let [Draft { id, warnings, called, .. }] = drafts else {
                return Err(internal("one schedule became several"));
            };
            Ok(Answer::ScheduleAdd(ScheduleAdded {
                schedule: wire(id, after)?,
                created: before.schedule(id).is_none(),
                next: upcoming(id, after, self.now())?,
                bounds: bounds(id, after, self.now())?,
                orders: Some(self.foretell(id, after, called.as_ref())?),
                warnings: [warnings.clone(), self.exceeded(id, after)?].concat(),
                dry_run,
            }))
        })
        .await
    }

    /// All of them in one commit, or none.
    pub(crate) async fn schedule_add_all(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleAddAll,
    ) -> Result<Answer, Error> {
        if LIST_MAX < asked.schedules.len() {
            return Err(Error::new(Code::InvalidInput, "at most 1000 schedules are added at once")
                .hint("give them in several lists"));
        }
        let names: Vec<String> = asked.schedules.iter().map(|it| it.name.clone()).collect();
        let defined = asked.schedules.into_iter().enumerate();
        let defined = defined.map(|(place, asked)| {
            let name = asked.name.clone();
            // Nobody shall believe that one of them was only tried.
            let meant = match asked.dry_run {
                true => Err(Error::new(Code::InvalidInput, "`dry_run` is for the whole list")),
                false => define::new(asked).and_then(|defined| self.reviewed(defined)),
            };
            meant.map_err(|error| of_list(place, &name, error))
        });
        let (defined, dry_run) = (defined.collect::<Result<_, _>>()?, asked.dry_run);
        let addition = Addition { actor, key, defined, dry_run };
        self.add(addition, |drafts, before, after| {
            let mut added: HashMap<&ScheduleId, ()> = HashMap::new();
            let added = drafts.iter().zip(&names).map(|(draft, name)| {
                let is_first = added.insert(&draft.id, ()).is_none();
                Ok(AddedOne {
                    id: draft.id.to_string(),
                    name: name.clone(),
                    created: is_first && before.schedule(&draft.id).is_none(),
                    paused: is_paused(&draft.id, after),
                    next: upcoming(&draft.id, after, self.now())?,
                    orders: Some(self.foretell(&draft.id, after, draft.called.as_ref())?),
                    warnings: [draft.warnings.clone(), self.exceeded(&draft.id, after)?].concat(),
                })
            });
            let schedules = added.collect::<Result<_, Error>>()?;
            Ok(Answer::ScheduleAddAll(SchedulesAdded { schedules, dry_run }))
        })
        .await
    }

    pub(crate) async fn schedule_edit(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleEdit,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let rows = self.load(&rows_of(&id)).await?;
        let unknown = || errors::schedule(schedule::Refusal::Unknown(id.clone()));
        let Schedule { definition, revision, .. } = rows.schedule(&id).ok_or_else(unknown)?;
        let is_same = asked.action == api::Action::default();
        let defined = define::edited(definition, asked)?;
        // What nobody has looked at is as it was.
        let defined = if is_same { self.seal_words(defined)? } else { self.reviewed(defined)? };
        let revision = *revision;
        let draft = self.draft(id.clone(), defined).await?;
        let change = Change { rows: draft.rows(), reads: draft.reads(), ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            // What is not said stays as it is, so it must not have changed meanwhile.
            if rows.schedule(&id).is_some_and(|schedule| schedule.revision != revision) {
                return Err(Error::new(Code::Busy, "the schedule was changed at the same time")
                    .hint("try again"));
            }
            let definition = Box::new(draft.definition.clone());
            draft.decide(rows, now, actor, None, Command::Edit { definition })
        };
        self.transact(change, decide, |before, after| {
            Ok(Answer::ScheduleEdit(ScheduleEdited {
                schedule: wire(&id, after)?,
                changed: before.schedule(&id) != after.schedule(&id),
                next: upcoming(&id, after, self.now())?,
                bounds: bounds(&id, after, self.now())?,
                warnings: [draft.warnings.clone(), self.exceeded(&id, after)?].concat(),
            }))
        })
        .await
    }

    async fn add(
        &self,
        addition: Addition<'_>,
        answer: impl Fn(&[Draft], &Rows, &Rows) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let mut tries = TRIES_MAX;
        loop {
            let drafts = self.drafts(addition.defined.clone()).await?;
            let told = |before: &Rows, after: &Rows| answer(&drafts, before, after);
            match self.add_drafts(&addition, &drafts, told).await {
                // Somebody else has taken an id meanwhile, so another one is free; or what it follows is another.
                Err(taken) if taken.code == Code::Busy && 1 < tries => tries -= 1,
                other => return other,
            }
        }
    }

    async fn add_drafts(
        &self,
        addition: &Addition<'_>,
        drafts: &[Draft],
        answer: impl Fn(&Rows, &Rows) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let Addition { actor, ref key, dry_run: is_dry_run, .. } = *addition;
        let mut rows: Vec<RowKey> = drafts.iter().flat_map(Draft::rows).collect();
        let mut reads: Vec<RowKey> = drafts.iter().flat_map(Draft::reads).collect();
        reads.push(self.authority_row());
        let asking = match actor.call() {
            Some(run) => self.calling(&run, drafts.first().map(|draft| &draft.definition)).await?,
            None => self.asking(actor, "schedule.create", None).await?,
        };
        rows.extend(asking.iter().flat_map(Asking::rows));
        reads.extend(asking.iter().flat_map(Asking::reads));
        reads.sort();
        reads.dedup();
        reads.retain(|row| !rows.contains(row));
        let change = Change { rows, reads, is_dry_run, ..Change::by(actor, key.clone()) };
        let decide = |rows: &Rows, now| {
            let mut added: HashMap<&ScheduleId, ()> = HashMap::new();
            let mut bodies = Vec::with_capacity(drafts.len());
            for (place, draft) in drafts.iter().enumerate() {
                // The same one twice in a list is one.
                if added.insert(&draft.id, ()).is_some() {
                    continue;
                }
                let definition = Box::new(draft.definition.clone());
                let beside = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
                let maker = asking.as_ref().and_then(|asking| asking.among(rows, beside));
                let command = Command::Add { definition, paused: draft.is_paused };
                let decided = draft.decide(rows, now, actor, maker, command);
                bodies.extend(decided.map_err(|error| match drafts.len() {
                    1 => error,
                    _ => of_list(place, &draft.definition.name, error),
                })?);
            }
            Ok(bodies)
        };
        self.transact(change, decide, answer).await
    }

    /// Each with the id of the schedule that has this definition, or of a new one.
    async fn drafts(&self, defined: Vec<Defined>) -> Result<Vec<Draft>, Error> {
        let mut ids = Vec::with_capacity(defined.len());
        for Defined { definition, .. } in &defined {
            ids.push(
                Sha256::digest(canonical(&definition.without_tool_hash()).map_err(internal)?)
                    .into(),
            );
        }
        let short: Vec<RowKey> = ids.iter().map(|hash| row_of(hash, SCHEDULE_DIGITS)).collect();
        let found = self.load(&short).await?;
        let mut places: HashMap<ScheduleId, usize> = HashMap::new();
        let mut drafts: Vec<Draft> = Vec::with_capacity(defined.len());
        for (defined, hash) in defined.into_iter().zip(&ids) {
            let taken = |id: &ScheduleId| Some(&drafts.get(*places.get(id)?)?.definition);
            let id = self.free_id(hash, &defined.definition, &found, taken).await?;
            places.insert(id.clone(), drafts.len());
            drafts.push(self.draft(id, defined).await?);
        }
        Ok(drafts)
    }

    /// More digits of the hash for as long as another content has them.
    async fn free_id<'a>(
        &self,
        hash: &[u8; 32],
        definition: &Definition,
        found: &Rows,
        taken: impl Fn(&ScheduleId) -> Option<&'a Definition>,
    ) -> Result<ScheduleId, Error> {
        let mut digits = SCHEDULE_DIGITS;
        let same = definition.without_tool_hash();
        loop {
            let id = ScheduleId::of(hash, digits);
            let loaded = match digits {
                SCHEDULE_DIGITS => None,
                _ => Some(self.load(&[row_of(hash, digits)]).await?),
            };
            let stored = loaded.as_ref().unwrap_or(found).schedule(&id).map(|it| &it.definition);
            match stored.or_else(|| taken(&id)) {
                Some(other) if other.without_tool_hash() != same && digits < 64 => digits += 4,
                _ => return Ok(id),
            }
        }
    }

    /// Whoever writes down a call of a tool means the tool as it is now, or whatever it will be once there is one.
    fn reviewed(&self, mut defined: Defined) -> Result<Defined, Error> {
        let action = &mut defined.definition.action;
        action.check_words().map_err(errors::schedule)?;
        if let Action::Tool { tool, payload, hash } = action {
            *hash = match self.meant(tool, payload) {
                Ok(meant) => Some(meant.hash),
                Err(missing) if missing.code == Code::NotFound => None,
                Err(unfit) => return Err(not_scheduled(unfit)),
            };
        }
        self.seal_words(defined)
    }

    /// The words of a sensitive schedule are sealed before anything is decided about it.
    fn seal_words(&self, mut defined: Defined) -> Result<Defined, Error> {
        let action = &mut defined.definition.action;
        if defined.is_sensitive {
            action.check_words().map_err(errors::schedule)?;
            let sealed = self.sealing().seal(action.words().clone(), Purpose::Words)?;
            *action.words_mut() = sealed;
        } else if action.words().is_sealed() {
            *action.words_mut() = self.sealing().open(action.words(), Purpose::Words)?.into();
        }
        Ok(defined)
    }

    async fn draft(&self, id: ScheduleId, defined: Defined) -> Result<Draft, Error> {
        let Defined { definition, is_paused, warnings, .. } = defined;
        let upstream = self.upstream(&definition).await?;
        let called = self.called(&definition.action).await?;
        Ok(Draft { id, definition, is_paused, warnings, upstream, called })
    }

    /// The schedules that one follows, the nearest first, as far as a chain may go and one more.
    async fn upstream(
        &self,
        definition: &Definition,
    ) -> Result<Vec<(ScheduleId, Schedule, Progress)>, Error> {
        let mut upstream = Vec::new();
        let mut follows = definition.trigger.follows().map(|(id, _)| id.clone());
        while let Some(id) = follows.take()
            && upstream.len() <= CHAIN_MAX
        {
            let rows = self.load(&rows_of(&id)).await?;
            if let (Some(schedule), Some(progress)) = (rows.schedule(&id), rows.progress(&id)) {
                follows = schedule.definition.trigger.follows().map(|(id, _)| id.clone());
                upstream.push((id.clone(), schedule.clone(), progress.clone()));
            }
        }
        Ok(upstream)
    }
}

impl Draft {
    /// Its own, and those of what it follows, so that two who follow one another are never both added.
    fn rows(&self) -> Vec<RowKey> {
        let upstream = self.upstream.iter().map(|(id, ..)| (Noun::Schedule, id.to_string()));
        rows_of(&self.id).into_iter().chain(upstream).collect()
    }

    fn reads(&self) -> Vec<RowKey> {
        let agent = self.definition.action.agent().map(|name| (Noun::Agent, name.to_string()));
        agent.into_iter().collect()
    }

    fn decide(
        &self,
        rows: &Rows,
        now: Timestamp,
        actor: &Actor,
        maker: Option<Maker<'_>>,
        command: Command,
    ) -> Result<Vec<Body>, Error> {
        let mut upstream = self.upstream.iter();
        if upstream.any(|(id, schedule, _)| rows.schedule(id) != Some(schedule)) {
            let what = "a schedule that it follows was changed at the same time";
            return Err(Error::new(Code::Busy, what).hint("try again"));
        }
        let agent = self.definition.action.agent().and_then(|name| rows.agent(name));
        let ground = ground(rows, &self.id, now);
        let ground = Ground { agent, upstream: &self.upstream, maker, ..ground };
        schedule::decide(ground, actor, command).map_err(|refusal| {
            silence(&self.definition, &refusal).unwrap_or_else(|| errors::schedule(refusal))
        })
    }
}

/// What is wrong with a call is wrong with the request.
pub(crate) fn not_scheduled(refused: Error) -> Error {
    Error { code: Code::InvalidInput, ..refused }
}

fn row_of(hash: &[u8; 32], digits: usize) -> RowKey {
    (Noun::Schedule, ScheduleId::of(hash, digits).to_string())
}

fn of_list(place: usize, name: &str, error: Error) -> Error {
    let message = format!("schedule {} of the list, `{name}`: {}", place + 1, error.message);
    Error { message, ..error }
}

/// Why a schedule never fires, as far as its trigger is the reason.
fn silence(definition: &Definition, refusal: &schedule::Refusal) -> Option<Error> {
    let schedule::Refusal::NeverFires(after_us) = refusal else { return None };
    definition.trigger.timed()?;
    let silence = definition.calendar(None).ok()?.silence_after(*after_us)?;
    let error = Error::new(Code::InvalidInput, silence);
    Some(error.hint("`midwatch schedule next` with other flags shows when it would fire"))
}
