//! Tools as schedules call them: the same rows of the table, without anybody who speaks the protocol.

use std::sync::{Mutex, PoisonError};

use api::{Answer, Call, Code, Error, Handle, Request};
use futures::future::{BoxFuture, FutureExt, ready};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::size;
use crate::tool::{Effect, Through, Tool};
use crate::tools;
use crate::toolset::{Selection, Toolset};

/// What schedules call is ours, and not what others call it.
const OWN: [Toolset; 6] = [
    Toolset::Core,
    Toolset::Schedule,
    Toolset::Run,
    Toolset::Approval,
    Toolset::Agent,
    Toolset::Ledger,
];
/// What the run that calls gives by itself.
const KEY: &str = "idempotency_key";
/// In the place of a run's own key, where nothing is called.
const NO_KEY: &str = "none";

/// The tool of this name that a schedule may call, or why it may not.
pub fn find(name: &str) -> Result<&'static Tool, Error> {
    let own = || tools::all().filter(|tool| OWN.contains(&tool.toolset));
    let Some(tool) = own().find(|tool| tool.name == name) else {
        let names: Vec<&str> =
            own().filter(|tool| tool.not_scheduled.is_none()).map(|tool| tool.name).collect();
        return Err(Error::new(Code::NotFound, format!("there is no tool `{name}`"))
            .hint(format!("a schedule can call {}", names.join(", "))));
    };
    match tool.not_scheduled {
        None => Ok(tool),
        Some(why) => {
            let what = format!("no schedule calls the tool `{name}`");
            Err(Error::new(Code::InvalidInput, what).hint(why))
        }
    }
}

/// What a call asks for, without asking.
pub fn request(tool: &Tool, payload: &str) -> Result<Request, Error> {
    let arguments = arguments(tool, payload, NO_KEY)?;
    let recorder = Recorder::default();
    let (selection, meta) = (Selection::default(), JsonObject::new());
    let through = Through::new(&recorder, tool, &selection, &meta);
    let refused = tool.call(&through, arguments).now_or_never();
    match (recorder.request(), refused) {
        (Some(Request::ToolEnd(_)), Some(Err(refused))) => Err(refused),
        (Some(request), _) => Ok(request),
        (None, Some(Err(refused))) => Err(refused),
        (None, _) => Err(Error::new(Code::Failed, "the tool asks for nothing")),
    }
}

/// Calls a tool. With the same key its effect happens once.
pub async fn call(
    tool: &Tool,
    payload: &str,
    key: &str,
    handle: &dyn Handle,
) -> Result<Value, Error> {
    let arguments = arguments(tool, payload, key)?;
    let (selection, meta) = (Selection::default(), JsonObject::new());
    let through = Through::new(handle, tool, &selection, &meta);
    Ok(size::fitted(tool.call(&through, arguments).await?))
}

fn arguments(tool: &Tool, payload: &str, key: &str) -> Result<JsonObject, Error> {
    let wrong = |what: String| {
        let hint = "give an object such as `{\"id\": \"sch_…\"}`; its input schema says which fields there are";
        Error::new(Code::InvalidInput, what).hint(hint)
    };
    let payload: Value = api::json::read(payload.as_bytes())
        .map_err(|error| wrong(format!("the payload is not JSON: {error}")))?;
    let Value::Object(mut arguments) = payload else {
        return Err(wrong("the payload is no object".to_owned()));
    };
    if tool.effect != Effect::Read && arguments.insert(KEY.to_owned(), key.into()).is_some() {
        return Err(Error::new(Code::InvalidInput, format!("the payload has an `{KEY}`"))
            .hint("leave it out: each run has a key of its own"));
    }
    Ok(arguments)
}

/// A handle that carries out nothing, and remembers what it was asked first.
#[derive(Debug, Default)]
struct Recorder(Mutex<Option<Request>>);

impl Recorder {
    fn request(self) -> Option<Request> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle for Recorder {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(call.request);
        ready(Err(Error::new(Code::NotNow, "nothing is carried out"))).boxed()
    }
}
