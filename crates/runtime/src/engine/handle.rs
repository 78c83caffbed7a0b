//! The handle in this process: authorizes a request and dispatches it to its handler.

use api::{Call, Code, Error, Handle, Request, Response, TablesRebuilt, ToolEnd, ToolEnded};
use futures::future::{BoxFuture, FutureExt};
use kernel::Actor;

use crate::authorize::audit::AuditedCall;
use crate::authorize::authenticate::least_role;
use crate::commit::idempotency::IdempotencyKey;
use crate::engine::Engine;
use crate::errors;
use crate::execute::tool_call::Handles;

/// The decision that needs more trust than the others.
const APPROVE: &str = "approve";

/// An engine, and the caller for whom it acts.
#[derive(Clone, Debug)]
pub struct LocalHandle {
    engine: Engine,
    actor: Actor,
}

impl LocalHandle {
    pub(crate) fn new(engine: Engine, actor: Actor) -> LocalHandle {
        LocalHandle { engine, actor }
    }
}

impl Handles for Engine {
    fn open(&self, actor: Actor) -> Box<dyn Handle> {
        Box::new(self.handle(actor))
    }
}

impl Handle for LocalHandle {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        async move {
            let (engine, actor) = (&self.engine, &self.actor);
            let audited = AuditedCall::of(actor, &call.request);
            let measured = engine.tool_metrics.start(call.tool.as_deref(), &call.request);
            let response = self.respond(call).await;
            if let Err(refusal) = &response {
                engine.audit.record_refusal(audited, refusal).await;
            }
            if let Some(measured) = measured {
                engine.tool_metrics.record(actor, measured, &response).await;
            }
            response
        }
        .boxed()
    }
}

impl LocalHandle {
    async fn respond(&self, call: Call) -> Result<Response, Error> {
        let key = IdempotencyKey::of(&call, &self.actor, &self.engine.sealing)?;
        let needed = least_role(&call.request);
        if self.actor.role < needed {
            return Err(errors::role_too_low(&self.actor, needed));
        }
        let request = self.authorize(call.request).await?;
        self.dispatch(Call { request, ..call }, key).await
    }

    /// The request, narrowed to what the caller may see.
    async fn authorize(&self, request: Request) -> Result<Request, Error> {
        if let Request::ApprovalDecide(decide) = &request
            && decide.decision == APPROVE
        {
            let trust = self.engine.config.active().trust;
            trust.check_may_approve(&self.actor).map_err(errors::not_personal)?;
        }
        self.engine.scope.restrict(&self.actor, request).await
    }

