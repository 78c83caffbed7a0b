//! Starts and ends the backfill of a schedule, which runs slots of the past.

use api::{
    BackfillEnded, Code, Error, ScheduleBackfill, ScheduleBackfillEnd, ScheduleBackfilled, Serve,
};
use kernel::progress::Progress;
use kernel::schedule::{self, Backfill, Command, Schedule, backfill_range};
use kernel::slot::{self, Slot, SlotOutcome};
use kernel::{Noun, ScheduleId, Timestamp};
use ledger::Hash;
use sha2::{Digest, Sha256};

use super::wire::wire;
use super::{rows_of, schedule_context};
use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::ids::schedule_id;
use crate::commit::rows::Rows;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors;
use crate::schedule::trigger;
use crate::timestamps::rfc3339;

/// More slots than this need the token of a dry run.
const UNCONFIRMED_SLOTS_MAX: u64 = 100;
const TOKEN_DIGITS: usize = 8;
/// Rows of slots read at a time.
const PAGE: usize = 1_000;

impl Serve<ScheduleBackfill> for Engine {
    async fn serve(
        &self,
        caller: &Caller,
        request: ScheduleBackfill,
    ) -> Result<ScheduleBackfilled, Error> {
        let id = schedule_id(&request.id)?;
        let rows = self.transactions.load(&rows_of(&id)).await?;
        let (Some(schedule), Some(progress)) =
            (rows.get::<Schedule>(&id), rows.get::<Progress>(&id))
        else {
            return Err(errors::refused(schedule::Refusal::Unknown(id)));
        };
        let instant = |text: &str| {
            let at = trigger::parse_instant(text, Some(&schedule.definition.zone));
            at.map(Timestamp::from_micros)
        };
        let backfill = Backfill {
            from: instant(&request.from)?,
            to: instant(&request.to)?,
            at_once: request.at_once,
            gap: request.gap.as_deref().map(trigger::parse_span).transpose()?,
        };
        let nothing = || errors::refused(schedule::Refusal::NothingToBackfill);
        let range = backfill_range(&schedule.definition, progress, backfill);
        let (first, last, slots) = range.ok_or_else(nothing)?;
        let token = confirmation_token(&id, schedule.revision, first, last);
        let mut response = ScheduleBackfilled {
            schedule_id: id.to_string(),
            first: rfc3339(first),
            last: rfc3339(last),
            slots,
            taken: self.count_slots_with_run(&id, first, last).await?,
            token: token.clone(),
            started: false,
        };
        if request.dry_run {
            return Ok(response);
        }
        if UNCONFIRMED_SLOTS_MAX < slots && request.confirm.as_deref() != Some(&token) {
            let what = format!(
                "these are {slots} slots, and more than {UNCONFIRMED_SLOTS_MAX} need a confirmation"
            );
            return Err(Error::new(Code::NotNow, what).hint(
                "run it with `--dry-run`, then pass the token that it prints with `--confirm`",
            ));
        }
        response.started = true;
        let transaction = Transaction { rows: rows_of(&id), ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            let command = Command::Backfill(backfill);
            schedule::decide(schedule_context(rows, &id, now), &caller.actor, command)
                .map_err(errors::refused)
        };
        let respond = |_: &Rows, _: &Rows| Ok(response.clone());
        self.transactions.respond::<ScheduleBackfill>(caller, transaction, decide, respond).await
    }
}

impl Serve<ScheduleBackfillEnd> for Engine {
    async fn serve(
        &self,
        caller: &Caller,
        request: ScheduleBackfillEnd,
    ) -> Result<BackfillEnded, Error> {
        let id = schedule_id(&request.id)?;
        self.change_schedule::<ScheduleBackfillEnd>(
            caller,
            &id,
            Command::EndBackfill,
            |before, after| {
                let changed = before.get::<Progress>(&id) != after.get::<Progress>(&id);
                Ok(BackfillEnded { schedule: wire(&id, after)?, changed })
            },
        )
        .await
    }
}

impl Engine {
    /// How many slots have a run already.
    async fn count_slots_with_run(
        &self,
        id: &ScheduleId,
        first: Timestamp,
        last: Timestamp,
    ) -> Result<u64, Error> {
        let mut count = 0;
        for key in [slot::key, slot::backfill_key] {
            let before = Timestamp::from_micros(first.as_micros().saturating_sub(1));
            let (mut after, end) = (key(id, before), key(id, last));
            loop {
                let page = self.store.list(Noun::Slot.name(), &after, PAGE).await;
                let page = page.map_err(errors::store)?;
                let Some(newest) = page.last().map(|item| item.id.clone()) else { break };
                for item in page.iter().filter(|item| item.id <= end) {
                    let slot = codec::decode_item::<Slot>(item)?;
                    let has_run =
                        slot.is_some_and(|it| matches!(it.outcome, SlotOutcome::Run { .. }));
                    count += u64::from(has_run);
                }
                if end <= newest || page.len() < PAGE {
                    break;
                }
                after = newest;
            }
        }
        Ok(count)
    }
}

/// Identifies these slots of this revision of a schedule.
fn confirmation_token(id: &ScheduleId, revision: u32, first: Timestamp, last: Timestamp) -> String {
    let what = format!("{id} {revision} {} {}", first.as_micros(), last.as_micros());
    let hash = Hash::from_bytes(Sha256::digest(what.as_bytes()).into()).to_string();
    hash.get(..TOKEN_DIGITS).unwrap_or(&hash).to_owned()
}
