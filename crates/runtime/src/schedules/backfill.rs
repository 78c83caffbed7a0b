//! Running slots of the past.

use api::{Answer, BackfillEnded, Code, Error, ScheduleBackfill, ScheduleBackfillEnd};
use kernel::schedule::{self, Backfill, Command, backfill_range};
use kernel::slot::{self, Fate};
use kernel::{Actor, Noun, ScheduleId, Timestamp};
use ledger::Hash;
use sha2::{Digest, Sha256};

use super::wire::wire;
use super::{ground, parsed_id, rows_of};
use crate::errors;
use crate::rows::Rows;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;
use crate::when;

/// More slots than this are run only after a dry run.
const UNCONFIRMED_MAX: u64 = 100;
const TOKEN_DIGITS: usize = 8;
/// Rows of slots that are looked at in one go.
const PAGE: usize = 1_000;

impl Engine {
    pub(crate) async fn schedule_backfill(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleBackfill,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let rows = self.load(&rows_of(&id)).await?;
        let (Some(schedule), Some(progress)) = (rows.schedule(&id), rows.progress(&id)) else {
            return Err(errors::schedule(schedule::Refusal::Unknown(id)));
        };
        let instant = |text: &str| {
            let at = when::instant(text, Some(&schedule.definition.zone));
            at.map(Timestamp::from_micros)
        };
        let backfill = Backfill {
            from: instant(&asked.from)?,
            to: instant(&asked.to)?,
            at_once: asked.at_once,
            gap: asked.gap.as_deref().map(when::span).transpose()?,
        };
        let nothing = || errors::schedule(schedule::Refusal::NothingToBackfill);
        let range = backfill_range(&schedule.definition, progress, backfill);
        let (first, last, slots) = range.ok_or_else(nothing)?;
        let token = token(&id, schedule.revision, first, last);
        let mut answer = api::ScheduleBackfilled {
            schedule_id: id.to_string(),
            first: rfc3339(first),
            last: rfc3339(last),
            slots,
            taken: self.taken(&id, first, last).await?,
            token: token.clone(),
            begun: false,
        };
        if asked.dry_run {
            return Ok(Answer::ScheduleBackfill(answer));
        }
        if UNCONFIRMED_MAX < slots && asked.confirm.as_deref() != Some(&token) {
            let what = format!(
                "these are {slots} slots, and more than {UNCONFIRMED_MAX} are run only when that is confirmed"
            );
            return Err(Error::new(Code::NotNow, what).hint(
                "look at it with `--dry-run`, then give the token that it shows with `--confirm`",
            ));
        }
        answer.begun = true;
        let change = Change { rows: rows_of(&id), ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let command = Command::Backfill(backfill);
            schedule::decide(ground(rows, &id, now), actor, command).map_err(errors::schedule)
        };
        self.transact(change, decide, |_, _| Ok(Answer::ScheduleBackfill(answer.clone()))).await
    }

    pub(crate) async fn schedule_backfill_end(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleBackfillEnd,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        self.change_schedule(actor, key, &id, Command::EndBackfill, |before, after| {
            let changed = before.progress(&id) != after.progress(&id);
            Ok(Answer::ScheduleBackfillEnd(BackfillEnded { schedule: wire(&id, after)?, changed }))
        })
        .await
    }

    /// How many slots have a run already.
    async fn taken(
        &self,
        id: &ScheduleId,
        first: Timestamp,
        last: Timestamp,
    ) -> Result<u64, Error> {
        let mut taken = 0;
        for key in [slot::key, slot::backfill_key] {
            let before = Timestamp::from_micros(first.as_micros().saturating_sub(1));
            let (mut after, end) = (key(id, before), key(id, last));
            loop {
                let page = self.store().list(Noun::Slot.name(), &after, PAGE).await;
                let page = page.map_err(errors::store)?;
                let Some(newest) = page.last().map(|item| item.id.clone()) else { break };
                for item in page.iter().filter(|item| item.id <= end) {
                    let state = item.body.as_deref().map(|body| stored::state(Noun::Slot, body));
                    let slot = state.transpose()?.and_then(kernel::State::slot);
                    let has_run = slot.is_some_and(|it| matches!(it.fate, Fate::Run { .. }));
                    taken += u64::from(has_run);
                }
                if end <= newest || page.len() < PAGE {
                    break;
                }
                after = newest;
            }
        }
        Ok(taken)
    }
}

/// Stands for exactly these slots of the schedule as it is.
fn token(id: &ScheduleId, revision: u32, first: Timestamp, last: Timestamp) -> String {
    let what = format!("{id} {revision} {} {}", first.as_micros(), last.as_micros());
    let hash = Hash::from_bytes(Sha256::digest(what.as_bytes()).into()).to_string();
    hash.get(..TOKEN_DIGITS).unwrap_or(&hash).to_owned()
}
