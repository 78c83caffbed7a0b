//! Requests about schedules and their slots.

use std::ops::Not;

use serde::{Deserialize, Serialize};

/// When a schedule is due, as people write it. Exactly one of the first four is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// A cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// A span, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Times of the day, such as `09:00,17:30`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<String>,
    /// One instant; without an offset it is a time in the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The zone; an interval and an instant with an offset need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// With `every`: the first time of the interval, 1970 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// With `daily`: only on these days, such as `mon-fri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// With `cron` and `daily`, for times that the clock skips: `run_after`, `skip`, `shift`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<String>,
    /// With `cron` and `daily`, for times that the clock shows twice: `first`, `second`, `both`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<String>,
}

/// What makes a schedule fire that does not go by the time. At most one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Happening {
    /// The end of a run of this schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// With `after`, how that run has to end: `success`, `failure`, `any`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// An event of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// A span since the schedule's own last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// With `again`, whether since that run's `start` or `finish`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl Happening {
    pub fn is_none(&self) -> bool {
        *self == Happening::default()
    }
}

/// What is to happen besides when and what; each has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// `skip`, `buffer_one`, `buffer_all`, `buffer_all:N`, `allow`, `allow:N`, `cancel_other`,
    /// `terminate_other`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// `latest`, `earliest`, `all`, `all:N`, `skip`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// A span: how late a missed slot may still run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// A span: the most by which a slot is delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// How often a run is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How the delays between tries grow: `INITIAL:FACTOR:CAP`, such as `1s:2:5m`, or `patient`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
    /// Failed runs in a row after which the schedule is paused; 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after: Option<u32>,
    /// What becomes of slots in a pause: `skip`, `as_missed`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// 0 to 9, the higher the sooner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Concurrency keys, `NAME` or `NAME:N`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// Runs in one UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<u32>,
    /// Tokens in one UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u32>,
    /// An amount such as `5.00`: what its runs may cost in one UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_day: Option<String>,
    /// Runs altogether.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_fires: Option<u64>,
    /// Instants between which slots count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
}

/// What a schedule does: a prompt to an agent, or a call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON text; with `tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
}

/// Adds a schedule; the same one again is not a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleAdd {
    pub name: String,
    #[serde(default)]
    pub when: When,
    /// Instead of `when`.
    #[serde(default, skip_serializing_if = "Happening::is_none")]
    pub happening: Happening,
    pub action: Action,
    /// Keep what the agent or the tool is told out of lists, logs and exports.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    /// Raises the tier above the agent's.
    #[serde(default)]
    pub tier: Option<u8>,
    #[serde(default)]
    pub terms: Terms,
    /// Does nothing until it is resumed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused: bool,
    /// Only say what would be added.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

/// Adds many schedules at once, all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleAddAll {
    /// None of them with a `dry_run` of its own.
    pub schedules: Vec<ScheduleAdd>,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

/// Changes what is given, and leaves the rest as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEdit {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    /// Another trigger; it takes the place of the one before as a whole. A zone alone moves the
    /// trigger there.
    #[serde(default)]
    pub when: Option<When>,
    #[serde(default, skip_serializing_if = "Happening::is_none")]
    pub happening: Happening,
    #[serde(default)]
    pub action: Action,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    #[serde(default)]
    pub tier: Option<u8>,
    #[serde(default)]
    pub terms: Terms,
    /// Names of terms that shall be the default again; `tier` and `sensitive` are among them here.
    #[serde(default)]
    pub unset: Vec<String>,
}

/// Runs slots of the past that have no run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBackfill {
    pub id: String,
    /// Instants; without an offset they are times in the schedule's zone.
    pub from: String,
    pub to: String,
    /// Runs at a time.
    #[serde(default)]
    pub at_once: Option<u32>,
    /// A span: from one start to the next at the least.
    #[serde(default)]
    pub gap: Option<String>,
    /// Only say what would be run.
    #[serde(default)]
    pub dry_run: bool,
    /// What a dry run said; needed for many slots.
    #[serde(default)]
    pub confirm: Option<String>,
}

/// Leaves out the rest of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBackfillEnd {
    pub id: String,
}

