//! The wire types: requests, responses and errors that the CLI, MCP and HTTP share.
//!
//! This crate makes no decisions. A client sends a request to a [`Handle`] and shows the response; the
//! handle may work in this process or over a socket. The serde names are the wire format, and `--json`
//! prints them.

mod agent;
mod approval;
mod authority;
mod call;
mod config;
pub mod display;
mod error;
pub mod json;
mod ledger;
mod notice;
mod requests;
mod role;
mod run;
mod schedule;
mod status;
mod token;
mod tool;
pub mod wire;
mod words;

pub use agent::{
    Agent, AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved,
    AgentSettings, AgentShow, AgentShown, AgentTest, AgentTestResult, AgentTested, Agents,
};
pub use approval::{
    Approval, ApprovalDecide, ApprovalDecided, ApprovalList, ApprovalRequirements, ApprovalShow,
    ApprovalShown, ApprovalState, Approvals, ChangedDecision, Decision, FingerprintCheck,
    FingerprintPart, PolicyDecide, PolicyDecided, PolicyDecision, PolicyExplain, PolicyExplained,
    PolicyFacts, PolicyReplay, PolicyReplayed, PolicyRequest, Verdict,
};
pub use authority::{
    Attribution, Authority, AuthorityChanged, Freeze, Lease, LeaseRenew, LeaseState, Thaw,
};
pub use call::{ApiRequest, Call, Handle, Progress, ProgressSink, ToolReport, send};
pub use config::{
    ActiveConfigValues, ConfigReload, ConfigReloaded, ConfigShow, ConfigValue, Finding, Reloaded,
    SetupCheck, SetupChecked,
};
pub use error::{Code, Error};
pub use ledger::{
    Changes, Checkpoint, CheckpointMade, Event, Events, Export, Exported, LedgerCheckpoint,
    LedgerExport, LedgerRebuild, LedgerTail, Rebuilt, RunEventList, RunEvents, TablesRebuilt,
    WaitForChanges,
};
pub use notice::{Channel, DIGEST_FORMAT, DIGEST_ITEMS_MAX, DeliveryFailure, Digest, Notice};
pub use requests::{Class, Request, Response, Serve, Service, Subject};
pub use role::{ActorRole, Role};
pub use run::{
    OutputChunk, Run, RunCancel, RunChanged, RunList, RunOrigin, RunOutput, RunRead, RunRetry,
    RunSettle, RunShow, RunShown, RunSource, RunState, RunUsage, RunWatch, RunWatched, Runs,
    SettledState, WatchCursor,
};
pub use schedule::{
    Action, AddedSchedule, AddingAgent, Backfill, BackfillEnded, Bounds, Disposition, EventPublish,
    EventPublished, EventTrigger, Explained, Paused, PolicyPreview, Schedule, ScheduleAdd,
    ScheduleAddAll, ScheduleAdded, ScheduleBackfill, ScheduleBackfillEnd, ScheduleBackfilled,
    ScheduleEdit, ScheduleEdited, ScheduleFire, ScheduleFired, ScheduleList, SchedulePause,
    SchedulePaused, ScheduleRemove, ScheduleRemoved, ScheduleResume, ScheduleResumed, ScheduleShow,
    ScheduleShown, ScheduleStatus, Schedules, SchedulesAdded, Terms, When, Why,
};
pub use status::{
    Amount, Budget, BudgetLimit, BudgetList, Budgets, Capability, DaemonStatus, Health, HealthShow,
    LIVE_COUNTED_MAX, LedgerStatus, LiveRuns, NextDue, Posture, Status, StatusShow,
};
pub use token::{Token, TokenCreate, TokenCreated, TokenList, TokenRevoke, TokenRevoked, Tokens};
pub use tool::{ToolList, ToolTally, ToolUse, Tools};
pub use words::UnknownWord;

/// Items in a page of a list if the request has no `limit`.
pub const LIST_ITEMS_DEFAULT: u32 = 50;
/// Most items in one page of a list.
pub const LIST_ITEMS_MAX: u32 = 1_000;
/// Stored bytes after which a page ends, even below its `limit`.
pub const LIST_BYTES_MAX: usize = 1 << 20;
