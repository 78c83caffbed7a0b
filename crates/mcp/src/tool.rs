//! A tool: its definition as clients see it, and the function that a call runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{ApiRequest, Call, Class, Code, Error, Handle, Request, Response, ToolReport, numbers};
use futures::future::{BoxFuture, FutureExt, ready};
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::arguments::Argument;
use crate::list_page;
use crate::result_format::ResultFormat;
use crate::schema::{self, FieldType};
use crate::selection::Selection;
use crate::tools::Toolset;

/// Prefix of the hashed definition, so that its hash cannot equal that of something else.
const HASH_PREFIX: &[u8] = b"midwatch-tool/v1\n";

/// The effect of a call. The variant names are part of the definition hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// Removes or stops something.
    Destroy,
}

pub struct Tool {
    pub name: &'static str,
    pub toolset: Toolset,
    pub effect: Effect,
    /// Whether repeating a call has no further effect.
    pub idempotent: bool,
    /// Why a schedule cannot call it. `None` if a schedule can.
    pub not_schedulable: Option<&'static str>,
    /// Whether an argument decides if a call changes something. A read-only server offers such a tool and refuses the
    /// calls that would.
    pub effect_depends_on_action: bool,
    /// Whether an answer may have a link for a human, which the client is asked to open.
    pub(crate) elicits_human: bool,
    /// The command that does the same, without `midwatch`.
    pub cli_command: &'static str,
    pub summary: &'static str,
    /// Arguments that differ from the fields of the input.
    pub(crate) arguments: &'static [Argument],
    /// Fields of the input that are no arguments.
    pub(crate) hidden_fields: &'static [&'static str],
    /// If the answer is a page of a list, the fields of its items.
    pub(crate) item_fields: &'static [&'static str],
    output_fields: &'static [(&'static str, FieldType)],
    input_schema: fn() -> JsonObject,
    execute: ExecuteFn,
    finish: Finish,
    /// Whether its result is one block of text, without structured content.
    is_text: bool,
}

type ExecuteFn = for<'a> fn(&'a ToolContext<'a>, JsonObject) -> BoxFuture<'a, Result<Value, Error>>;

/// Turns the response to a tool's request, as JSON, into the answer.
#[derive(Clone, Copy)]
enum Finish {
    AsIs,
    With(fn(Value) -> Result<Value, Error>),
    /// Makes further requests.
    Requesting(FinishFn),
}

type FinishFn = for<'a> fn(&'a ToolContext<'a>, Value) -> BoxFuture<'a, Result<Value, Error>>;

/// The input of a tool: a request, or arguments of another shape, which a call turns into requests. It does not contain
/// the idempotency key.
pub(crate) trait ToolInput: DeserializeOwned + JsonSchema + Send + 'static {
    /// Whether calls change something.
    const CHANGES: bool = false;

    fn execute(
        self,
        context: &ToolContext<'_>,
    ) -> impl Future<Output = Result<Value, Error>> + Send;
}

/// The tool sends the request and answers with the response.
impl<R: ApiRequest> ToolInput for R {
    const CHANGES: bool = {
        assert!(!matches!(R::CLASS, Class::People), "no tool sends what only people may send");
        matches!(R::CLASS, Class::Change(_))
    };

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        match R::CHANGES {
            true => to_json(&context.change(self).await?),
            false => to_json(&context.read(self).await?),
        }
    }
}

/// What one call of a tool has to work with. As a [`Handle`] it marks the request that counts as the call.
#[derive(Debug)]
pub(crate) struct ToolContext<'a> {
    pub(crate) handle: &'a dyn Handle,
    /// The tool that is called.
    pub(crate) tool: &'a Tool,
    pub(crate) selection: &'a Selection,
    /// The metadata of the MCP request.
    pub(crate) meta: &'a JsonObject,
    /// The idempotency key of the call.
    pub(crate) key: Option<String>,
    /// Whether a response was replayed from an earlier request with the same key.
    replayed: AtomicBool,
    /// Whether the request that counts as the call was made.
    counted: AtomicBool,
    /// Whether that request was refused.
    refused: AtomicBool,
}

