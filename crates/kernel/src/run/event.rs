//! Events of a run. The serde names are the stored format.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use super::{CancelRequest, Cause, NOT_BEGUN, Origin, Outcome, Output, Run, StartBlocker};
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::budget::{Charge, Reservation, Spent, reservation_deltas, run_deltas, spent_deltas};
use crate::counter::Counter;
use crate::event::kinds;
use crate::money::Price;
use crate::noun::{ChangedRow, NounEvent};
use crate::policy_decision::{DecisionContext, PolicyDecision};
use crate::private_fields::{PrivateField, note};
use crate::progress::{NextFire, Progress};
use crate::schedule::terms::Key;
use crate::slot::{self, Source};
use crate::time::Timestamp;
use crate::{RunId, ScheduleId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Queued(Queued),
    Started(Started),
    Retried(Retried),
    CancelRequested(CancelRequest),
    Ended(Ended),
    Requeued(Requeued),
    Settled(Settled),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    pub schedule: ScheduleId,
    pub revision: u32,
    pub occurrence: Occurrence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The caller was below operator: an agent or an assistant.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    pub at: Timestamp,
}

/// The identity of a run within its schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Occurrence {
    Slot(FiredSlot),
    Manual { key: String },
    Backfill(BackfillSlot),
}

/// A slot that got a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FiredSlot {
    pub nominal: Timestamp,
    pub wall: String,
    pub origin: Origin,
    pub late_us: i64,
    /// What created the slot, if it was not the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A past slot that a backfill runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillSlot {
    pub nominal: Timestamp,
    pub wall: String,
    /// The backfill's next slot, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}

/// An attempt was started; it may take effect from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    pub epoch: u32,
    pub attempt: u32,
    pub holder: String,
    pub repeatable: bool,
    pub tier: Tier,
    /// The policy decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<PolicyDecision>,
    /// The inputs of the policy decision.
    #[serde(rename = "circumstances", default, skip_serializing_if = "Option::is_none")]
    pub decision_context: Option<Box<DecisionContext>>,
    /// The budget that the attempt is counted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// Tokens and money reserved for the attempt.
    #[serde(rename = "hold", default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// The price that its cost is computed from.
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
    pub at: Timestamp,
}

/// An attempt failed or was interrupted, and another follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retried {
    pub epoch: u32,
    pub cause: Cause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The attempt does not count towards the retry limit.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub uncounted: bool,
    /// The charge that is undone, because the attempt did nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The reservation that is released, because the usage is known.
    #[serde(rename = "frees", default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Reservation>,
    pub from: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    pub schedule: ScheduleId,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Other live runs of the schedule still block its waiting slots.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub no_room: bool,
    /// The policy decision, if it ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<PolicyDecision>,
    /// The tier that the policy decision is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The inputs of the policy decision.
    #[serde(rename = "circumstances", default, skip_serializing_if = "Option::is_none")]
    pub decision_context: Option<Box<DecisionContext>>,
    /// Policy or a human did not allow the start.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub refused: bool,
    /// What blocked the start, if neither policy nor a human did.
    #[serde(rename = "lacking", default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<StartBlocker>,
    /// Hash of the action that a human denied, if that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// The charge that is undone, because the attempt did nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The reservation that is released, because the usage is known.
    #[serde(rename = "frees", default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Reservation>,
    pub at: Timestamp,
}

/// A caller requested a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requeued {
    pub schedule: ScheduleId,
    pub by: String,
    /// The caller was below operator: an agent or an assistant.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    /// Attempts so far; the retry limit applies to later ones. 0 in older events, which restarted the count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    pub at: Timestamp,
}

/// A human stated how the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    pub outcome: Outcome,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Cause code of the unknown outcome; absent in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    pub at: Timestamp,
}

kinds! {
    Event:
    "run.queued" 1 Queued;
    "run.started" 1 Started;
    "run.retried" 1 Retried;
    "run.cancel_asked" 1 CancelRequested;
    "run.ended" 1 Ended;
    "run.requeued" 1 Requeued;
    "run.settled" 1 Settled;
}

