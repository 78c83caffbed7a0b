//! A slot: one nominal occurrence of a schedule, and what became of it.
//!
//! A slot that got a run says which; what became of it then follows from the run, so that the two
//! never disagree. Adjacent slots with one fate share a row. The list of dispositions is closed:
//! adding one is a change of format.

use calendar::{Calendar, Span, Zone, format_instant};
use serde::{Deserialize, Serialize};

use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::progress::{Progress, Status};
use crate::run::{self, Lack, Occurrence, Origin, Run};
use crate::schedule::Event;
use crate::time::Timestamp;

/// A start later than this is late.
pub const LATE_US: i64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Of the schedule.
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// What clocks in the zone showed at the last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wall: String,
    pub decided_at: Timestamp,
    /// Of several, where it was recorded: which instants they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<Timing>>,
    pub fate: Fate,
}

/// When a schedule fired as slots of it were decided. An edit changes that, and not what was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    pub trigger: calendar::Trigger,
    pub zone: Zone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fate {
    Run {
        run: RunId,
        origin: Origin,
        /// From the instant at which it was due to that of the decision.
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

/// Why a slot got no run, where the disposition leaves that open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Older than the catch-up window.
    Window,
    /// The policy for missed slots.
    Policy,
    /// More were missed than the policy runs.
    Cap,
    /// The schedule was removed.
    Removed,
    /// The schedule was changed.
    Changed,
}

/// What made a slot, if not the time. It is taken once, however often it is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A run of another schedule has ended.
    Run(RunId),
    /// An event, by the id that whoever told of it gave it.
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

/// The one list of dispositions: variant, stored name, whether it is final.
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

            /// Whether it never changes again.
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
    RanLate "ran_late" true "its run ended `done`, and began more than a second late or was caught up";
    Failed "failed" true "its run ended `failed`, retries included";
    Unknown "unknown" true "its run was cut off in the middle of an effect; never repeated on its own";
    Cancelled "cancelled" true "a person or a rule cancelled the run";
    Coalesced "coalesced" true "missed or buffered, and the run of another slot stands for it";
    SkippedOverlap "skipped_overlap" true "an earlier run was still live";
    SkippedMissed "skipped_missed" true "missed, and not caught up";
    SkippedPaused "skipped_paused" true "due while the schedule was paused";
    SkippedBudget "skipped_budget" true "the budget was used up";
    SkippedPolicy "skipped_policy" true "denied by policy, or the approval was refused or expired";
    SkippedLease "skipped_lease" true "the autonomy lease had run out";
    SkippedDependency "skipped_dependency" true "what it depends on did not happen in time";
    SkippedFull "skipped_full" true "too many slots were waiting";
    Superseded "superseded" true "the schedule was changed or removed before the slot was decided";
    Fired "fired" false "its run is queued or running";
    Parked "parked" false "its run waits for a human";
    Buffered "buffered" false "waits for an earlier run of the schedule to end";
}

/// The row of a slot, or of the last of several: rows of a schedule sort by time, and the first at or
/// after an instant is the one that covers it, if any does.
pub fn key(schedule: &ScheduleId, last: Timestamp) -> String {
    format!("{schedule}/{:016}", last.as_micros().max(0))
}

/// Above the rows of all slots of a schedule that the time has made or things that happened, and below its
/// others.
pub fn end_key(schedule: &ScheduleId) -> String {
    format!("{schedule}/:")
}

/// The row of a run that was started by hand: its key is taken once.
pub fn manual_key(schedule: &ScheduleId, key: &str) -> String {
    format!("{schedule}/manual/{key}")
}

/// The row of a slot that something made: each thing makes one.
pub fn source_key(schedule: &ScheduleId, source: &Source) -> String {
    match source {
        Source::Run(run) => format!("{schedule}/run/{run}"),
        Source::Event(id) => format!("{schedule}/event/{id}"),
    }
}