impl Tool {
    /// A tool with an input. Its schema and its effect follow from the input.
    pub(crate) const fn new<T: ToolInput>(
        name: &'static str,
        toolset: Toolset,
        cli_command: &'static str,
        summary: &'static str,
        output_fields: &'static [(&'static str, FieldType)],
    ) -> Tool {
        Tool {
            name,
            toolset,
            effect: if T::CHANGES { Effect::Write } else { Effect::Read },
            idempotent: true,
            not_schedulable: None,
            effect_depends_on_action: false,
            elicits_human: false,
            cli_command,
            summary,
            arguments: &[],
            hidden_fields: &[],
            item_fields: &[],
            output_fields,
            input_schema: schema::input::<T>,
            execute: parse_and_execute::<T>,
            finish: Finish::AsIs,
            is_text: false,
        }
    }

    /// Arguments with another name or description than their field.
    pub(crate) const fn arguments(self, arguments: &'static [Argument]) -> Tool {
        Tool { arguments, ..self }
    }

    /// Does not offer these fields of the input.
    pub(crate) const fn without(self, hidden_fields: &'static [&'static str]) -> Tool {
        Tool { hidden_fields, ..self }
    }

    /// Its answer is a page of a list, with these fields of each item.
    pub(crate) const fn paged(self, item_fields: &'static [&'static str]) -> Tool {
        Tool { item_fields, ..self }
    }

    /// A function turns the response into the answer.
    pub(crate) const fn then(self, finish: fn(Value) -> Result<Value, Error>) -> Tool {
        Tool { finish: Finish::With(finish), ..self }
    }

    /// A function turns the response into the answer, and makes further requests for it.
    pub(crate) const fn then_requesting(self, finish: FinishFn) -> Tool {
        Tool { finish: Finish::Requesting(finish), ..self }
    }

    pub(crate) const fn destroys(self) -> Tool {
        Tool { effect: Effect::Destroy, ..self }
    }

    /// Its effect depends on an argument, so it is declared as the strongest of them.
    pub(crate) const fn by_action(self) -> Tool {
        Tool { effect_depends_on_action: true, ..self.destroys() }
    }

    /// Each call has an effect; only a repeated idempotency key prevents it.
    pub(crate) const fn not_idempotent(self) -> Tool {
        Tool { idempotent: false, ..self }
    }

    /// Its answer may have a link for a human.
    pub(crate) const fn elicits_human(self) -> Tool {
        Tool { elicits_human: true, ..self }
    }

    /// A schedule cannot call it, for this reason.
    pub(crate) const fn not_schedulable(self, why: &'static str) -> Tool {
        Tool { not_schedulable: Some(why), ..self }
    }

    /// Its result is one block of text, for hosts that take nothing else.
    pub(crate) const fn text_only(self) -> Tool {
        Tool { is_text: true, ..self }
    }

    /// The form of its results.
    pub(crate) const fn result_format(&self) -> ResultFormat {
        match self.is_text {
            true => ResultFormat::NativeText,
            false => self.toolset.result_format(),
        }
    }

    /// A hash of the definition and the effect. It changes when clients see something else.
    pub fn definition_hash(&self) -> String {
        let Tool { name, effect, idempotent, summary, .. } = self;
        let (input, output) = (self.input_schema(), self.output_schema());
        let effect = format!("{effect:?}");
        let mut definition = json!([name, summary, effect, idempotent, input, output]);
        definition.sort_all_objects();
        let digest =
            Sha256::new().chain_update(HASH_PREFIX).chain_update(definition.to_string()).finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn input_schema(&self) -> JsonObject {
        let mut schema = (self.input_schema)();
        if self.is_paged() {
            list_page::adapt_schema(&mut schema);
        }
        self.adapt_schema(&mut schema);
        schema
    }

    const fn is_paged(&self) -> bool {
        !self.item_fields.is_empty()
    }

    pub(crate) fn has_output_field(&self, name: &str) -> bool {
        self.output_fields.iter().any(|(field, _)| *field == name)
    }

    fn output_schema(&self) -> JsonObject {
        let format = self.result_format();
        let replayed = (format == ResultFormat::Native && self.effect != Effect::Read)
            .then_some(("replayed", FieldType::Boolean));
        let fields: Vec<_> = self.output_fields.iter().copied().chain(replayed).collect();
        schema::output(&fields, format.error_type())
    }

    /// The definition that clients see.
    pub fn definition(&self) -> rmcp::model::Tool {
        // No tool reaches outside Midwatch itself: what a run may reach is decided by the policy.
        let hints = ToolAnnotations::from_raw(
            None,
            Some(self.effect == Effect::Read),
            Some(self.effect == Effect::Destroy),
            Some(self.idempotent),
            Some(false),
        );
        let tool = rmcp::model::Tool::new(self.name, self.summary, self.input_schema());
        let tool = match self.result_format().is_structured() {
            true => tool.with_raw_output_schema(Arc::new(self.output_schema())),
            false => tool,
        };
        tool.with_annotations(hints)
    }

    pub(crate) async fn call(
        &self,
        mut context: ToolContext<'_>,
        mut arguments: JsonObject,
    ) -> Result<Value, Error> {
        let canonical = arguments.values_mut().try_for_each(numbers::canonicalize);
        let answer = match canonical.and_then(|()| self.take_key(&mut arguments)) {
            Ok(key) => {
                context.key = key;
                self.answer(&context, arguments).await
            }
            Err(invalid) => Err(invalid),
        };
        context.record_end(&answer).await;
        let answer = answer?;
        let is_replayed = context.replayed.load(Ordering::Relaxed);
        Ok(match is_replayed && self.toolset.is_own() {
            true => with_field(answer, "replayed", true),
            false => answer,
        })
    }

    async fn answer(
        &self,
        context: &ToolContext<'_>,
        arguments: JsonObject,
    ) -> Result<Value, Error> {
        let load = |arguments| (self.execute)(context, arguments);
        let response = match self.is_paged() {
            true => list_page::load_page(self, arguments, load).await?,
            false => load(arguments).await?,
        };
        match self.finish {
            Finish::AsIs => Ok(response),
            Finish::With(finish) => finish(response),
            Finish::Requesting(finish) => finish(context, response).await,
        }
    }
}

