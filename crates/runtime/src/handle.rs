//! The handle in this process: each request to the function that carries it out.

use api::{Answer, Call, Code, Error, Handle, Request, TablesRebuilt, ToolEnd, ToolEnded};
use futures::future::{BoxFuture, FutureExt};
use kernel::Actor;

use crate::errors;
use crate::principals::{Attempt, least_role};
use crate::transact::Key;
use crate::watch::Engine;

/// What is said to a question by whoever approves.
const APPROVE: &str = "approve";

/// A watch, and the principal for whom it acts.
#[derive(Clone, Debug)]
pub struct Local {
    watch: Engine,
    actor: Actor,
}

impl Local {
    pub(crate) fn new(watch: Engine, actor: Actor) -> Local {
        Local { watch, actor }
    }
}

impl Handle for Local {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let (watch, actor) = (&self.watch, &self.actor);
            let attempt = Attempt::of(actor, &call.request);
            let measured = watch.measured(call.tool.as_deref(), &call.request);
            let answer = self.answer(call).await;
            if let Err(refusal) = &answer {
                watch.refused(attempt, refusal).await;
            }
            if let Some(measured) = measured {
                watch.tallied(actor, measured, &answer).await;
            }
            answer
        }
        .boxed()
    }
}

impl Local {
    async fn answer(&self, call: Call) -> Result<Answer, Error> {
        let key = Key::of(&call, &self.actor, self.watch.sealing())?;
        let needed = least_role(&call.request);
        if self.actor.role < needed {
            return Err(errors::role_too_low(&self.actor, needed));
        }
        let request = self.check(call.request).await?;
        self.carry_out(Call { request, ..call }, key).await
    }

    /// What this principal asks for, as far as it reaches, and by the way on which it came.
    async fn check(&self, request: Request) -> Result<Request, Error> {
        if let Request::ApprovalDecide(asked) = &request
            && asked.decision == APPROVE
        {
            let trust = self.watch.in_force().trust;
            trust.lets_approve(&self.actor).map_err(errors::not_personal)?;
        }
        self.watch.within_reach(&self.actor, request).await
    }

