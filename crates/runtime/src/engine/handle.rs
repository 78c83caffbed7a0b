//! The handle in this process: authorizes a request and dispatches it to its handler.

use api::{Call, Decision, Error, Handle, Request, Response, Service, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use kernel::Actor;

use crate::authorize::audit::AuditedCall;
use crate::authorize::authenticate::kernel_role;
use crate::authorize::references::References;
use crate::commit::caller::Caller;
use crate::commit::idempotency::IdempotencyKey;
use crate::engine::Engine;
use crate::engine::startup_checks::refusal;
use crate::errors;
use crate::execute::tool_call::Handles;
use crate::execute::tool_metrics::CallEnd;

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

impl Service for Engine {
    type Caller = Caller;
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

    /// Needs no role: it adds entries about the caller's own calls, and only a limited number of them.
    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let (engine, actor) = (&self.engine, &self.actor);
            match report {
                ToolReport::Missing { tool } => {
                    engine.audit.record_missing_tool(actor, &tool).await
                }
                ToolReport::Ended { tool, changes, code, counted } => {
                    let end = CallEnd { is_change: changes, code, is_counted: counted };
                    engine.tool_metrics.record_end(actor, &tool, end).await
                }
            }
            Ok(())
        }
        .boxed()
    }
}

impl LocalHandle {
    async fn respond(&self, call: Call) -> Result<Response, Error> {
        let (engine, actor) = (&self.engine, &self.actor);
        let key = IdempotencyKey::of(&call, actor, &engine.sealing)?;
        let least_role = kernel_role(call.request.least_role());
        if actor.role < least_role {
            return Err(errors::role_too_low(actor, least_role));
        }
        let mut request = call.request;
        if request.changes() && !request.stops() {
            self.check_clock()?;
        }
        engine.references.complete(actor, &mut request).await?;
        let agents = References::agents_named_by(&mut request);
        let request = self.authorize(request).await?;
        let caller = Caller::new(actor.clone(), key, call.progress).expecting(call.version);
        let response = match request.serve(engine, &caller).await {
            Ok(response) => response,
            Err(error) => return Err(engine.references.suggest_agent(actor, &agents, error).await),
        };
        Ok(match caller.is_replayed() {
            true => Response::Replayed(Box::new(response)),
            false => response,
        })
    }

    /// Nothing but a stop is accepted while the clock is so far ahead that it is probably wrong.
    fn check_clock(&self) -> Result<(), Error> {
        let (found, posture) = (self.engine.time.untrusted(), self.engine.installation.posture);
        refusal(posture, found.as_slice()).map_or(Ok(()), Err)
    }

    /// The request, narrowed to what the caller may see.
    async fn authorize(&self, request: Request) -> Result<Request, Error> {
        if let Request::ApprovalDecide(decide) = &request {
            self.check_may_decide(decide.decision)?;
        }
        self.engine.scope.restrict(&self.actor, request).await
    }

    /// Approving needs more trust than the other decisions.
    fn check_may_decide(&self, decision: Decision) -> Result<(), Error> {
        match decision {
            Decision::Approve => {
                let trust = self.engine.config.active().trust;
                trust.check_may_approve(&self.actor).map_err(errors::not_personal)
            }
            Decision::Deny | Decision::Revoke => Ok(()),
        }
    }
}
