//! A call: one request to a [`Handle`], and its response.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::*;

/// Handles requests for one principal: an engine in this process, or a client of the daemon's socket.
pub trait Handle: fmt::Debug + Send + Sync {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>>;
}

/// A request with its options.
#[derive(Clone, Debug)]
pub struct Call {
    pub request: Request,
    /// The idempotency key: a change that is sent twice with the same key happens once, and the second
    /// call gets the response of the first.
    pub key: Option<String>,
    /// The tool that makes the call, if any.
    pub tool: Option<String>,
    pub progress: ProgressSink,
}

/// The progress of a long request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Receives the progress of a call. The default sink ignores it.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

/// A request type and the type of its response.
pub trait ApiRequest: Sized {
    type Response;
    fn into_request(self) -> Request;
    /// `None` if the response belongs to another request.
    fn from_response(response: Response) -> Option<Self::Response>;
}

/// Sends a request without an idempotency key and without progress.
pub async fn send<R: ApiRequest>(handle: &dyn Handle, request: R) -> Result<R::Response, Error> {
    Call::new(request).send::<R>(handle).await
}

impl Call {
    pub fn new(request: impl ApiRequest) -> Call {
        let request = request.into_request();
        Call { request, key: None, tool: None, progress: ProgressSink::default() }
    }

    /// Makes this call and returns the response type of `R`.
    pub async fn send<R: ApiRequest>(self, handle: &dyn Handle) -> Result<R::Response, Error> {
        let wrong = || Error::new(Code::Failed, "the response does not belong to the request");
        R::from_response(handle.call(self).await?).ok_or_else(wrong)
    }
}

impl Response {
    /// The response itself, without the mark that it was replayed.
    pub fn first(self) -> Response {
        match self {
            Response::Replayed(first) => first.first(),
            response => response,
        }
    }
}

impl ProgressSink {
    pub fn new(show: impl Fn(Progress) + Send + Sync + 'static) -> ProgressSink {
        ProgressSink(Some(Arc::new(show)))
    }

    pub fn show(&self, done: u64, total: u64) {
        if let Some(show) = &self.0 {
            show(Progress { done, total });
        }
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ProgressSink(shown: {})", self.0.is_some())
    }
}

/// The list of all requests: type, wire name, response type.
macro_rules! requests {
    ($($request:ident $name:literal $response:ident;)*) => {
        /// Any request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "with")]
        pub enum Request {
            $(#[serde(rename = $name)] $request($request),)*
        }

        impl Request {
            /// The wire name of every request.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The wire name of this request.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Request::$request(_) => $name,)*
                }
            }
        }

        /// The response to any request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "answer")]
        pub enum Response {
            $(#[serde(rename = $name)] $request($response),)*
            /// The response of the first call with this idempotency key; this call changed nothing.
            #[serde(rename = "replayed")]
            Replayed(Box<Response>),
        }

        $(impl ApiRequest for $request {
            type Response = $response;

            fn into_request(self) -> Request {
                Request::$request(self)
            }

            fn from_response(response: Response) -> Option<$response> {
                match response.first() {
                    Response::$request(response) => Some(response),
                    _ => None,
                }
            }
        })*
    };
}

requests! {
    HealthShow "health" Health;
    StatusShow "status" Status;
    BudgetList "budget.list" Budgets;
    ToolList "tool.list" Tools;
    ToolMisuse "tool.misuse" Misused;
    ToolEnd "tool.end" ToolEnded;
    AgentAdd "agent.add" AgentAdded;
    AgentEdit "agent.edit" AgentEdited;
    AgentList "agent.list" Agents;
    AgentShow "agent.show" AgentShown;
    AgentRemove "agent.remove" AgentRemoved;
    AgentTest "agent.test" AgentTested;
    ScheduleAdd "schedule.add" ScheduleAdded;
    ScheduleAddAll "schedule.add_all" SchedulesAdded;
    ScheduleEdit "schedule.edit" ScheduleEdited;
    ScheduleList "schedule.list" Schedules;
    ScheduleShow "schedule.show" ScheduleShown;
    SchedulePause "schedule.pause" SchedulePaused;
    ScheduleResume "schedule.resume" ScheduleResumed;
    ScheduleRemove "schedule.remove" ScheduleRemoved;
    ScheduleFire "schedule.fire" ScheduleFired;
    ScheduleBackfill "schedule.backfill" ScheduleBackfilled;
    ScheduleBackfillEnd "schedule.backfill_end" BackfillEnded;
    EventPublish "event.tell" EventPublished;
    Why "why" Explained;
    RunList "run.list" Runs;
    RunShow "run.show" RunShown;
    RunRead "run.read" OutputChunk;
    RunWatch "run.watch" RunWatched;
    RunEvents "run.events" RunEventList;
    RunCancel "run.cancel" RunChanged;
    RunRetry "run.retry" RunChanged;
    RunSettle "run.settle" RunChanged;
    ApprovalList "approval.list" Approvals;
    ApprovalShow "approval.show" ApprovalShown;
    ApprovalDecide "approval.decide" ApprovalDecided;
    Freeze "freeze" AuthorityChanged;
    Thaw "thaw" AuthorityChanged;
    LeaseRenew "lease.renew" AuthorityChanged;
    PolicyDecide "policy.decide" PolicyDecided;
    PolicyExplain "policy.explain" PolicyExplained;
    PolicyReplay "policy.replay" PolicyReplayed;
    ConfigReload "config.reload" ConfigReloaded;
    ConfigShow "config.ask" ActiveConfigValues;
    SetupCheck "check" SetupChecked;
    TokenCreate "token.create" TokenCreated;
    TokenList "token.list" Tokens;
    TokenRevoke "token.revoke" TokenRevoked;
    LedgerTail "ledger.tail" Events;
    WaitForChanges "news" Changes;
    LedgerCheckpoint "ledger.checkpoint" CheckpointMade;
    LedgerExport "ledger.export" Exported;
    LedgerRebuild "ledger.rebuild" TablesRebuilt;
}
