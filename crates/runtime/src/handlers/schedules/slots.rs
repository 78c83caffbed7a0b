//! The decided slots of a schedule, newest first.

use api::{Error, LIST_ITEMS_DEFAULT, LIST_ITEMS_MAX, ScheduleSlots, Serve, Slots};
use kernel::run::Run;
use kernel::slot::{self, Slot, SlotOutcome};
use kernel::{Noun, RunId};
use store::Newest;

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::ids::schedule_id;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::errors;
use crate::timestamps::rfc3339;
use crate::wire;

/// Slots of a removed schedule stay stored, so they are listed too.
impl Serve<ScheduleSlots> for Engine {
    async fn serve(&self, _: &Caller, request: ScheduleSlots) -> Result<Slots, Error> {
        let id = schedule_id(&request.id)?;
        let limit = request.limit.unwrap_or(LIST_ITEMS_DEFAULT).clamp(1, LIST_ITEMS_MAX);
        let before = &slot::end_key(&id);
        let newest =
            Newest { noun: Noun::Slot.name(), index_key: None, before, limit: limit as usize };
        let items = self.store.list_newest(newest).await.map_err(errors::store)?;
        let is_ours =
            |key: &str| key.split_once('/').is_some_and(|(owner, _)| owner == id.as_str());
        let mut slots: Vec<Slot> = Vec::new();
        for item in items.iter().take_while(|item| is_ours(&item.id)) {
            slots.extend(codec::decode_item::<Slot>(item)?);
        }
        let keys: Vec<_> = slots.iter().filter_map(run_of).map(row_key::<Run>).collect();
        let rows = self.transactions.load(&keys).await?;
        let slots = slots.iter().map(|slot| {
            let run_id = run_of(slot);
            let run = run_id.and_then(|run| rows.get::<Run>(run));
            api::Slot {
                slot: rfc3339(slot.last),
                slots: slot.count,
                disposition: wire::disposition(slot.disposition(run)),
                run_id: run_id.map(RunId::to_string),
            }
        });
        Ok(Slots { schedule_id: id.to_string(), slots: slots.collect() })
    }
}

fn run_of(slot: &Slot) -> Option<&RunId> {
    match &slot.outcome {
        SlotOutcome::Run { run, .. } => Some(run),
        SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
    }
}
