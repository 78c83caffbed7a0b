//! A slot: one nominal occurrence of a schedule, and its outcome.
//!
//! A slot that got a run refers to it, and its disposition is derived from the run, so the two cannot
//! disagree. Adjacent slots with the same outcome share a row. The list of dispositions is closed: adding
//! one changes the format.

use calendar::{Calendar, Span, Zone, format_instant};
use serde::{Deserialize, Serialize};

use crate::noun::{ChangedRow, NounState};
use crate::progress::{Progress, Status};
use crate::run::{self, Occurrence, Origin, Run, StartBlocker};
use crate::schedule::Event;
use crate::time::Timestamp;
use crate::{EventBody, Noun, RunId, ScheduleId};

/// A run that starts later than this after its slot is late.
pub const LATE_US: i64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Revision of the schedule.
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// Wall-clock time of the last slot in the schedule's zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wall: String,
    pub decided_at: Timestamp,
    /// For several slots: the trigger that produced them; absent in older rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<Timing>>,
    #[serde(rename = "fate")]
    pub outcome: SlotOutcome,
}

/// Trigger and zone of a schedule when its slots were decided. A later edit does not change them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    pub trigger: calendar::Trigger,
    pub zone: Zone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SlotOutcome {
    Run {
        run: RunId,
        origin: Origin,
        /// From the due instant to the decision.
        late_us: i64,
    },
    Passed {
        disposition: Disposition,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<Timestamp>,
    },
    Buffered,
}

/// Why a slot got no run, where the disposition does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The slot is older than the catch-up window.
    Window,
    /// The policy for missed slots skips them.
    Policy,
    /// More slots were missed than the policy runs.
    Cap,
    /// The schedule was removed.
    Removed,
    /// The schedule was changed.
    Changed,
}

/// What created a slot of an event trigger. Each source creates at most one slot of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The run of another schedule that ended.
    Run(RunId),
    /// The id that the publisher gave the event.
    Event(String),
}

impl Reason {
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Window => "window",
            Reason::Policy => "policy",
            Reason::Cap => "cap",
            Reason::Removed => "removed",
            Reason::Changed => "changed",
        }
    }
}

