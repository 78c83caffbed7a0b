//! A call: one request to a [`Handle`], and its answer.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::*;

/// Whoever carries out requests: the watch in this process, or one behind a socket. A handle speaks
/// for one principal.
pub trait Handle: fmt::Debug + Send + Sync {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>>;
}

/// A request with what goes along.
#[derive(Clone, Debug)]
pub struct Call {
    pub request: Request,
    /// A change asked for twice with the same key happens once; the second time gets the answer of
    /// the first.
    pub key: Option<String>,
    /// The tool that makes it, if one does.
    pub tool: Option<String>,
    pub progress: ProgressSink,
}

/// How far a long request has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Where the progress of a call is shown, if anywhere.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

/// A request type and the type of its answer.
pub trait Ask: Sized {
    type Answer;
    fn into_request(self) -> Request;
    fn from_answer(answer: Answer) -> Option<Self::Answer>;
}

/// Asks without a key and without showing progress.
pub async fn ask<R: Ask>(handle: &dyn Handle, request: R) -> Result<R::Answer, Error> {
    Call::new(request).ask::<R>(handle).await
}

impl Call {
    pub fn new(request: impl Ask) -> Call {
        let request = request.into_request();
        Call { request, key: None, tool: None, progress: ProgressSink::default() }
    }

    /// Makes this call and takes the answer that belongs to `R`.
    pub async fn ask<R: Ask>(self, handle: &dyn Handle) -> Result<R::Answer, Error> {
        let wrong = || Error::new(Code::Failed, "the answer does not belong to the request");
        R::from_answer(handle.call(self).await?).ok_or_else(wrong)
    }
}

impl Answer {
    /// What was answered, whether now or to an earlier call with the same key.
    pub fn first(self) -> Answer {
        match self {
            Answer::Replayed(first) => first.first(),
            answer => answer,
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

/// The one list of requests: type, name on the wire, type of the answer.
macro_rules! requests {
    ($($request:ident $name:literal $answer:ident;)*) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "with")]
        pub enum Request {
            $(#[serde(rename = $name)] $request($request),)*
        }

        impl Request {
            /// The wire name of every request.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Its name on the wire.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Request::$request(_) => $name,)*
                }
            }
        }

        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "answer")]
        pub enum Answer {
            $(#[serde(rename = $name)] $request($answer),)*
            /// What the first call with this key was answered: nothing happened this time.
            #[serde(rename = "replayed")]
            Replayed(Box<Answer>),
        }

        $(impl Ask for $request {
            type Answer = $answer;

            fn into_request(self) -> Request {
                Request::$request(self)
            }

            fn from_answer(answer: Answer) -> Option<$answer> {
                match answer.first() {
                    Answer::$request(answer) => Some(answer),
                    _ => None,
                }
            }
        })*
    };
}

requests! {
    HealthAsk "health" Health;
    StatusAsk "status" Status;
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
    EventTell "event.tell" EventTold;
    Why "why" Explained;
    RunList "run.list" Runs;
    RunShow "run.show" RunShown;
    RunRead "run.read" RunPiece;
    RunWatch "run.watch" RunWatched;
    RunEvents "run.events" RunTold;
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
    ConfigAsk "config.ask" ConfigInForce;
    CheckAsk "check" Checked;
    TokenCreate "token.create" TokenCreated;
    TokenList "token.list" Tokens;
    TokenRevoke "token.revoke" TokenRevoked;
    LedgerTail "ledger.tail" Events;
    News "news" Heard;
    LedgerCheckpoint "ledger.checkpoint" CheckpointMade;
    LedgerExport "ledger.export" Exported;
    LedgerRebuild "ledger.rebuild" TablesRebuilt;
}
