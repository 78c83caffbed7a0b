//! Requests about schedules and their slots.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Payload;
use crate::words::words;

words! {
    /// What keeps a queued run from starting.
    pub enum StartObstacle "obstacle" {
        /// No daemon is running.
        NoDaemon "no_daemon",
        /// The daemon is stopping.
        Stopping "stopping",
        /// The installation is frozen.
        Frozen "frozen",
    }
}

words! {
    pub enum ScheduleStatus "status" {
        Active "active",
        Paused "paused",
        /// It has no slot ahead and waits for no event.
        Ended "ended",
        /// It was removed, and fires no more.
        Removed "removed",
    }
}

words! {
    /// The outcome of a slot.
    pub enum Disposition "disposition" {
        /// Its run ended `done`.
        Ran "ran",
        /// Its run ended `done`, and started late or was caught up.
        RanLate "ran_late",
        /// Its run ended `failed`.
        Failed "failed",
        /// Its run was interrupted and may have taken effect.
        Unknown "unknown",
        /// Its run was cancelled.
        Cancelled "cancelled",
        /// Covered by the run of another slot.
        Coalesced "coalesced",
        /// An earlier run was still live.
        SkippedOverlap "skipped_overlap",
        /// Missed, and not caught up.
        SkippedMissed "skipped_missed",
        /// Due while the schedule was paused.
        SkippedPaused "skipped_paused",
        /// The budget was used up.
        SkippedBudget "skipped_budget",
        /// Denied by the policy, or not approved.
        SkippedPolicy "skipped_policy",
        /// The lease had expired.
        SkippedLease "skipped_lease",
        /// The chain of runs that triggered it was too long.
        SkippedDependency "skipped_dependency",
        /// Too many slots were waiting.
        SkippedFull "skipped_full",
        /// The schedule was changed or removed before the slot was decided.
        Superseded "superseded",
        /// Its run is queued or running.
        Fired "fired",
        /// Its run waits for approval.
        Parked "parked",
        /// Waits for an earlier run of the schedule to end.
        Buffered "buffered",
        /// Not due yet.
        Upcoming "upcoming",
        /// There is no such slot.
        NoSlot "none",
    }
}

/// The trigger of a schedule that follows the time. It has exactly one of `cron`, `every`, `daily` and `at`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// A cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// An interval, such as `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Times of the day, such as `09:00,17:30`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily: Option<String>,
    /// A single time; without an offset it is local to `tz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The time zone; not needed for `every`, nor for `at` with an offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// With `every`: the time from which intervals are counted; 1970 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// With `daily`: only on these days, such as `mon-fri`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// With `cron` and `daily`, for times that a clock change skips: `run_after`, `skip`, `shift`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<String>,
    /// With `cron` and `daily`, for times that a clock change repeats: `first`, `second`, `both`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<String>,
}

/// The trigger of a schedule that follows runs or events. It has at most one of `after`, `event` and `again`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventTrigger {
    /// Fires when a run of the schedule with this id ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// With `after`, how that run must end: `success`, `failure`, `any`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// Fires when an event with this name is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Fires this long after the schedule's own last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// With `again`, counted from that run's `start` or `finish`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl EventTrigger {
    /// Whether no trigger is given.
    pub fn is_none(&self) -> bool {
        *self == EventTrigger::default()
    }
}

/// The options of a schedule; each has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// What to do with a slot while a run of the schedule is live: `skip`, `buffer_one`, `buffer_all`,
    /// `buffer_all:N`, `allow`, `allow:N`, `cancel_other`, `terminate_other`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// Which missed slots to run: `latest`, `earliest`, `all`, `all:N`, `skip`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// How late a missed slot may still run, such as `1h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Longest random delay of a slot, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// Most attempts of a run; absent for the default: 5, and at tier 2 one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The delays between attempts: `INITIAL:FACTOR:CAP`, such as `5s:2:5m`, or `patient`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
    /// Failed runs in a row after which the schedule is paused; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<u32>,
    /// What to do with slots that were due during a pause: `skip`, `as_missed`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// 0 to 9; higher priorities start first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Concurrency keys, `NAME` or `NAME:N`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Most runs in one UTC day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<u32>,
    /// Most tokens in one UTC day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u32>,
    /// Most money that its runs may cost in one UTC day, such as `5.00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money_per_day: Option<String>,
    /// Total number of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fires: Option<u64>,
    /// No slots before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// No slots after this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
}

/// What a schedule does: prompt an agent, or call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// With `tool`: its arguments, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// The action of an existing schedule. Its payload is shown as it was stored, also if an older version
/// stored one that a request cannot have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StoredAction {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