/// The row of a slot that was run by a backfill. What was decided about it when it was due stays.
pub fn backfill_key(schedule: &ScheduleId, nominal: Timestamp) -> String {
    format!("{schedule}/backfill/{:016}", nominal.as_micros().max(0))
}

/// The slot after an event.
pub fn apply(slot: Option<Slot>, body: &Body) -> Option<Slot> {
    match body {
        Body::Run(run, run::Event::Queued(queued)) => {
            let fate = |origin, late_us| Fate::Run { run: run.clone(), origin, late_us };
            Some(match &queued.occurrence {
                Occurrence::Slot(it) => Slot {
                    revision: queued.revision,
                    first: it.nominal,
                    last: it.nominal,
                    count: 1,
                    wall: it.wall.clone(),
                    decided_at: slot.map_or(queued.at, |slot| slot.decided_at),
                    timing: None,
                    fate: fate(it.origin, it.late_us),
                },
                Occurrence::Backfill(fill) => Slot {
                    revision: queued.revision,
                    first: fill.nominal,
                    last: fill.nominal,
                    count: 1,
                    wall: fill.wall.clone(),
                    decided_at: queued.at,
                    timing: None,
                    fate: fate(Origin::Backfill, 0),
                },
                Occurrence::Manual { .. } => Slot {
                    revision: queued.revision,
                    first: queued.at,
                    last: queued.at,
                    count: 1,
                    wall: String::new(),
                    decided_at: queued.at,
                    timing: None,
                    fate: fate(Origin::Manual, 0),
                },
            })
        }
        Body::Schedule(_, Event::Passed(passed)) => Some(Slot {
            revision: passed.revision,
            first: passed.first,
            last: passed.last,
            count: passed.count,
            wall: passed.wall.clone(),
            decided_at: passed.at,
            timing: passed.timing.clone(),
            fate: Fate::Passed {
                disposition: passed.disposition,
                reason: passed.reason,
                into: passed.into,
            },
        }),
        Body::Schedule(_, Event::Buffered(buffered)) => Some(Slot {
            revision: buffered.revision,
            first: buffered.slot,
            last: buffered.slot,
            count: 1,
            wall: buffered.wall.clone(),
            decided_at: buffered.at,
            timing: None,
            fate: Fate::Buffered,
        }),
        Body::Schedule(_, Event::Dropped(dropped)) => slot.map(|slot| Slot {
            fate: Fate::Passed {
                disposition: dropped.disposition,
                reason: dropped.reason,
                into: dropped.into,
            },
            ..slot
        }),
        Body::Schedule(..)
        | Body::Run(..)
        | Body::Approval(..)
        | Body::Agent(..)
        | Body::Authority(..)
        | Body::Token(..)
        | Body::Tool(..)
        | Body::Watch(..) => slot,
    }
}

impl Slot {
    /// What became of it. `run` is its run, if it got one.
    pub fn disposition(&self, run: Option<&Run>) -> Disposition {
        match (&self.fate, run) {
            (Fate::Passed { disposition, .. }, _) => *disposition,
            (Fate::Buffered, _) => Disposition::Buffered,
            (Fate::Run { .. }, None) => Disposition::Fired,
            (Fate::Run { origin, late_us, .. }, Some(run)) => match &run.first_outcome {
                None if run.state == run::State::Parked => Disposition::Parked,
                None => Disposition::Fired,
                Some(_) if run.lacking == Some(Lack::Lease) => Disposition::SkippedLease,
                Some(_) if run.lacking == Some(Lack::Budget) => Disposition::SkippedBudget,
                Some(_) if run.refused => Disposition::SkippedPolicy,
                Some(run::Outcome::Done) => {
                    let late_us = late_us.saturating_add(run.queued_us());
                    let was_late = LATE_US < late_us || *origin == Origin::CatchUp;
                    if was_late { Disposition::RanLate } else { Disposition::Ran }
                }
                Some(run::Outcome::Failed) => Disposition::Failed,
                Some(run::Outcome::Cancelled) => Disposition::Cancelled,
                Some(run::Outcome::Unknown) => Disposition::Unknown,
            },
        }
    }