/// Says that something has happened, to all schedules that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventTell {
    pub name: String,
    /// Tells it from others of its name: told of again, it is the same. Made up unless given.
    #[serde(default)]
    pub id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleList {
    /// Those for this agent. A page may then have fewer than its limit, and still another after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleShow {
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulePause {
    pub id: String,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleResume {
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRemove {
    pub id: String,
}

/// Runs a schedule now; its next slot stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleFire {
    pub id: String,
}

/// Asks what became of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    pub id: String,
    /// An instant; without an offset it is a time in the schedule's zone. The last slot unless given.
    #[serde(default)]
    pub at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: String,
    pub name: String,
    /// As it is stored: `kind` and what belongs to it.
    pub trigger: serde_json::Value,
    pub tz: String,
    /// When it is due, in words.
    pub describe: String,
    /// Without its prompt or payload where that is sensitive; only to be shown by itself, and not to all.
    pub action: Action,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sensitive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// All of them, with the defaults.
    pub terms: Terms,
    /// `active`, `paused` or `ended`
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Absent when none is coming.
    pub next_run_at: Option<String>,
    pub last_run_id: Option<String>,
    pub last_run_at: Option<String>,
    /// Runs that have not ended.
    pub live: Vec<String>,
    /// How many runs there were.
    pub fires: u64,
    /// Failed runs in a row.
    pub failures: u32,
    /// Schedules that fire when a run of this one ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Backfill>,
    /// The agent that has added it, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    /// Grows with every edit.
    pub revision: u32,
    pub created_at: String,
    pub changed_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// The run that did, unless it was somebody with the token of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub agent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub by: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleAdded {
    /// In a dry run, as it would be.
    pub schedule: Schedule,
    /// False when it was there already.
    pub created: bool,
    /// The next five slots; of one that is paused, those that would come if it were resumed now.
    pub next: Vec<String>,
    /// Absent in an answer that was kept by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Absent in an answer that was kept by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Foretold>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Nothing was changed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

/// What holds a schedule where its terms leave that open: what they say, or what follows from its trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// How late its next slot may still run, should it be missed; absent where none is caught up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Most runs in this UTC day.
    pub per_day: u32,
}

/// What the standing orders will say of the runs of a schedule, if all stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foretold {
    /// Whether runs begin without a human.
    pub by_itself: bool,
    /// Absent when a run has nothing to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<crate::Ruling>,
    pub sentence: String,
}

/// One of many that were added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedOne {
    pub id: String,
    pub name: String,
    pub created: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused: bool,
    pub next: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Foretold>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulesAdded {
    /// In the order in which they were given.
    pub schedules: Vec<AddedOne>,
    /// Nothing was changed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub dry_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleEdited {
    pub schedule: Schedule,
    pub changed: bool,
    /// Of one that is paused, those that would come if it were resumed now.
    pub next: Vec<String>,
    /// Absent in an answer that was kept by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A backfill that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// The slot that it goes on with.
    pub next: Option<String>,
    pub last: String,
    pub live: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleBackfilled {
    pub schedule_id: String,
    pub first: String,
    pub last: String,
    pub slots: u64,
    /// Those that have a run already, and are left alone.
    pub taken: u64,
    /// What confirms exactly this backfill.
    pub token: String,
    pub begun: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillEnded {
    pub schedule: Schedule,
    /// False when none was under way.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTold {
    pub name: String,
    pub id: String,
    /// Schedules that wait for such events.
    pub told: u64,
    /// The runs that it has led to, also when it was told of before.
    pub runs: Vec<crate::Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleShown {
    pub schedule: Schedule,
    /// Of one that is paused, those that would come if it were resumed now.
    pub next: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    pub orders: Foretold,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePaused {
    pub schedule: Schedule,
    /// False when it was paused already.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleResumed {
    pub schedule: Schedule,
    /// False when it was not paused.
    pub changed: bool,
    /// Slots that fell into the pause and are left out.
    pub skipped: u64,
    /// Slots that wait and go on, each as soon as the overlap policy lets it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<String>,
    pub next: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRemoved {
    /// As it was before.
    pub schedule: Schedule,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleFired {
    pub run: crate::Run,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedules {
    pub schedules: Vec<Schedule>,
    /// The agent whose schedules these are, if it was asked for or if who asks reaches no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where the next page begins; absent on the last.
    pub cursor: Option<String>,
}

/// What became of a slot, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    pub schedule_id: String,
    /// The nominal instant.
    pub slot: String,
    /// The same on the clocks of the schedule's zone.
    pub wall: String,
    /// Of the closed list; `upcoming` for a slot that is not due yet, `none` for no slot at all.
    pub disposition: String,
    /// A short code, if there is one to give.
    pub reason: Option<String>,
    pub sentence: String,
    pub run_id: Option<String>,
    /// The slot that stands for this one, if it was coalesced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
}