    async fn dispatch(&self, call: Call, key: Option<IdempotencyKey>) -> Result<Response, Error> {
        let (engine, actor) = (&self.engine, &self.actor);
        match call.request {
            Request::HealthShow(_) => engine.health().await.map(Response::HealthShow),
            Request::StatusShow(_) => engine.status_for(actor).await.map(Response::StatusShow),
            Request::BudgetList(_) => engine.budgets.list().await.map(Response::BudgetList),
            Request::ToolList(_) => engine.tool_list().await.map(Response::ToolList),
            Request::ToolMisuse(misused) => Err(no_tool(&misused.missing)),
            Request::ToolEnd(ToolEnd { code, counted, .. }) => {
                Ok(Response::ToolEnd(ToolEnded { code, counted }))
            }
            Request::AgentAdd(request) => engine.agent_add(actor, key, request).await,
            Request::AgentEdit(request) => engine.agent_edit(actor, key, request).await,
            Request::AgentRemove(request) => engine.agent_remove(actor, key, request).await,
            Request::AgentTest(request) => {
                engine.agent_test(actor, request).boxed().await.map(Response::AgentTest)
            }
            Request::AgentShow(request) => {
                engine.agent_show(request).await.map(Response::AgentShow)
            }
            Request::AgentList(request) => {
                engine.agent_list(request).await.map(Response::AgentList)
            }
            Request::ScheduleAdd(request) => engine.schedule_add(actor, key, request).await,
            Request::ScheduleAddAll(request) => engine.schedule_add_all(actor, key, request).await,
            Request::ScheduleEdit(request) => engine.schedule_edit(actor, key, request).await,
            Request::ScheduleBackfill(request) => {
                engine.schedule_backfill(actor, key, request).await
            }
            Request::ScheduleBackfillEnd(request) => {
                engine.schedule_backfill_end(actor, key, request).await
            }
            Request::EventPublish(request) => engine.event_publish(actor, key, request).await,
            Request::ScheduleList(request) => {
                engine.schedule_list(request).await.map(Response::ScheduleList)
            }
            Request::ScheduleShow(request) => {
                engine.schedule_show(actor, request).await.map(Response::ScheduleShow)
            }
            Request::SchedulePause(request) => engine.schedule_pause(actor, key, request).await,
            Request::ScheduleResume(request) => engine.schedule_resume(actor, key, request).await,
            Request::ScheduleRemove(request) => engine.schedule_remove(actor, key, request).await,
            Request::ScheduleFire(request) => engine.schedule_fire(actor, key, request).await,
            Request::Why(request) => engine.why(request).await.map(Response::Why),
            Request::RunList(request) => engine.run_list(request).await.map(Response::RunList),
            Request::RunShow(request) => {
                engine.run_show(actor, request).await.map(Response::RunShow)
            }
            Request::RunRead(request) => {
                engine.run_read(actor, request).await.map(Response::RunRead)
            }
            Request::RunWatch(request) => engine.run_watch(request).await.map(Response::RunWatch),
            Request::RunEvents(request) => {
                engine.feed.run_events(request).await.map(Response::RunEvents)
            }
            Request::RunCancel(request) => engine.run_cancel(actor, key, request).await,
            Request::RunRetry(request) => engine.run_retry(actor, key, request).await,
            Request::RunSettle(request) => engine.run_settle(actor, key, request).await,
            Request::ApprovalList(request) => {
                engine.approval_list(request).await.map(Response::ApprovalList)
            }
            Request::ApprovalShow(request) => {
                engine.approval_show(actor, request).await.map(Response::ApprovalShow)
            }
            Request::ApprovalDecide(request) => engine.approval_decide(actor, key, request).await,
            Request::Freeze(request) => engine.freeze(actor, key, request).await,
            Request::Thaw(request) => engine.thaw(actor, key, request).await,
            Request::LeaseRenew(request) => engine.lease_renew(actor, key, request).await,
            Request::PolicyDecide(request) => {
                engine.policy_decide(actor, request).await.map(Response::PolicyDecide)
            }
            Request::PolicyExplain(request) => {
                engine.policy_explain(request).await.map(Response::PolicyExplain)
            }
            Request::ConfigReload(_) => engine.reload(actor).await.map(Response::ConfigReload),
            Request::ConfigShow(_) => Ok(Response::ConfigShow(engine.config_values())),
            Request::SetupCheck(_) => engine.check_setup().await.map(Response::SetupCheck),
            Request::TokenCreate(request) => engine.token_create(actor, key, request).await,
            Request::TokenRevoke(request) => engine.token_revoke(actor, key, request).await,
            Request::TokenList(request) => {
                engine.token_list(request).await.map(Response::TokenList)
            }
            Request::LedgerTail(request) => {
                engine.feed.tail(request).await.map(Response::LedgerTail)
            }
            Request::WaitForChanges(request) => {
                engine.feed.wait_for_changes(request).await.map(Response::WaitForChanges)
            }
            Request::LedgerCheckpoint(_) => {
                engine.checkpoints.create().await.map(Response::LedgerCheckpoint)
            }
            // Boxed, because their futures are large and rare.
            Request::PolicyReplay(request) => {
                let replayed = engine.policy_replay(request, &call.progress).boxed();
                replayed.await.map(Response::PolicyReplay)
            }
            Request::LedgerExport(request) => {
                let exported = engine.exports.export(request, &call.progress).boxed();
                exported.await.map(Response::LedgerExport)
            }
            Request::LedgerRebuild(_) => {
                engine.write_guard.check()?;
                let rebuilt = engine.integrity.rebuild(actor, "requested", &call.progress).boxed();
                let rebuilt = rebuilt.await?;
                Ok(Response::LedgerRebuild(TablesRebuilt { rebuilt }))
            }
        }
    }
}

fn no_tool(name: &str) -> Error {
    Error::new(Code::NotFound, format!("there is no tool `{name}`"))
}
