//! Runs whose work is a call of one of Midwatch's own tools.
//!
//! The call is made with the run's id as its idempotency key, so its effect happens once, whatever becomes of the process.

use std::fmt::Debug;
use std::sync::Arc;

use api::{Code, Error, Handle};
use kernel::run::{Cause, Failure, FailureKind, Output, Report};
use kernel::schedule::Action;
use kernel::tool::ToolCall;
use kernel::{Actor, RunId};
use policy::capability;

use crate::authorize::scope::Scope;
use crate::authorize::tool_catalog::{ResolvedCall, ScheduledCall, ToolCatalog};

/// Opens handles that act for a caller.
pub(crate) trait Handles: Debug + Send + Sync {
    fn open(&self, actor: Actor) -> Box<dyn Handle>;
}

/// A call whose payload is readable.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) tool: String,
    pub(crate) payload: String,
    pub(crate) is_sensitive: bool,
}

/// Resolves and executes the tool calls of schedules.
#[derive(Debug)]
pub(crate) struct ToolCalls {
    pub(crate) scope: Arc<Scope>,
    pub(crate) tools: Arc<ToolCatalog>,
}

impl ToolCalls {
    /// What the tool call of a schedule does, as the tool is now. `None` for a prompt.
    pub(crate) async fn resolve(
        &self,
        action: &Action,
    ) -> Result<Option<Result<ToolCall, Cause>>, Error> {
        let Action::Tool { tool, payload, .. } = action else { return Ok(None) };
        let ResolvedCall { hash, request } = match self.tools.resolve(tool, payload) {
            Ok(resolved) => resolved,
            Err(refused) => return Ok(Some(Err(cannot_call(&refused)))),
        };
        let target = self.scope.policy_target(&request, None).await?;
        Ok(Some(Ok(ToolCall {
            hash,
            capability: target.capability.to_owned(),
            tier: capability::tier(target.capability),
            agent: target.agents.into_iter().flatten().next(),
            resource: target.resource,
        })))
    }

    /// Makes the call that is the work of a run.
    pub(crate) async fn execute(
        &self,
        call: &PendingCall,
        run: &RunId,
        handles: &dyn Handles,
    ) -> Report {
        let handle = handles.open(Actor::for_tool_call(run));
        let tools = &self.tools.tools;
        let PendingCall { tool, payload, .. } = call;
        let call = ScheduledCall { tool, payload, key: run.as_str(), handle: &*handle };
        report(tools.call(call).await)
    }
}

fn cannot_call(refused: &Error) -> Cause {
    let code = match refused.code {
        Code::NotFound => "tool_missing",
        code => code.name(),
    };
    Cause::new(code, &refused.message)
}

fn report(response: Result<String, Error>) -> Report {
    let (result, text) = match response {
        Ok(text) => (Ok(()), text),
        Err(error) => {
            // Nothing was committed, or a repetition with the same key finds what was.
            let kind = match error.code {
                Code::Busy | Code::Failed | Code::DiskFull | Code::Unreachable => {
                    FailureKind::Transient { wait_us: 0 }
                }
                _ => FailureKind::Permanent,
            };
            (
                Err(Failure { cause: Cause::new(error.code.name(), &error.message), kind }),
                String::new(),
            )
        }
    };
    let bytes = text.len() as u64;
    let output = Output { text: text.into(), bytes, file: None };
    Report { result, output: Some(output).filter(|output| 0 < output.bytes), usage: None }
}
