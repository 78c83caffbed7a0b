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
pub mod openapi;
mod payload;
mod policy_rules;
mod requests;
mod role;
mod route;
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
pub use route::{API_PREFIX, Fields, HttpRow, Method, Route};
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

use requests::{References, class, narrow, references, requests, route, stops, subject};

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
// route: method and path below `/api/v1`, or `no_route` and why. A parameter of the path is the field of that name. `GET` and
//   `DELETE` have the other fields in the query, `POST` and `PATCH` in the body. `PATCH` edits, and needs `If-Match`.
requests! {
//  type                wire name               response             class                               least role   an agent sees           refers to | route
    HealthShow          "health"                Health             | read "schedule.read"              | Observer   | itself                | - | GET "/health";
    StatusShow          "status"                Status             | read "schedule.read"              | Observer   | itself                | - | GET "/status";
    StatusSeen          "status.seen"           SeenMarked         | people                            | Operator   | nothing               | - | POST "/status/seen";
    BudgetList          "budget.list"           Budgets            | read "schedule.read"              | Observer   | nothing               | - | GET "/budgets";
    ToolList            "tool.list"             Tools              | read "schedule.read"              | Observer   | nothing               | - | GET "/tools";

    AgentAdd            "agent.add"             AgentAdded         | people                            | Operator   | nothing               | - | POST "/agents";
    AgentEdit           "agent.edit"            AgentEdited        | people                            | Operator   | nothing               | Agent(name) | PATCH "/agents/{name}";
    AgentList           "agent.list"            Agents             | read "schedule.read"              | Observer   | own_list(name)        | - | GET "/agents";
    AgentShow           "agent.show"            AgentShown         | read "schedule.read"              | Observer   | own_agent(name)       | Agent(name) | GET "/agents/{name}";
    AgentRemove         "agent.remove"          AgentRemoved       | people                            | Operator   | nothing               | Agent(name) | DELETE "/agents/{name}";
    AgentTest           "agent.test"            AgentTested        | people                            | Operator   | nothing               | Agent(name) | POST "/agents/{name}/test";

    ScheduleAdd         "schedule.add"          ScheduleAdded      | change "schedule.create" unless dry_run | Observer | own_new(agents)   | Schedule(event_trigger.after), Agent(action.agent) | POST "/schedules";
    ScheduleAddAll      "schedule.add_all"      SchedulesAdded     | change "schedule.create" unless dry_run | Observer | own_new(agents)   | Schedule(schedules) | POST "/schedule-batches";
    ScheduleEdit        "schedule.edit"         ScheduleEdited     | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id), Schedule(event_trigger.after), Agent(action.agent) | PATCH "/schedules/{id}";
    ScheduleList        "schedule.list"         Schedules          | read "schedule.read"              | Observer   | own_list(agent)       | - | GET "/schedules";
    ScheduleShow        "schedule.show"         ScheduleShown      | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id) | GET "/schedules/{id}";
    SchedulePause       "schedule.pause"        SchedulePaused     | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id) | POST "/schedules/{id}/pause";
    ScheduleResume      "schedule.resume"       ScheduleResumed    | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id) | POST "/schedules/{id}/resume";
    ScheduleRemove      "schedule.remove"       ScheduleRemoved    | change "schedule.change"          | Runner     | own_schedule(id)      | Schedule(id) | DELETE "/schedules/{id}";
    ScheduleSlots       "schedule.slots"        Slots              | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id) | GET "/schedules/{id}/slots";
    ScheduleFire        "schedule.fire"         ScheduleFired      | change "run.start"                | Runner     | own_schedule(id)      | Schedule(id) | POST "/schedules/{id}/fire";
    ScheduleBackfill    "schedule.backfill"     ScheduleBackfilled | people                            | Operator   | nothing               | Schedule(id) | POST "/schedules/{id}/backfill";
    ScheduleBackfillEnd "schedule.backfill_end" BackfillEnded      | people                            | Operator   | nothing               | Schedule(id) | DELETE "/schedules/{id}/backfill";
    EventPublish        "event.tell"            EventPublished     | people                            | Operator   | nothing               | - | POST "/events";
    Why                 "why"                   Explained          | read "schedule.read"              | Observer   | own_schedule(id)      | Schedule(id) | GET "/schedules/{id}/why";

    RunList             "run.list"              Runs               | read "schedule.read"              | Observer   | own_list(agent)       | Schedule(schedule) | GET "/runs";
    RunShow             "run.show"              RunShown           | read "schedule.read"              | Observer   | own_run(id)           | Run(id) | GET "/runs/{id}";
    RunRead             "run.read"              OutputChunk        | read "schedule.read"              | Observer   | own_run(id)           | Run(id) | GET "/runs/{id}/output";
    RunWatch            "run.watch"             RunWatched         | read "schedule.read"              | Observer   | own_run(id) waits wait_ms | Run(id) | POST "/runs/{id}/watch";
    RunEvents           "run.events"            RunEventList       | read "ledger.read"                | Observer   | own_run(id)           | Run(id) | GET "/runs/{id}/events";
    RunCancel           "run.cancel"            RunCancelled       | change "run.cancel", at_once      | Runner     | own_run(id)           | Run(id) | POST "/runs/{id}/cancel";
    RunRetry            "run.retry"             RunChanged         | change "run.start"                | Runner     | own_run(id)           | Run(id) | POST "/runs/{id}/retry";
    RunSettle           "run.settle"            RunChanged         | people                            | Operator   | nothing               | Run(id) | POST "/runs/{id}/settle";

    ApprovalList        "approval.list"         Approvals          | read "schedule.read"              | Observer   | own_list(agent)       | - | GET "/approvals";
    ApprovalShow        "approval.show"         ApprovalShown      | read "schedule.read"              | Observer   | own_approval(id)      | Approval(id) | GET "/approvals/{id}";
    ApprovalDecide      "approval.decide"       ApprovalDecided    | people                            | Operator   | nothing               | Approval(id) | POST "/approvals/{id}/decision";

    Freeze              "freeze"                AuthorityChanged   | people, at_once                   | Operator   | nothing               | - | POST "/authority/freeze";
    Thaw                "thaw"                  AuthorityChanged   | people                            | Maintainer | nothing               | - | POST "/authority/thaw";
    LeaseRenew          "lease.renew"           AuthorityChanged   | people                            | Operator   | nothing               | - | POST "/authority/lease";

    DaemonStop          "daemon.stop"           DaemonStopping     | people, at_once                   | Operator   | nothing               | - | POST "/daemon/stop";

    PolicyDecide        "policy.decide"         PolicyDecided      | read "schedule.read"              | Observer   | itself                | - | POST "/policy/decide";
    PolicyExplain       "policy.explain"        PolicyExplained    | read "schedule.read"              | Observer   | own_run(run)          | Run(run) | GET "/policy/explain";
    PolicyList          "policy.list"           PolicyRules        | read "schedule.read"              | Observer   | nothing               | - | GET "/policy/rules";
    PolicyReplay        "policy.replay"         PolicyReplayed     | read "ledger.read"                | Observer   | nothing               | - | POST "/policy/replay";

    ConfigReload        "config.reload"         ConfigReloaded     | people                            | Maintainer | nothing               | - | POST "/config/reload";
    ConfigShow          "config.ask"            ActiveConfigValues | read "schedule.read"              | Operator   | nothing               | - | GET "/config";
    NoticeList          "notice.list"           NoticeChannels     | read "schedule.read"              | Operator   | nothing               | - | GET "/notices";
    NoticeTest          "notice.test"           NoticeTested       | people                            | Operator   | nothing               | - | POST "/notices/test";
    Cleanup             "cleanup"               CleanedUp          | people                            | Operator   | nothing               | - | POST "/cleanup";
    SetupCheck          "check"                 SetupChecked       | read "schedule.read"              | Observer   | nothing               | - | GET "/checks";

    TokenCreate         "token.create"          TokenCreated       | people                            | Maintainer | nothing               | - | POST "/tokens";
    TokenList           "token.list"            Tokens             | read "schedule.read"              | Operator   | nothing               | - | GET "/tokens";
    TokenRevoke         "token.revoke"          TokenRevoked       | people                            | Maintainer | nothing               | Token(id) | DELETE "/tokens/{id}";

    DeviceLink          "device.link"           DeviceLinked       | people                            | Operator   | nothing               | - | no_route "a person asks for a link in a terminal";
    DeviceList          "device.list"           Devices            | read "schedule.read"              | Observer   | nothing               | - | GET "/devices";
    DeviceRevoke        "device.revoke"         DeviceRevoked      | people                            | Operator   | nothing               | Device(id) | DELETE "/devices/{id}";

    LedgerTail          "ledger.tail"           Events             | read "ledger.read"                | Observer   | nothing waits wait_ms | Schedule(schedule), Run(run) | GET "/ledger";
    TimelineShow        "timeline"              Timeline           | read "ledger.read"                | Observer   | nothing waits wait_ms | - | GET "/timeline";
    WaitForChanges      "news"                  Changes            | read "schedule.read"              | Observer   | own_objects(about) waits wait_ms | Object(about) | no_route "clients wait for entries with `GET /events`";
    LedgerCheckpoint    "ledger.checkpoint"     CheckpointMade     | people                            | Operator   | nothing               | - | POST "/ledger/checkpoints";
    LedgerExport        "ledger.export"         Exported           | people                            | Operator   | nothing               | - | POST "/ledger/exports";
    LedgerRebuild       "ledger.rebuild"        TablesRebuilt      | people                            | Maintainer | nothing               | - | POST "/ledger/rebuild";
}
