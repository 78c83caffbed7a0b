//! Calls of tools by schedules: the same tools, without an MCP client.

use std::sync::{Mutex, PoisonError};

use api::{Call, Code, Error, Handle, Request, Response, ToolReport, nearest};
use futures::future::{BoxFuture, FutureExt, ready};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::arguments::KEY;
use crate::selection::Selection;
use crate::tool::{Effect, Tool, ToolContext};
use crate::tools;
use crate::truncation;

/// Stands for the run's key when a call is only checked.
const PLACEHOLDER_KEY: &str = "none";

/// Finds a tool that a schedule can call: one of our own, not of another system. The error says why it cannot.
pub fn find(name: &str) -> Result<&'static Tool, Error> {
    let own = || tools::all().filter(|tool| tool.toolset.is_own());
    let Some(tool) = own().find(|tool| tool.name == name) else {
        let names: Vec<&str> =
            own().filter(|tool| tool.not_schedulable.is_none()).map(|tool| tool.name).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(similar) => format!("did you mean `{similar}`?"),
            None => format!("a schedule can call {}", names.join(", ")),
        };
        let what = format!("there is no tool `{name}`");
        return Err(Error::new(Code::NotFound, what).hint(hint));
    };
    match tool.not_schedulable {
        None => Ok(tool),
        Some(why) => {
            let what = format!("a schedule cannot call the tool `{name}`");
            Err(Error::new(Code::InvalidInput, what).hint(why))
        }
    }
}

/// The request that a call would make. Nothing is executed.
pub fn request(tool: &Tool, payload: &str) -> Result<Request, Error> {
    let arguments = arguments(tool, payload, PLACEHOLDER_KEY)?;
    let recorder = Recorder::default();
    let (selection, meta) = (Selection::default(), JsonObject::new());
    let context = ToolContext::new(&recorder, tool, &selection, &meta);
    let refused = tool.call(context, arguments).now_or_never();
    match (recorder.request(), refused) {
        (Some(request), _) => Ok(request),
        (None, Some(Err(refused))) => {
            let message = format!("the payload of `{}`: {}", tool.name, refused.message);
            Err(Error { message, ..refused })
        }
        (None, _) => Err(Error::new(Code::Failed, "the tool makes no request")),
    }
}

/// Calls a tool. Repeated calls with the same key take effect once.
pub async fn call(
    tool: &Tool,
    payload: &str,
    key: &str,
    handle: &dyn Handle,
) -> Result<Value, Error> {
    let arguments = arguments(tool, payload, key)?;
    let (selection, meta) = (Selection::default(), JsonObject::new());
    let context = ToolContext::new(handle, tool, &selection, &meta);
    Ok(truncation::truncate_answer(tool.call(context, arguments).await?))
}

fn arguments(tool: &Tool, payload: &str, key: &str) -> Result<JsonObject, Error> {
    let invalid = |what: String| {
        let hint = "pass an object such as `{\"schedule_id\": \"sch_…\"}`; the tool's input schema lists its fields";
        Error::new(Code::InvalidInput, what).hint(hint)
    };
    let payload: Value = api::json::read(payload.as_bytes())
        .map_err(|error| invalid(format!("the payload is not JSON: {error}")))?;
    let Value::Object(mut arguments) = payload else {
        return Err(invalid("the payload is not an object".to_owned()));
    };
    if tool.effect != Effect::Read && arguments.insert(KEY.to_owned(), key.into()).is_some() {
        return Err(Error::new(Code::InvalidInput, format!("the payload contains `{KEY}`"))
            .hint("omit it: each run sets its own key"));
    }
    Ok(arguments)
}

/// A handle that executes nothing and records the first request.
#[derive(Debug, Default)]
struct Recorder(Mutex<Option<Request>>);

impl Recorder {
    fn request(self) -> Option<Request> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle for Recorder {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(call.request);
        ready(Err(Error::new(Code::NotNow, "requests are only recorded"))).boxed()
    }

    fn report(&self, _: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }
}
