//! The wire: requests, answers and errors, as every surface speaks them.
//!
//! Nothing here decides anything. A surface makes a request, gives it to a [`Handle`] and shows the
//! answer; whether the handle works in this process or over a socket is not visible. The serde names
//! are the wire format, and are what `--json` prints.

mod agent;
mod approval;
mod authority;
mod call;
mod class;
mod config;
mod error;
pub mod json;
mod ledger;
mod notice;
mod run;
mod schedule;
mod status;
mod token;
mod tool;
pub mod wire;
pub mod words;

pub use agent::{
    Agent, AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved,
    AgentShow, AgentShown, AgentTest, AgentTested, Agents, Test,
};
pub use approval::{
    Approval, ApprovalDecide, ApprovalDecided, ApprovalList, ApprovalShow, ApprovalShown,
    Approvals, ChangedDecision, Needs, PolicyDecide, PolicyDecided, PolicyExplain, PolicyExplained,
    PolicyFacts, PolicyReplay, PolicyReplayed, PolicyRequest, Ruling, StandsOn,
};
pub use authority::{Authority, AuthorityChanged, Freeze, Lease, LeaseRenew, Said, Thaw};
pub use call::{Answer, Ask, Call, Handle, Progress, ProgressSink, Request, ask};
pub use class::Class;
pub use config::{
    CheckAsk, Checked, ConfigAsk, ConfigInForce, ConfigReload, ConfigReloaded, ConfigValue,
    Finding, Reloaded,
};
pub use error::{Code, Error};
pub use ledger::{
    Checkpoint, CheckpointMade, Event, Events, Export, Exported, Heard, LedgerCheckpoint,
    LedgerExport, LedgerRebuild, LedgerTail, News, Rebuilt, RunEvents, RunTold, TablesRebuilt,
};
pub use notice::{Channel, DIGEST_FORMAT, DIGEST_ITEMS_MAX, Digest, Notice, Untold};
pub use run::{
    Run, RunCancel, RunChanged, RunList, RunOutput, RunPiece, RunRead, RunRetry, RunSeen,
    RunSettle, RunShow, RunShown, RunSource, RunUsage, RunWatch, RunWatched, Runs,
};
pub use schedule::{
    Action, AddedOne, Backfill, BackfillEnded, Bounds, EventTell, EventTold, Explained, Foretold,
    Happening, MadeBy, Paused, Schedule, ScheduleAdd, ScheduleAddAll, ScheduleAdded,
    ScheduleBackfill, ScheduleBackfillEnd, ScheduleBackfilled, ScheduleEdit, ScheduleEdited,
    ScheduleFire, ScheduleFired, ScheduleList, SchedulePause, SchedulePaused, ScheduleRemove,
    ScheduleRemoved, ScheduleResume, ScheduleResumed, ScheduleShow, ScheduleShown, Schedules,
    SchedulesAdded, Terms, When, Why,
};
pub use status::{
    Amount, Budget, BudgetLimit, BudgetList, Budgets, Capability, Health, HealthAsk,
    LIVE_COUNTED_MAX, LiveRuns, Log, NextDue, Status, StatusAsk, Watch,
};
pub use token::{Token, TokenCreate, TokenCreated, TokenList, TokenRevoke, TokenRevoked, Tokens};
pub use tool::{Misused, ToolEnd, ToolEnded, ToolList, ToolMisuse, ToolTally, ToolUse, Tools};

/// Items in a list when nobody says how many.
pub const LIST_ITEMS_DEFAULT: u32 = 50;
/// Most items in one list.
pub const LIST_ITEMS_MAX: u32 = 1_000;
/// Stored bytes after which a list ends, however many items were asked for.
pub const LIST_BYTES_MAX: usize = 1 << 20;
