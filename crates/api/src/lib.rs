//! The wire types: requests, responses and errors that the CLI, MCP and HTTP share.
//!
//! This crate makes no decisions. A client sends a request to a [`Handle`] and shows the response; the
//! handle may work in this process or over a socket. The serde names are the wire format, and `--json`
//! prints them.

mod agent;
mod approval;
mod authority;
mod call;
mod cleanup;
mod config;
mod daemon;
mod device;
pub mod display;
mod error;
pub mod json;
mod ledger;
mod nearest;
mod notice;
pub mod numbers;
mod payload;
mod policy_rules;
mod requests;
mod role;
mod run;
mod schedule;
mod slot;
mod status;
mod timeline;
mod token;
mod tool;
pub mod wire;
mod words;

pub use agent::{
    Agent, AgentAdd, AgentAdded, AgentEdit, AgentEdited, AgentList, AgentRemove, AgentRemoved,
    AgentSettings, AgentShow, AgentShown, AgentTest, AgentTestResult, AgentTested, Agents,
    Containment,
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
pub use cleanup::{CleanedUp, Cleanup, DiskUse, Removed};
pub use config::{
    ActiveConfigValues, ConfigReload, ConfigReloaded, ConfigShow, ConfigValue, Finding, Reloaded,
    SetupCheck, SetupChecked,
};
pub use daemon::{DaemonStop, DaemonStopping};
pub use device::{
    Device, DeviceEnd, DeviceLink, DeviceLinked, DeviceList, DeviceRevoke, DeviceRevoked, Devices,
};
pub use error::{Code, Error};
pub use ledger::{
    Changes, Checkpoint, CheckpointMade, Event, Events, Export, Exported, LedgerCheckpoint,
    LedgerExport, LedgerRebuild, LedgerTail, Rebuilt, RunEventList, RunEvents, TablesRebuilt,
    WaitForChanges,
};
pub use nearest::nearest;
pub use notice::{
    Channel, DIGEST_FORMAT, DIGEST_ITEMS_MAX, DeliveryFailure, Digest, Notice, NoticeChannels,
    NoticeList, NoticeTest, NoticeTested, TestDelivery,
};
pub use payload::Payload;
pub use policy_rules::{PolicyCondition, PolicyList, PolicyRule, PolicyRules};
pub use requests::{Class, Reference, Referent, Serve, Service, Subject};
pub use role::{ActorRole, Role};
pub use run::{
    OutputChunk, Run, RunAttempt, RunCancel, RunCancelled, RunChanged, RunList, RunOrigin,
    RunOutput, RunRead, RunRetry, RunSettle, RunShow, RunShown, RunSource, RunState, RunUsage,
    RunWatch, RunWatched, Runs, SettledState, WatchCursor,
};
pub use schedule::{
    Action, AddedSchedule, AddingAgent, Backfill, BackfillEnded, Bounds, Disposition, EventPublish,
    EventPublished, EventTrigger, Explained, Paused, PolicyPreview, Schedule, ScheduleAdd,
    ScheduleAddAll, ScheduleAdded, ScheduleBackfill, ScheduleBackfillEnd, ScheduleBackfilled,
    ScheduleEdit, ScheduleEdited, ScheduleFire, ScheduleFired, ScheduleList, SchedulePause,
    SchedulePaused, ScheduleRemove, ScheduleRemoved, ScheduleResume, ScheduleResumed, ScheduleShow,
    ScheduleShown, ScheduleStatus, Schedules, SchedulesAdded, StartObstacle, StoredAction, Terms,
    When, Why,
};
pub use slot::{ScheduleSlots, Slot, Slots};
pub use status::{
    Amount, Budget, BudgetLimit, BudgetList, Budgets, Capability, DaemonStatus, Failures, Health,
    HealthShow, LIVE_COUNTED_MAX, LedgerStatus, LiveRuns, NextDue, PausedSchedule, Posture,
    SeenMarked, Status, StatusRun, StatusSeen, StatusShow, UPCOMING_MAX, WaitingRun,
};
pub use timeline::{Timeline, TimelineLine, TimelineShow};
pub use token::{
    Token, TokenClient, TokenCreate, TokenCreated, TokenList, TokenRevoke, TokenRevoked, Tokens,
};
pub use tool::{ToolList, ToolTally, ToolUse, Tools};
pub use words::UnknownWord;

use serde::{Deserialize, Serialize};

use requests::{References, class, narrow, references, requests, stops, subject};

/// Items in a page of a list if the request has no `limit`.
pub const LIST_ITEMS_DEFAULT: u32 = 50;
/// Most items in one page of a list.
pub const LIST_ITEMS_MAX: u32 = 1_000;
/// Stored bytes after which a page ends, even below its `limit`.
pub const LIST_BYTES_MAX: usize = 1 << 20;

// class: a capability of the policy. `unless` names the field that turns a change into a dry run; `at_once` marks requests
//   that stop something.
// least role: to make the request at all. Dry runs need less than changes, so such a row has the role for a dry run.
// an agent sees, for a read:
//   nothing        refused
//   itself         answered about the caller alone
//   own_…(field)   the object that the field names, refused unless it is the agent's; a list is limited to the agent's objects
// an agent sees, for a change: the object that the policy is asked about. `itself` names none.
// waits: the field with the time to wait.
// refers to: the fields that name other objects, by id, prefix or name. An agent has only its name.
requests! {
//  type                wire name               response             class                               least role   an agent sees           refers to
    HealthShow          "health"                Health             | read "schedule.read"              | Observer   | itself                | -;
    StatusShow          "status"                Status             | read "schedule.read"              | Observer   | itself                | -;
    StatusSeen          "status.seen"           SeenMarked         | people                            | Operator   | nothing               | -;
    BudgetList          "budget.list"           Budgets            | read "schedule.read"              | Observer   | nothing               | -;
    ToolList            "tool.list"             Tools              | read "schedule.read"              | Observer   | nothing               | -;

    AgentAdd            "agent.add"             AgentAdded         | people                            | Operator   | nothing               | -;
    AgentEdit           "agent.edit"            AgentEdited        | people                            | Operator   | nothing               | Agent(name);
    AgentList           "agent.list"            Agents             | read "schedule.read"              | Observer   | own_list(name)        | -;
    AgentShow           "agent.show"            AgentShown         | read "schedule.read"              | Observer   | own_agent(name)       | Agent(name);
    AgentRemove         "agent.remove"          AgentRemoved       | people                            | Operator   | nothing               | Agent(name);
    AgentTest           "agent.test"            AgentTested        | people                            | Operator   | nothing               | Agent(name);

    ScheduleAdd         "schedule.add"          ScheduleAdded      | change "schedule.create" unless dry_run | Observer | own_new(agents)   | Schedule(event_trigger.after), Agent(action.agent);
    ScheduleAddAll      "schedule.add_all"      SchedulesAdded     | change "schedule.create" unless dry_run | Observer | own_new(agents)   | Schedule(schedules);
    ScheduleEdit        "schedule.edit"         ScheduleEdited     | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id), Schedule(event_trigger.after), Agent(action.agent);
    ScheduleList        "schedule.list"         Schedules          | read "schedule.read"              | Observer   | own_list(agent)       | -;
    ScheduleShow        "schedule.show"         ScheduleShown      | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id);
    SchedulePause       "schedule.pause"        SchedulePaused     | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id);
    ScheduleResume      "schedule.resume"       ScheduleResumed    | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id);
    ScheduleRemove      "schedule.remove"       ScheduleRemoved    | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id);
    ScheduleSlots       "schedule.slots"        Slots              | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id);
    ScheduleFire        "schedule.fire"         ScheduleFired      | change "run.start"                | Runner     | own_schedule(id)      | Schedule(id);
    ScheduleBackfill    "schedule.backfill"     ScheduleBackfilled | people                            | Operator   | nothing               | Schedule(id);
    ScheduleBackfillEnd "schedule.backfill_end" BackfillEnded      | people                            | Operator   | nothing               | Schedule(id);
    EventPublish        "event.tell"            EventPublished     | people                            | Operator   | nothing               | -;
    Why                 "why"                   Explained          | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id);

    RunList             "run.list"              Runs               | read "schedule.read"              | Observer   | own_list(agent)       | Schedule(schedule);
    RunShow             "run.show"              RunShown           | read "schedule.read"              | Observer   | own_run(id)           | Run(id);
    RunRead             "run.read"              OutputChunk        | read "schedule.read"              | Observer   | own_run(id)           | Run(id);
    RunWatch            "run.watch"             RunWatched         | read "schedule.read"              | Observer   | own_run(id) waits wait_ms | Run(id);
    RunEvents           "run.events"            RunEventList       | read "ledger.read"                | Observer   | own_run(id)           | Run(id);
    RunCancel           "run.cancel"            RunCancelled       | change "run.cancel", at_once      | Runner     | own_run(id)           | Run(id);
    RunRetry            "run.retry"             RunChanged         | change "run.start"                | Runner     | own_run(id)           | Run(id);
    RunSettle           "run.settle"            RunChanged         | people                            | Operator   | nothing               | Run(id);

    ApprovalList        "approval.list"         Approvals          | read "schedule.read"              | Observer   | own_list(agent)       | -;
    ApprovalShow        "approval.show"         ApprovalShown      | read "schedule.read"              | Observer   | own_approval(id)      | Approval(id);
    ApprovalDecide      "approval.decide"       ApprovalDecided    | people                            | Operator   | nothing               | Approval(id);

    Freeze              "freeze"                AuthorityChanged   | people, at_once                   | Operator   | nothing               | -;
    Thaw                "thaw"                  AuthorityChanged   | people                            | Maintainer | nothing               | -;
    LeaseRenew          "lease.renew"           AuthorityChanged   | people                            | Operator   | nothing               | -;

    DaemonStop          "daemon.stop"           DaemonStopping     | people, at_once                   | Operator   | nothing               | -;

    PolicyDecide        "policy.decide"         PolicyDecided      | read "schedule.read"              | Observer   | itself                | -;
    PolicyExplain       "policy.explain"        PolicyExplained    | read "schedule.read"              | Observer   | own_run(run)          | Run(run);
    PolicyList          "policy.list"           PolicyRules        | read "schedule.read"              | Observer   | nothing               | -;
    PolicyReplay        "policy.replay"         PolicyReplayed     | read "ledger.read"                | Observer   | nothing               | -;

    ConfigReload        "config.reload"         ConfigReloaded     | people                            | Maintainer | nothing               | -;
    ConfigShow          "config.ask"            ActiveConfigValues | read "schedule.read"              | Operator   | nothing               | -;
    NoticeList          "notice.list"           NoticeChannels     | read "schedule.read"              | Operator   | nothing               | -;
    NoticeTest          "notice.test"           NoticeTested       | people                            | Operator   | nothing               | -;
    Cleanup             "cleanup"               CleanedUp          | people                            | Operator   | nothing               | -;
    SetupCheck          "check"                 SetupChecked       | read "schedule.read"              | Observer   | nothing               | -;

    TokenCreate         "token.create"          TokenCreated       | people                            | Maintainer | nothing               | -;
    TokenList           "token.list"            Tokens             | read "schedule.read"              | Operator   | nothing               | -;
    TokenRevoke         "token.revoke"          TokenRevoked       | people                            | Maintainer | nothing               | Token(id);

    DeviceLink          "device.link"           DeviceLinked       | people                            | Operator   | nothing               | -;
    DeviceList          "device.list"           Devices            | read "schedule.read"              | Observer   | nothing               | -;
    DeviceRevoke        "device.revoke"         DeviceRevoked      | people                            | Operator   | nothing               | Device(id);

    LedgerTail          "ledger.tail"           Events             | read "ledger.read"                | Observer   | nothing waits wait_ms | -;
    TimelineShow        "timeline"              Timeline           | read "ledger.read"                | Observer   | nothing waits wait_ms | -;
    WaitForChanges      "news"                  Changes            | read "schedule.read"              | Observer   | own_objects(about) waits wait_ms | Object(about);
    LedgerCheckpoint    "ledger.checkpoint"     CheckpointMade     | people                            | Operator   | nothing               | -;
    LedgerExport        "ledger.export"         Exported           | people                            | Operator   | nothing               | -;
    LedgerRebuild       "ledger.rebuild"        TablesRebuilt      | people                            | Maintainer | nothing               | -;
}
