//! The tools that a schedule may call.
//!
//! The binary supplies them, because tools are defined where they are served.

use std::fmt::Debug;
use std::sync::Arc;

use api::{Code, Error, Handle, Request};
use futures::future::{BoxFuture, FutureExt};
use kernel::sealable_text::SealableText;

use crate::secrets::sealing::{Purpose, Sealing};

pub trait Tools: Debug + Send + Sync {
    /// Whether a tool of this name exists, callable by schedules or not.
    fn is_known(&self, tool: &str) -> bool;

    /// The request that a call of this tool makes, or why a schedule cannot make it.
    fn resolve(&self, tool: &str, payload: &str) -> Result<ResolvedCall, Error>;

    /// Makes the call and returns its result as JSON text. Repeated with the same key, its effect happens once.
    fn call<'a>(&'a self, call: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>>;
}

/// A tool call of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledCall<'a> {
    pub tool: &'a str,
    pub payload: &'a str,
    /// The idempotency key.
    pub key: &'a str,
    pub handle: &'a dyn Handle,
}

/// What a tool call does.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedCall {
    /// The hash of the tool's description, to notice when the tool changes.
    pub hash: String,
    pub request: Request,
}

/// Resolves the tool calls of schedules.
#[derive(Debug)]
pub(crate) struct ToolCatalog {
    pub(crate) sealing: Arc<Sealing>,
    pub(crate) tools: Arc<dyn Tools>,
}

impl ToolCatalog {
    pub(crate) fn resolve(
        &self,
        tool: &str,
        payload: &SealableText,
    ) -> Result<ResolvedCall, Error> {
        let payload = self.sealing.open(payload, Purpose::PrivateFields)?;
        self.tools.resolve(tool, &payload)
    }
}

/// For an engine that offers no tools.
#[derive(Debug)]
pub struct NoTools;

impl Tools for NoTools {
    fn is_known(&self, _: &str) -> bool {
        false
    }

    fn resolve(&self, tool: &str, _: &str) -> Result<ResolvedCall, Error> {
        Err(unknown_tool(tool))
    }

    fn call<'a>(&'a self, call: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>> {
        async move { Err(unknown_tool(call.tool)) }.boxed()
    }
}

fn unknown_tool(tool: &str) -> Error {
    Error::new(Code::NotFound, format!("there is no tool `{tool}`"))
}