impl NounEvent for Event {
    type State = Run;

    fn changed_rows(&self, id: &RunId) -> Vec<ChangedRow> {
        let run = || ChangedRow::existing::<Run>(id);
        match self {
            Event::Queued(queued) => {
                let progress = ChangedRow::existing::<Progress>(&queued.schedule);
                let slot = match queued.was_buffered() {
                    true => slot::existing_row(queued.slot_key()),
                    false => slot::new_row(queued.slot_key()),
                };
                let source = queued
                    .source()
                    .map(|source| slot::new_row(slot::source_key(&queued.schedule, source)));
                [ChangedRow::new::<Run>(id), progress, slot].into_iter().chain(source).collect()
            }
            Event::Ended(Ended { schedule, .. }) | Event::Requeued(Requeued { schedule, .. }) => {
                vec![run(), ChangedRow::existing::<Progress>(schedule)]
            }
            Event::Started(_) | Event::Retried(_) => vec![run()],
            Event::CancelRequested(_) | Event::Settled(_) => vec![run()],
        }
    }

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        let (refund, released, spent) = match self {
            Event::Started(started) => {
                let charged = run_deltas(started.charge.as_ref(), 1).into_iter();
                return charged
                    .chain(reservation_deltas(started.reservation.as_ref(), 1))
                    .collect();
            }
            Event::Retried(it) => (&it.refund, &it.released, &it.spent),
            Event::Ended(it) => (&it.refund, &it.released, &it.spent),
            Event::Queued(_) | Event::CancelRequested(_) => return Vec::new(),
            Event::Requeued(_) | Event::Settled(_) => return Vec::new(),
        };
        let refunded = run_deltas(refund.as_ref(), -1).into_iter();
        let released = reservation_deltas(released.as_ref(), -1);
        refunded.chain(released).chain(spent_deltas(spent.as_ref())).collect()
    }

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Event::Queued(_) | Event::Started(_) | Event::Requeued(_) => Vec::new(),
            Event::CancelRequested(cancel) => note(&mut cancel.note),
            Event::Settled(settled) => note(&mut settled.note),
            Event::Retried(it) => cause_and_output(Some(&mut it.cause), it.output.as_mut()),
            Event::Ended(it) => cause_and_output(it.cause.as_mut(), it.output.as_mut()),
        }
    }
}

fn cause_and_output<'a>(
    cause: Option<&'a mut Cause>,
    output: Option<&'a mut Output>,
) -> Vec<PrivateField<'a>> {
    let message = cause.map(|cause| ("message", &mut cause.message));
    message.into_iter().chain(output.map(|output| ("output", output.text.stored_mut()))).collect()
}

impl Retried {
    /// Whether the attempt was given back before it did anything.
    pub fn did_nothing(&self) -> bool {
        self.cause.code == NOT_BEGUN
    }
}

impl Queued {
    /// Whether the run is for a slot that was buffered.
    pub fn was_buffered(&self) -> bool {
        matches!(&self.occurrence, Occurrence::Slot(fired) if fired.origin == Origin::Buffer)
    }

    /// Key of the slot row that the run belongs to; each has at most one run.
    pub fn slot_key(&self) -> String {
        match &self.occurrence {
            Occurrence::Slot(fired) => slot::key(&self.schedule, fired.nominal),
            Occurrence::Manual { key } => slot::manual_key(&self.schedule, key),
            Occurrence::Backfill(fill) => slot::backfill_key(&self.schedule, fill.nominal),
        }
    }

    /// What created the slot of this run, if it was not the calendar.
    pub fn source(&self) -> Option<&Source> {
        match &self.occurrence {
            Occurrence::Slot(fired) => fired.source.as_ref(),
            Occurrence::Manual { .. } | Occurrence::Backfill(_) => None,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