fn parse_and_execute<'a, T: ToolInput>(
    context: &'a ToolContext<'a>,
    arguments: JsonObject,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move { context.tool.parse_arguments::<T>(arguments)?.execute(context).await }.boxed()
}

impl<'a> ToolContext<'a> {
    pub(crate) fn new(
        handle: &'a dyn Handle,
        tool: &'a Tool,
        selection: &'a Selection,
        meta: &'a JsonObject,
    ) -> ToolContext<'a> {
        let [replayed, counted, refused] = [(); 3].map(|()| AtomicBool::new(false));
        ToolContext { handle, tool, selection, meta, key: None, replayed, counted, refused }
    }

    /// Whether the caller can call this tool.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.selection.find(tool).is_some()
    }

    pub(crate) async fn read<R: ApiRequest>(&self, request: R) -> Result<R::Response, Error> {
        const { assert!(!matches!(R::CLASS, Class::People), "no tool sends what only people may") };
        api::send(self, request).await
    }

    /// Records the end of the call if no request was counted as the call, or if the call failed after that request.
    async fn record_end(&self, answer: &Result<Value, Error>) {
        let code = answer.as_ref().err().map(|refused| refused.code);
        let counted = self.counted.load(Ordering::Relaxed);
        if counted && (code.is_none() || self.refused.load(Ordering::Relaxed)) {
            return;
        }
        // If the effect depends on an argument, an uncounted call has changed nothing.
        let changes = self.tool.effect != Effect::Read && !self.tool.effect_depends_on_action;
        let tool = self.tool.name.to_owned();
        let report = ToolReport::Ended { tool, changes, code, counted };
        if let Err(error) = self.handle.report(report).await {
            warn!(%error, tool = self.tool.name, "failed to record the end of a tool call");
        }
    }

    /// Whether a request counts as the call: the first one; for a tool that changes something, the first
    /// that changes something.
    fn counts_as_call(&self, request: &Request) -> bool {
        let is_the_call = self.tool.effect == Effect::Read || request.changes();
        is_the_call && !self.counted.swap(true, Ordering::Relaxed)
    }

    /// Makes a request that changes something. Repeated calls with the same key take effect once.
    pub(crate) async fn change<R: ApiRequest>(&self, request: R) -> Result<R::Response, Error> {
        const { assert!(!matches!(R::CLASS, Class::People), "no tool sends what only people may") };
        Call { key: self.key.clone(), ..Call::new(request) }.send::<R>(self).await
    }
}