    async fn carry_out(&self, call: Call, key: Option<Key>) -> Result<Answer, Error> {
        let (watch, actor) = (&self.watch, &self.actor);
        match call.request {
            Request::HealthAsk(_) => watch.health().await.map(Answer::HealthAsk),
            Request::StatusAsk(_) => watch.status_for(actor).await.map(Answer::StatusAsk),
            Request::BudgetList(_) => watch.budgets().await.map(Answer::BudgetList),
            Request::ToolList(_) => watch.tool_list().await.map(Answer::ToolList),
            Request::ToolMisuse(misused) => Err(no_tool(&misused.missing)),
            Request::ToolEnd(ToolEnd { code, counted, .. }) => {
                Ok(Answer::ToolEnd(ToolEnded { code, counted }))
            }
            Request::AgentAdd(asked) => watch.agent_add(actor, key, asked).await,
            Request::AgentEdit(asked) => watch.agent_edit(actor, key, asked).await,
            Request::AgentRemove(asked) => watch.agent_remove(actor, key, asked).await,
            Request::AgentTest(asked) => {
                watch.agent_test(actor, asked).boxed().await.map(Answer::AgentTest)
            }
            Request::AgentShow(asked) => watch.agent_show(asked).await.map(Answer::AgentShow),
            Request::AgentList(asked) => watch.agent_list(asked).await.map(Answer::AgentList),
            Request::ScheduleAdd(asked) => watch.schedule_add(actor, key, asked).await,
            Request::ScheduleAddAll(asked) => watch.schedule_add_all(actor, key, asked).await,
            Request::ScheduleEdit(asked) => watch.schedule_edit(actor, key, asked).await,
            Request::ScheduleBackfill(asked) => watch.schedule_backfill(actor, key, asked).await,
            Request::ScheduleBackfillEnd(asked) => {
                watch.schedule_backfill_end(actor, key, asked).await
            }
            Request::EventTell(asked) => watch.event_tell(actor, key, asked).await,
            Request::ScheduleList(asked) => {
                watch.schedule_list(asked).await.map(Answer::ScheduleList)
            }
            Request::ScheduleShow(asked) => {
                watch.schedule_show(actor, asked).await.map(Answer::ScheduleShow)
            }
            Request::SchedulePause(asked) => watch.schedule_pause(actor, key, asked).await,
            Request::ScheduleResume(asked) => watch.schedule_resume(actor, key, asked).await,
            Request::ScheduleRemove(asked) => watch.schedule_remove(actor, key, asked).await,
            Request::ScheduleFire(asked) => watch.schedule_fire(actor, key, asked).await,
            Request::Why(asked) => watch.why(asked).await.map(Answer::Why),
            Request::RunList(asked) => watch.run_list(asked).await.map(Answer::RunList),
            Request::RunShow(asked) => watch.run_show(actor, asked).await.map(Answer::RunShow),
            Request::RunRead(asked) => watch.run_read(actor, asked).await.map(Answer::RunRead),
            Request::RunWatch(asked) => watch.run_watch(asked).await.map(Answer::RunWatch),
            Request::RunEvents(asked) => watch.run_events(asked).await.map(Answer::RunEvents),
            Request::RunCancel(asked) => watch.run_cancel(actor, key, asked).await,
            Request::RunRetry(asked) => watch.run_retry(actor, key, asked).await,
            Request::RunSettle(asked) => watch.run_settle(actor, key, asked).await,
            Request::ApprovalList(asked) => {
                watch.approval_list(asked).await.map(Answer::ApprovalList)
            }
            Request::ApprovalShow(asked) => {
                watch.approval_show(actor, asked).await.map(Answer::ApprovalShow)
            }
            Request::ApprovalDecide(asked) => watch.approval_decide(actor, key, asked).await,
            Request::Freeze(asked) => watch.freeze(actor, key, asked).await,
            Request::Thaw(asked) => watch.thaw(actor, key, asked).await,
            Request::LeaseRenew(asked) => watch.lease_renew(actor, key, asked).await,
            Request::PolicyDecide(asked) => {
                watch.policy_decide(actor, asked).await.map(Answer::PolicyDecide)
            }
            Request::PolicyExplain(asked) => {
                watch.policy_explain(asked).await.map(Answer::PolicyExplain)
            }
            Request::ConfigReload(_) => watch.reload(actor).await.map(Answer::ConfigReload),
            Request::ConfigAsk(_) => Ok(Answer::ConfigAsk(watch.config())),
            Request::CheckAsk(_) => watch.check_ask().await.map(Answer::CheckAsk),
            Request::TokenCreate(asked) => watch.token_create(actor, key, asked).await,
            Request::TokenRevoke(asked) => watch.token_revoke(actor, key, asked).await,
            Request::TokenList(asked) => watch.token_list(asked).await.map(Answer::TokenList),
            Request::LedgerTail(asked) => watch.tail(asked).await.map(Answer::LedgerTail),
            Request::News(asked) => watch.news(asked).await.map(Answer::News),
            Request::LedgerCheckpoint(_) => watch.checkpoint().await.map(Answer::LedgerCheckpoint),
            // The rare ones apart, so that the common ones stay small.
            Request::PolicyReplay(asked) => {
                let replayed = watch.policy_replay(asked, &call.progress).boxed();
                replayed.await.map(Answer::PolicyReplay)
            }
            Request::LedgerExport(asked) => {
                let exported = watch.export(asked, &call.progress).boxed();
                exported.await.map(Answer::LedgerExport)
            }
            Request::LedgerRebuild(_) => {
                watch.may_write()?;
                let rebuilt = watch.rebuild(actor, "asked for", &call.progress).boxed();
                let rebuilt = rebuilt.await?;
                Ok(Answer::LedgerRebuild(TablesRebuilt { rebuilt }))
            }
        }
    }
}

fn no_tool(name: &str) -> Error {
    Error::new(Code::NotFound, format!("there is no tool `{name}`"))
}