impl From<Action> for StoredAction {
    fn from(Action { agent, prompt, tool, payload }: Action) -> StoredAction {
        StoredAction { agent, prompt, tool, payload: payload.map(String::from) }
    }
}

/// Adds a schedule. Adding the same schedule again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleAdd {
    pub name: String,
    #[serde(default)]
    pub when: When,
    /// A trigger by runs or events, instead of `when`.
    #[serde(rename = "happening", default, skip_serializing_if = "EventTrigger::is_none")]
    pub event_trigger: EventTrigger,
    pub action: Action,
    /// Hide the prompt or payload in lists, ledger and exports.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    /// A higher tier than the agent's.
    #[serde(default)]
    pub tier: Option<u8>,
    #[serde(default)]
    pub terms: Terms,
    /// Add the schedule paused; it fires only after it is resumed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused: bool,
    /// Only return what would be added.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

impl ScheduleAdd {
    /// The agent that the schedule prompts. `None` stands for a tool call.
    pub(crate) fn agents(&self) -> Vec<Option<&str>> {
        vec![self.action.agent.as_deref()]
    }
}

impl ScheduleAddAll {
    /// The agents that the schedules prompt.
    pub(crate) fn agents(&self) -> Vec<Option<&str>> {
        self.schedules.iter().flat_map(ScheduleAdd::agents).collect()
    }
}

/// Adds several schedules: all of them, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleAddAll {
    /// The schedules; none may set its own `dry_run`.
    pub schedules: Vec<ScheduleAdd>,
    /// Only return what would be added.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

/// Changes a schedule. Omitted fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEdit {
    /// The id of the schedule, `sch_…`.
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    /// A new trigger, which replaces the whole previous one. If only `tz` is given, the trigger moves to that
    /// time zone.
    #[serde(default)]
    pub when: Option<When>,
    /// A new trigger by runs or events, instead of `when`.
    #[serde(rename = "happening", default, skip_serializing_if = "EventTrigger::is_none")]
    pub event_trigger: EventTrigger,
    #[serde(default)]
    pub action: Action,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    #[serde(default)]
    pub tier: Option<u8>,
    #[serde(default)]
    pub terms: Terms,
    /// Names of terms to reset to their default; also `tier` and `sensitive`.
    #[serde(default)]
    pub unset: Vec<String>,
}

/// Runs past slots that have no run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBackfill {
    /// The id of the schedule, `sch_…`.
    pub id: String,
    /// The first instant; without an offset it is local to the schedule's time zone.
    pub from: String,
    /// The last instant; without an offset it is local to the schedule's time zone.
    pub to: String,
    /// Most concurrent runs.
    #[serde(default)]
    pub at_once: Option<u32>,
    /// Shortest time between two starts, such as `10s`.
    #[serde(default)]
    pub gap: Option<String>,
    /// Only return what would be run.
    #[serde(default)]
    pub dry_run: bool,
    /// The `token` of a dry run; required for many slots.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// Ends a backfill; its remaining slots do not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBackfillEnd {
    /// The id of the schedule, `sch_…`.
    pub id: String,
}

/// Publishes an event, which fires the schedules that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventPublish {
    pub name: String,
    /// The id of the event; publishing the same id again fires nothing twice. Generated if absent.
    #[serde(default)]
    pub id: Option<String>,
}

/// Lists schedules, the next due first; those that are not due come last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleList {
    /// Only schedules that prompt this agent. A page may then have fewer items than `limit` although another page follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    pub cursor: Option<String>,
    /// Sort by id. Each schedule is then listed once, even if schedules fire or change between two pages.
    #[serde(skip_serializing_if = "Not::not")]
    pub by_id: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleShow {
    /// The id of the schedule, `sch_…`.
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePause {
    /// The id of the schedule, `sch_…`.
    pub id: String,
    /// The reason, for the people who read the history.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleResume {
    /// The id of the schedule, `sch_…`.
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRemove {
    /// The id of the schedule, `sch_…`.
    pub id: String,
}

/// Starts a run of a schedule now; its next slot does not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFire {
    /// The id of the schedule, `sch_…`.
    pub id: String,
}

/// Explains why a slot ran, was skipped or is late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The id of the schedule, `sch_…`.
    pub id: String,
    /// The time of the slot; without an offset it is in the schedule's time zone. Default: the last slot.
    #[serde(default)]
    pub at: Option<String>,
}