/// Sets the tool's name on the request that counts as the call. Refuses a change by a tool that is declared as
/// reading only, and every change on a read-only server.
impl Handle for ToolContext<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        if self.tool.effect == Effect::Read && call.request.changes() {
            let what = format!("a read-only tool made the request `{}`", call.request.name());
            return ready(Err(Error::new(Code::Failed, what))).boxed();
        }
        if self.selection.is_read_only() && call.request.changes() {
            let refusal = Error::new(Code::SwitchedOff, "this server is read-only")
                .hint("do not try again; your user can start a server that is not");
            return ready(Err(refusal)).boxed();
        }
        let counts = self.counts_as_call(&call.request);
        let tool = counts.then(|| self.tool.name.to_owned());
        let answer = self.handle.call(Call { tool, ..call });
        async move {
            let answer = answer.await;
            if counts {
                self.refused.store(answer.is_err(), Ordering::Relaxed);
            }
            let answer = answer?;
            if matches!(answer, Response::Replayed(_)) {
                self.replayed.store(true, Ordering::Relaxed);
            }
            Ok(answer)
        }
        .boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        self.handle.report(report)
    }
}

/// A response as JSON, as on the wire.
pub(crate) fn to_json(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| Error::new(Code::Failed, error))
}

/// Parses what [`to_json`] returned.
pub(crate) fn from_json<T: DeserializeOwned>(answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|error| Error::new(Code::Failed, error))
}

/// Adds a field to an object.
pub(crate) fn with_field(mut answer: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(fields) = &mut answer {
        fields.insert(name.to_owned(), value.into());
    }
    answer
}

/// An object with these fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(Map::from_iter(fields.map(|(name, value)| (name.to_owned(), value))))
}

impl fmt::Debug for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tool { name, toolset, effect, .. } = self;
        write!(out, "Tool({name}, {toolset:?}, {effect:?})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses every request with `reached the handle`.
    #[derive(Debug)]
    struct Open;

    impl Handle for Open {
        fn call(&self, _: Call) -> BoxFuture<'_, Result<Response, Error>> {
            async { Err(Error::new(Code::Failed, "reached the handle")) }.boxed()
        }

        fn report(&self, _: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
            ready(Ok(())).boxed()
        }
    }

    #[tokio::test]
    async fn a_read_only_server_refuses_changes() {
        let meta = JsonObject::new();
        for (read_only, expected) in [(false, Code::Failed), (true, Code::SwitchedOff)] {
            let selection = Selection::default().read_only(read_only);
            let tool = Selection::default().find("schedule_resume").unwrap();
            let context = ToolContext::new(&Open, tool, &selection, &meta);
            let request = api::ScheduleResume { id: "sch_00000000".to_owned() };
            let error = context.change(request).await.unwrap_err();
            assert_eq!(error.code, expected, "{error}");
        }
    }

    #[tokio::test]
    async fn a_tool_declared_as_reading_cannot_make_changes() {
        let (selection, meta) = (Selection::default(), JsonObject::new());
        for (name, expected) in [
            ("status_get", "a read-only tool made the request"),
            ("schedule_resume", "reached the handle"),
        ] {
            let tool = selection.find(name).unwrap();
            let context = ToolContext::new(&Open, tool, &selection, &meta);
            let request = api::ScheduleResume { id: "sch_00000000".to_owned() };
            let error = context.read(request).await.unwrap_err();
            assert!(error.message.starts_with(expected), "{error}");
            let read = context.read(api::StatusShow {}).await.unwrap_err();
            assert_eq!(read.message, "reached the handle");
        }
    }
}