    /// Whether an instant is one of its slots: between those of a range there is none. `calendar` is that of its
    /// schedule as it was then, if that is known.
    pub fn has(&self, at: Timestamp, calendar: Option<&Calendar>) -> bool {
        let at_us = at.as_micros();
        let is_between = self.first < at && at < self.last;
        let is_on = |calendar: &Calendar| calendar.last_until(at_us) == Some(at_us);
        at == self.first || at == self.last || (is_between && calendar.is_some_and(is_on))
    }

    /// What became of it, in a sentence. `progress` is that of its schedule.
    pub fn sentence(&self, run: Option<&Run>, progress: &Progress) -> String {
        let at = format_instant(self.last.as_micros());
        let slots = match self.count {
            1 => format!("the slot of {at}"),
            count => {
                let first = format_instant(self.first.as_micros());
                format!("the {count} slots from {first} to {at}")
            }
        };
        match &self.fate {
            Fate::Buffered => format!("{slots} {}", awaits(progress)),
            Fate::Passed { disposition: Disposition::Coalesced, into, .. } => {
                let (own, them) =
                    if self.count == 1 { ("its own", "it") } else { ("their own", "them") };
                let into = into.map_or_else(
                    || "another slot".to_owned(),
                    |into| format!("the slot of {}", format_instant(into.as_micros())),
                );
                format!("{slots} did not run on {own}: {into} stands for {them}")
            }
            Fate::Passed { disposition, reason, .. } => {
                format!("{slots} did not run: {}", self.why_not(*disposition, *reason))
            }
            Fate::Run { run: id, origin, late_us } => {
                let late_us = late_us.saturating_add(run.map_or(0, Run::queued_us));
                let late = lateness(late_us);
                let fired = match origin {
                    Origin::Slot => format!("{slots} fired run {id}{late}"),
                    Origin::CatchUp => format!("{slots} was caught up by run {id}{late}"),
                    Origin::Buffer => {
                        format!("{slots} fired run {id}{late}, after an earlier run had ended")
                    }
                    Origin::Manual => format!("run {id} was started by hand at {at}"),
                    Origin::After => {
                        format!("at {at} a run that it follows ended: this fired run {id}")
                    }
                    Origin::Event => format!("at {at} its event happened: this fired run {id}"),
                    Origin::Backfill => format!("{slots} was run by a backfill: run {id}"),
                };
                let stands = run.map_or_else(String::new, |run| format!("; {}", run.summary()));
                format!("{fired}{stands}")
            }
        }
    }

    fn why_not(&self, disposition: Disposition, reason: Option<Reason>) -> String {
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
                "an earlier run was still live, and the overlap policy lets no other start beside it"
                    .to_owned()
            }
            (Disposition::SkippedPaused, None) => {
                format!("{it} {was} due while the schedule was paused")
            }
            (Disposition::SkippedBudget, None) => {
                "the schedule had already run as often that day as it may".to_owned()
            }
            (Disposition::SkippedFull, None) => {
                "as many slots were waiting as the schedule lets wait".to_owned()
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

/// What a slot of a schedule waits for that waits.
fn awaits(progress: &Progress) -> &'static str {
    match (&progress.status, progress.live.is_empty()) {
        (Status::Paused(_), true) => "runs when the schedule is resumed",
        (Status::Paused(_), false) => {
            "runs when an earlier run has ended and the schedule is resumed"
        }
        (Status::Active | Status::Removed, _) => "waits for an earlier run of the schedule to end",
    }
}

/// In whole seconds, if that is any.
fn lateness(late_us: i64) -> String {
    let seconds = late_us / 1_000_000;
    match Span::from_millis(seconds.saturating_mul(1_000)) {
        Some(late) => format!(" {} late", late.describe()),
        // Nothing, or more than a span can be.
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