/// A schedule and its present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    pub id: String,
    pub name: String,
    /// The trigger as stored: `kind` and its parameters.
    pub trigger: serde_json::Value,
    pub tz: String,
    /// The trigger as a sentence.
    pub describe: String,
    /// Without prompt or payload if the schedule is sensitive, in lists, and for callers that may not read them.
    pub action: StoredAction,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// All terms, including those with default values.
    pub terms: Terms,
    pub status: ScheduleStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// When the next slot is due; absent if there is none.
    pub next_run_at: Option<String>,
    pub last_run_id: Option<String>,
    pub last_run_at: Option<String>,
    /// The ids of the runs that have not ended.
    pub live: Vec<String>,
    /// Number of runs so far.
    pub fires: u64,
    /// Number of failed runs in a row.
    pub failures: u32,
    /// The ids of the schedules that fire when a run of this one ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Backfill>,
    /// The agent that added the schedule; absent if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<AddingAgent>,
    /// Increases with every edit.
    pub revision: u32,
    pub created_at: String,
    pub changed_at: String,
}

/// The agent that added a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddingAgent {
    /// The run that added the schedule; absent if a client with the agent's token did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub agent: String,
}

/// Who paused a schedule, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    pub by: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleAdded {
    /// The schedule; in a dry run, as it would be added.
    pub schedule: Schedule,
    /// False if the schedule already existed.
    pub created: bool,
    /// The next five slots; of a paused schedule, the slots if it were resumed now.
    pub next: Vec<String>,
    /// Absent in a replayed response of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Absent in a replayed response of an earlier version.
    #[serde(rename = "orders", default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyPreview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether this was a dry run, which changes nothing.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

/// The effective limits of a schedule: from its terms, or derived from its trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// How late the next slot may still run if it is missed; absent if missed slots do not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Most runs in the present UTC day.
    pub per_day: u32,
}

/// What the policy would decide about the runs of a schedule now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPreview {
    /// Whether runs start without a human.
    pub by_itself: bool,
    /// The decision; absent if a run could not start anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<crate::PolicyDecision>,
    pub sentence: String,
}

/// One of several added schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddedSchedule {
    pub id: String,
    pub name: String,
    pub created: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused: bool,
    pub next: Vec<String>,
    #[serde(rename = "orders", default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyPreview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulesAdded {
    /// The schedules, in the order of the request.
    pub schedules: Vec<AddedSchedule>,
    /// Whether this was a dry run, which changes nothing.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleEdited {
    pub schedule: Schedule,
    pub changed: bool,
    /// The next slots; of a paused schedule, the slots if it were resumed now.
    pub next: Vec<String>,
    /// Absent in a replayed response of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Absent in a replayed response of an earlier version.
    #[serde(rename = "orders", default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyPreview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A backfill in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backfill {
    /// The next slot to run.
    pub next: Option<String>,
    /// The last slot to run.
    pub last: String,
    /// The ids of its runs that have not ended.
    pub live: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleBackfilled {
    pub schedule_id: String,
    pub first: String,
    pub last: String,
    /// Number of slots in the range.
    pub slots: u64,
    /// Number of these slots that already have a run and are skipped.
    pub taken: u64,
    /// The `confirm` of a request for exactly this backfill.
    pub token: String,
    /// Whether the backfill was started; false in a dry run.
    #[serde(rename = "begun")]
    pub started: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackfillEnded {
    pub schedule: Schedule,
    /// False if no backfill was in progress.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventPublished {
    pub name: String,
    pub id: String,
    /// Number of schedules that wait for events with this name.
    #[serde(rename = "told")]
    pub listeners: u64,
    /// The runs that the event started, including those of an earlier publication.
    pub runs: Vec<crate::Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleShown {
    pub schedule: Schedule,
    /// The next slots; of a paused schedule, the slots if it were resumed now.
    pub next: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    #[serde(rename = "orders")]
    pub policy: PolicyPreview,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SchedulePaused {
    pub schedule: Schedule,
    /// False if the schedule was already paused.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleResumed {
    pub schedule: Schedule,
    /// False if the schedule was not paused.
    pub changed: bool,
    /// Number of slots that were due during the pause and are skipped.
    pub skipped: u64,
    /// Waiting slots that run as soon as the overlap policy allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<String>,
    pub next: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRemoved {
    /// The schedule as it was, with the status `removed` and no next run.
    pub schedule: Schedule,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleFired {
    pub run: crate::Run,
    /// Why the run does not start for now, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<StartObstacle>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedules {
    pub schedules: Vec<Schedule>,
    /// The agent whose schedules these are, if the request named it or the caller may see no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where the next page starts; absent on the last page.
    pub cursor: Option<String>,
}

/// The outcome of a slot, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    pub schedule_id: String,
    /// The nominal time of the slot.
    pub slot: String,
    /// The nominal time in the schedule's time zone.
    pub wall: String,
    pub disposition: Disposition,
    /// Why, as a short code, if there is one.
    pub reason: Option<String>,
    /// The explanation.
    pub sentence: String,
    pub run_id: Option<String>,
    /// The slot into which this one was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
}
