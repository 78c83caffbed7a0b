//! Schedules whose work is a call of one of our own tools.
//!
//! What tools there are, the binary says: they are defined where they are served. A call is made with the run as
//! its key, so that its effect happens once, whatever becomes of the process in between.

use std::fmt::Debug;

use api::{Code, Error, Handle, Request};
use futures::future::BoxFuture;
use kernel::run::{Cause, Failure, Kind, Output, Report};
use kernel::schedule::Action;
use kernel::tool::Called;
use kernel::wording::Wording;
use kernel::{Actor, RunId};
use policy::capability;

use crate::sealing::Purpose;
use crate::watch::Engine;

/// The tools that a schedule may call.
pub trait Tools: Debug + Send + Sync {
    /// Whether there is a tool of this name, for schedules or for others.
    fn is_known(&self, tool: &str) -> bool;

    /// What a call of this tool with this payload asks for, or why a schedule cannot make it.
    fn meant(&self, tool: &str, payload: &str) -> Result<Meant, Error>;

    /// Makes the call, and gives what came of it as JSON text. With the same key its effect happens once.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        payload: &'a str,
        key: String,
        handle: &'a dyn Handle,
    ) -> BoxFuture<'a, Result<String, Error>>;
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Meant {
    /// Of all that callers are told of the tool.
    pub hash: String,
    pub request: Request,
}

/// A call that is ready to be made.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) payload: String,
    pub(crate) is_sensitive: bool,
}

impl Engine {
    /// What a call of a tool asks for.
    pub(crate) fn meant(&self, tool: &str, payload: &Wording) -> Result<Meant, Error> {
        let unknown = || {
            Error::new(Code::NotFound, format!("there is no tool `{tool}`: this watch has none"))
        };
        let payload = self.sealing().open(payload, Purpose::Words)?;
        self.tools().ok_or_else(unknown)?.meant(tool, &payload)
    }

    /// What the work of a schedule comes to that is a call, as the tool is now.
    pub(crate) async fn called(
        &self,
        action: &Action,
    ) -> Result<Option<Result<Called, Cause>>, Error> {
        let Action::Tool { tool, payload, .. } = action else { return Ok(None) };
        let Meant { hash, request } = match self.meant(tool, payload) {
            Ok(meant) => meant,
            Err(refused) => return Ok(Some(Err(impossible(&refused)))),
        };
        let (capability, resource, agents) = self.judged_as(&request, None).await?;
        Ok(Some(Ok(Called {
            hash,
            capability: capability.to_owned(),
            tier: capability::tier(capability),
            agent: agents.into_iter().flatten().next(),
            resource,
        })))
    }

    /// Makes the call that is the work of a run.
    pub(crate) async fn make(&self, call: &Call, run: &RunId) -> Report {
        let handle = self.handle(Actor::of_call(run));
        let Some(tools) = self.tools() else { return report(Err(Error::new(Code::Failed, ""))) };
        report(tools.call(&call.tool, &call.payload, run.to_string(), &handle).await)
    }
}

/// Why a call cannot be made.
fn impossible(refused: &Error) -> Cause {
    let code = match refused.code {
        Code::NotFound => "tool_missing",
        code => code.name(),
    };
    Cause::new(code, &refused.message)
}

fn report(answer: Result<String, Error>) -> Report {
    let (result, text) = match answer {
        Ok(text) => (Ok(()), text),
        Err(error) => {
            // Nothing was committed, or the same key finds what was.
            let kind = match error.code {
                Code::Busy | Code::Failed | Code::DiskFull | Code::Unreachable => {
                    Kind::Passing { wait_us: 0 }
                }
                _ => Kind::Permanent,
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