/// The list of dispositions: variant, stored name, whether it is final, meaning.
macro_rules! dispositions {
    ($($variant:ident $name:literal $is_final:literal $meaning:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Disposition {
            $(#[doc = $meaning] #[serde(rename = $name)] $variant,)*
        }

        impl Disposition {
            pub const ALL: &[Disposition] = &[$(Disposition::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Disposition::$variant => $name,)* }
            }

            /// Whether it can no longer change.
            pub const fn is_final(self) -> bool {
                match self { $(Disposition::$variant => $is_final,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Disposition::$variant => $meaning,)* }
            }
        }
    };
}

dispositions! {
    Ran "ran" true "its run ended `done`";
    RanLate "ran_late" true "its run ended `done`, and started more than a second late or was caught up";
    Failed "failed" true "its run ended `failed`, retries included";
    Unknown "unknown" true "its run was interrupted and may have taken effect; never repeated automatically";
    Cancelled "cancelled" true "a person or a rule cancelled the run";
    Coalesced "coalesced" true "missed or buffered, and merged into another slot";
    SkippedOverlap "skipped_overlap" true "an earlier run was still live";
    SkippedMissed "skipped_missed" true "missed, and not caught up";
    SkippedPaused "skipped_paused" true "due while the schedule was paused";
    SkippedBudget "skipped_budget" true "the budget was used up";
    SkippedPolicy "skipped_policy" true "denied by policy, or the approval was refused or expired";
    SkippedLease "skipped_lease" true "the lease had expired";
    SkippedDependency "skipped_dependency" true "the chain of runs that triggered it was too long";
    SkippedFull "skipped_full" true "too many slots were waiting";
    Superseded "superseded" true "the schedule was changed or removed before the slot was decided";
    Fired "fired" false "its run is queued or running";
    Parked "parked" false "its run waits for approval";
    Buffered "buffered" false "waits for an earlier run of the schedule to end";
}

/// Row key of a slot, or of the last of several slots. The rows of a schedule sort by time, so the first
/// row at or after an instant is the one that covers it, if any does.
pub fn key(schedule: &ScheduleId, last: Timestamp) -> String {
    format!("{schedule}/{:016}", last.as_micros().max(0))
}

/// Upper bound of the row keys of a schedule's calendar and event slots; its other rows sort above.
pub fn end_key(schedule: &ScheduleId) -> String {
    format!("{schedule}/:")
}

/// Row key of a manual run: each key starts at most one.
pub fn manual_key(schedule: &ScheduleId, key: &str) -> String {
    format!("{schedule}/manual/{key}")
}

/// Row key of a slot by its source: each source creates at most one.
pub fn source_key(schedule: &ScheduleId, source: &Source) -> String {
    match source {
        Source::Run(run) => format!("{schedule}/run/{run}"),
        Source::Event(id) => format!("{schedule}/event/{id}"),
    }
}

/// Row key of a slot that a backfill ran. The row of the original decision stays unchanged.
pub fn backfill_key(schedule: &ScheduleId, nominal: Timestamp) -> String {
    format!("{schedule}/backfill/{:016}", nominal.as_micros().max(0))
}

/// The row of a slot that an event decides first.
pub(crate) fn new_row(key: String) -> ChangedRow {
    ChangedRow { noun: Noun::Slot, id: key, is_new: true }
}

/// The row of a slot that an earlier event decided.
pub(crate) fn existing_row(key: String) -> ChangedRow {
    ChangedRow { noun: Noun::Slot, id: key, is_new: false }
}

impl NounState for Slot {
    /// A row key: [`key`], [`manual_key`], [`source_key`] or [`backfill_key`].
    type Id = str;

    fn apply(_: &str, slot: Option<Slot>, body: &EventBody) -> Option<Slot> {
        apply(slot, body)
    }
}

/// Returns the slot after an event.
fn apply(slot: Option<Slot>, body: &EventBody) -> Option<Slot> {
    match body {
        EventBody::Run(run, run::Event::Queued(queued)) => {
            let run_outcome =
                |origin, late_us| SlotOutcome::Run { run: run.clone(), origin, late_us };
            Some(match &queued.occurrence {
                Occurrence::Slot(it) => Slot {
                    revision: queued.revision,
                    first: it.nominal,
                    last: it.nominal,
                    count: 1,
                    wall: it.wall.clone(),
                    decided_at: slot.map_or(queued.at, |slot| slot.decided_at),
                    timing: None,
                    outcome: run_outcome(it.origin, it.late_us),
                },
                Occurrence::Backfill(fill) => Slot {
                    revision: queued.revision,
                    first: fill.nominal,
                    last: fill.nominal,
                    count: 1,
                    wall: fill.wall.clone(),
                    decided_at: queued.at,
                    timing: None,
                    outcome: run_outcome(Origin::Backfill, 0),
                },
                Occurrence::Manual { .. } => Slot {
                    revision: queued.revision,
                    first: queued.at,
                    last: queued.at,
                    count: 1,
                    wall: String::new(),
                    decided_at: queued.at,
                    timing: None,
                    outcome: run_outcome(Origin::Manual, 0),
                },
            })
        }
        EventBody::Schedule(_, Event::Passed(passed)) => Some(Slot {
            revision: passed.revision,
            first: passed.first,
            last: passed.last,
            count: passed.count,
            wall: passed.wall.clone(),
            decided_at: passed.at,
            timing: passed.timing.clone(),
            outcome: SlotOutcome::Passed {
                disposition: passed.disposition,
                reason: passed.reason,
                into: passed.into,
            },
        }),
        EventBody::Schedule(_, Event::Buffered(buffered)) => Some(Slot {
            revision: buffered.revision,
            first: buffered.slot,
            last: buffered.slot,
            count: 1,
            wall: buffered.wall.clone(),
            decided_at: buffered.at,
            timing: None,
            outcome: SlotOutcome::Buffered,
        }),
        EventBody::Schedule(_, Event::Dropped(dropped)) => slot.map(|slot| Slot {
            outcome: SlotOutcome::Passed {
                disposition: dropped.disposition,
                reason: dropped.reason,
                into: dropped.into,
            },
            ..slot
        }),
        _ => slot,
    }
}

impl Slot {
    /// The disposition. `run` is the slot's run, if it has one.
    pub fn disposition(&self, run: Option<&Run>) -> Disposition {
        match (&self.outcome, run) {
            (SlotOutcome::Passed { disposition, .. }, _) => *disposition,
            (SlotOutcome::Buffered, _) => Disposition::Buffered,
            (SlotOutcome::Run { .. }, None) => Disposition::Fired,
            (SlotOutcome::Run { origin, late_us, .. }, Some(run)) => match &run.first_outcome {
                None if run.state == run::State::Parked => Disposition::Parked,
                None => Disposition::Fired,
                Some(_) if run.blocked_by == Some(StartBlocker::Lease) => Disposition::SkippedLease,
                Some(_) if run.blocked_by == Some(StartBlocker::Budget) => {
                    Disposition::SkippedBudget
                }
                Some(_) if run.refused => Disposition::SkippedPolicy,
                Some(run::Outcome::Done) => {
                    let late_us = late_us.saturating_add(run.first_wait_us());
                    let was_late = LATE_US < late_us || *origin == Origin::CatchUp;
                    if was_late { Disposition::RanLate } else { Disposition::Ran }
                }
                Some(run::Outcome::Failed) => Disposition::Failed,
                Some(run::Outcome::Cancelled) => Disposition::Cancelled,
                Some(run::Outcome::Unknown) => Disposition::Unknown,
            },
        }
    }

    /// Whether an instant is one of the slots of this row. `calendar` is the one that produced them, if
    /// known; without it only the first and the last are recognised.
    pub fn covers(&self, at: Timestamp, calendar: Option<&Calendar>) -> bool {
        let at_us = at.as_micros();
        let is_between = self.first < at && at < self.last;
        let is_on = |calendar: &Calendar| calendar.last_at_or_before(at_us) == Some(at_us);
        at == self.first || at == self.last || (is_between && calendar.is_some_and(is_on))
    }

    /// Describes the outcome in a sentence. `progress` is that of its schedule.
    pub fn describe(&self, run: Option<&Run>, progress: &Progress) -> String {
        let at = format_instant(self.last.as_micros());
        let slots = match self.count {
            1 => format!("the slot of {at}"),
            count => {
                let first = format_instant(self.first.as_micros());
                format!("the {count} slots from {first} to {at}")
            }
        };
        match &self.outcome {
            SlotOutcome::Buffered => format!("{slots} {}", waiting_for(progress)),
            SlotOutcome::Passed { disposition: Disposition::Coalesced, into, .. } => {
                let they_were = if self.count == 1 { "it was" } else { "they were" };
                let into = into.map_or_else(
                    || "another slot".to_owned(),
                    |into| format!("the slot of {}", format_instant(into.as_micros())),
                );
                format!("{slots} did not run: {they_were} merged into {into}")
            }
            SlotOutcome::Passed { disposition, reason, .. } => {
                format!("{slots} did not run: {}", self.skip_reason(*disposition, *reason))
            }
            SlotOutcome::Run { run: id, origin, late_us } => {
                let late_us = late_us.saturating_add(run.map_or(0, Run::first_wait_us));
                let late = lateness(late_us);
                let fired = match origin {
                    Origin::Slot => format!("{slots} fired run {id}{late}"),
                    Origin::CatchUp => format!("{slots} was caught up by run {id}{late}"),
                    Origin::Buffer => {
                        format!("{slots} fired run {id}{late}, after an earlier run had ended")
                    }
                    Origin::Manual => format!("run {id} was started by hand at {at}"),
                    Origin::After => {
                        format!("at {at} a run that it depends on ended and fired run {id}")
                    }
                    Origin::Event => format!("at {at} its event fired run {id}"),
                    Origin::Backfill => format!("{slots} was run by a backfill: run {id}"),
                };
                let state = run.map_or_else(String::new, |run| format!("; {}", run.summary()));
                format!("{fired}{state}")
            }
        }
    }

    fn skip_reason(&self, disposition: Disposition, reason: Option<Reason>) -> String {
        let (it, was) = if self.count == 1 { ("it", "was") } else { ("they", "were") };
        let decided = format_instant(self.decided_at.as_micros());
        match (disposition, reason) {
            (_, Some(Reason::Window)) => {
                format!("{it} {was} decided at {decided}, outside the catch-up window")
            }
            (_, Some(Reason::Policy)) => {
                format!("{it} {was} missed until {decided}, and the schedule skips missed slots")
            }
            (_, Some(Reason::Cap)) => {
                "more slots were missed than the schedule catches up".to_owned()
            }
            (_, Some(Reason::Removed)) => {
                format!("the schedule was removed before {it} could run")
            }
            (_, Some(Reason::Changed)) => {
                format!("the schedule was changed before {it} could run")
            }
            (Disposition::SkippedOverlap, None) => {
                "an earlier run was still live, and the overlap policy allows no other run beside it"
                    .to_owned()
            }
            (Disposition::SkippedPaused, None) => {
                format!("{it} {was} due while the schedule was paused")
            }
            (Disposition::SkippedBudget, None) => {
                format!("a budget of the day was used up at {decided}")
            }
            (Disposition::SkippedFull, None) => {
                "the schedule already had the most waiting slots allowed".to_owned()
            }
            (disposition, None) => disposition.meaning().to_owned(),
        }
    }
}

impl Timing {
    pub fn calendar(&self) -> Option<Calendar> {
        Calendar::new(self.trigger.clone(), self.zone.clone()).ok()
    }
}

impl From<&Calendar> for Timing {
    fn from(calendar: &Calendar) -> Timing {
        Timing { trigger: calendar.trigger().clone(), zone: calendar.zone().clone() }
    }
}

/// Describes what a buffered slot waits for.
fn waiting_for(progress: &Progress) -> &'static str {
    match (&progress.status, progress.live.is_empty()) {
        (Status::Paused(_), true) => "runs when the schedule is resumed",
        (Status::Paused(_), false) => {
            "runs when an earlier run has ended and the schedule is resumed"
        }
        (Status::Active | Status::Removed, _) => "waits for an earlier run of the schedule to end",
    }
}

/// Describes a delay in whole seconds; empty below one.
fn lateness(late_us: i64) -> String {
    let seconds = late_us / 1_000_000;
    match Span::from_millis(seconds.saturating_mul(1_000)) {
        Some(late) => format!(" {} late", late.describe()),
        // A span can represent neither 0 nor very long delays.
        None if seconds <= 0 => String::new(),
        None => format!(" {seconds} seconds late"),
    }
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}
