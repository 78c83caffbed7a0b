//! A tool: one row says what clients are told of it, and what happens when it is called.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{Answer, Ask, Call, Code, Error, Handle, Request, ToolEnd};
use futures::future::{BoxFuture, FutureExt, ready};
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::dialect::Dialect;
use crate::schema::{self, Kind};
use crate::toolset::{Selection, Toolset};

/// What is hashed of a tool begins with this, so that it is taken for nothing else.
const HASHED: &[u8] = b"midwatch-tool/v1\n";

/// What a call does to the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// Takes something away.
    Destroy,
}

pub struct Tool {
    pub name: &'static str,
    pub toolset: Toolset,
    pub effect: Effect,
    /// Whether the same call again changes nothing more.
    pub idempotent: bool,
    /// Why no schedule calls it, if so.
    pub not_scheduled: Option<&'static str>,
    /// Whether it does one thing or another, so that a server that only reads offers it and refuses some.
    pub by_action: bool,
    /// Whether its answer may call for a human at a link, which a client that can do so opens.
    pub(crate) calls_human: bool,
    /// The command that does the same.
    pub twin: &'static str,
    pub summary: &'static str,
    gives: &'static [(&'static str, Kind)],
    takes: fn() -> JsonObject,
    call: CallFn,
}

type CallFn = for<'a> fn(&'a Through<'a>, JsonObject) -> BoxFuture<'a, Result<Value, Error>>;

/// What a tool takes, and which request it makes of it.
pub(crate) trait Input: DeserializeOwned + JsonSchema + Send + 'static {
    fn ask(self, through: &Through<'_>) -> impl Future<Output = Result<Value, Error>> + Send;
}

/// The way to the watch, for one call.
#[derive(Debug)]
pub(crate) struct Through<'a> {
    pub(crate) handle: &'a dyn Handle,
    /// That is called.
    pub(crate) tool: &'a Tool,
    pub(crate) selection: &'a Selection,
    /// What came with the request besides its arguments.
    pub(crate) meta: &'a JsonObject,
    /// Whether an answer was that to an earlier call with the same key.
    replayed: AtomicBool,
    /// Whether a request was made that counts as the call, …
    counted: AtomicBool,
    /// … and was refused.
    refused: AtomicBool,
}

impl Tool {
    pub(crate) const fn reads<T: Input>(
        name: &'static str,
        toolset: Toolset,
        twin: &'static str,
        summary: &'static str,
        gives: &'static [(&'static str, Kind)],
    ) -> Tool {
        Tool {
            name,
            toolset,
            effect: Effect::Read,
            idempotent: true,
            not_scheduled: None,
            by_action: false,
            calls_human: false,
            twin,
            summary,
            gives,
            takes: schema::input::<T>,
            call: call::<T>,
        }
    }

    pub(crate) const fn writes<T: Input>(
        name: &'static str,
        toolset: Toolset,
        twin: &'static str,
        summary: &'static str,
        gives: &'static [(&'static str, Kind)],
    ) -> Tool {
        let effect = Effect::Write;
        Tool { effect, ..Tool::reads::<T>(name, toolset, twin, summary, gives) }
    }

    pub(crate) const fn destroys(self) -> Tool {
        Tool { effect: Effect::Destroy, ..self }
    }

    /// What it does depends on an argument, so it counts as the worst of it.
    pub(crate) const fn by_action(self) -> Tool {
        Tool { by_action: true, ..self.destroys() }
    }

    /// Twice is not the same as once, but for the key that such a tool asks for.
    pub(crate) const fn each_time(self) -> Tool {
        Tool { idempotent: false, ..self }
    }

    /// Its answer may call for a human at a link.
    pub(crate) const fn calls_human(self) -> Tool {
        Tool { calls_human: true, ..self }
    }

    /// It makes no sense without somebody who waits for the answer.
    pub(crate) const fn not_scheduled(self, why: &'static str) -> Tool {
        Tool { not_scheduled: Some(why), ..self }
    }

    /// Of all that callers are told, and of what a call does to the watch.
    pub fn hash(&self) -> String {
        let Tool { name, effect, idempotent, summary, .. } = self;
        let (takes, gives) = ((self.takes)(), self.output());
        let effect = format!("{effect:?}");
        let mut told = json!([name, summary, effect, idempotent, takes, gives]);
        told.sort_all_objects();
        let digest = Sha256::new().chain_update(HASHED).chain_update(told.to_string()).finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn output(&self) -> JsonObject {
        let dialect = self.toolset.dialect();
        let replayed = (dialect == Dialect::Native && self.effect != Effect::Read)
            .then_some(("replayed", Kind::Flag));
        let gives: Vec<_> = self.gives.iter().copied().chain(replayed).collect();
        schema::output(&gives, dialect.error())
    }

    /// What a client is told.
    pub fn described(&self) -> rmcp::model::Tool {
        // Nothing here reaches beyond the watch: what a run reaches is for the standing orders.
        let hints = ToolAnnotations::from_raw(
            None,
            Some(self.effect == Effect::Read),
            Some(self.effect == Effect::Destroy),
            Some(self.idempotent),
            Some(false),
        );
        let tool = rmcp::model::Tool::new(self.name, self.summary, (self.takes)());
        let tool = match self.toolset.dialect().is_structured() {
            true => tool.with_raw_output_schema(Arc::new(self.output())),
            false => tool,
        };
        tool.with_annotations(hints)
    }

    pub(crate) async fn call(
        &self,
        through: &Through<'_>,
        arguments: JsonObject,
    ) -> Result<Value, Error> {
        let answer = (self.call)(through, arguments).await;
        through.ended(&answer).await;
        let answer = answer?;
        let is_replayed = through.replayed.load(Ordering::Relaxed);
        Ok(match is_replayed && self.toolset.dialect() == Dialect::Native {
            true => with(answer, "replayed", true),
            false => answer,
        })
    }
}

fn call<'a, T: Input>(
    through: &'a Through<'a>,
    arguments: JsonObject,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let input = serde_path_to_error::deserialize::<_, T>(Value::Object(arguments));
        let wrong = match input {
            Ok(input) => return input.ask(through).await,
            Err(wrong) => wrong,
        };
        let what = match wrong.path().to_string().as_str() {
            "." => format!("the arguments are not what the tool takes: {}", wrong.inner()),
            field => format!("`{field}` is not what the tool takes: {}", wrong.inner()),
        };
        Err(Error::new(Code::InvalidInput, what)
            .hint("its input schema says which fields there are, and of what type each is"))
    }
    .boxed()
}

impl<'a> Through<'a> {
    pub(crate) fn new(
        handle: &'a dyn Handle,
        tool: &'a Tool,
        selection: &'a Selection,
        meta: &'a JsonObject,
    ) -> Through<'a> {
        let [replayed, counted, refused] = [(); 3].map(|()| AtomicBool::new(false));
        Through { handle, tool, selection, meta, replayed, counted, refused }
    }

    pub(crate) async fn read<R: Ask>(&self, request: R) -> Result<R::Answer, Error> {
        api::ask(self, request).await
    }

    /// Has the call counted if nothing that it asked for was, or says that it failed after that.
    async fn ended(&self, answer: &Result<Value, Error>) {
        let code = answer.as_ref().err().map(|refused| refused.code);
        let counted = self.counted.load(Ordering::Relaxed);
        if counted && (code.is_none() || self.refused.load(Ordering::Relaxed)) {
            return;
        }
        // One that may do anything has not changed anything unless it has asked for that.
        let changes = self.tool.effect != Effect::Read && !self.tool.by_action;
        let tool = Some(self.tool.name.to_owned());
        let ended = Call { tool, ..Call::new(ToolEnd { changes, code, counted }) };
        // Whoever called learns how it ended anyway.
        let _ = self.handle.call(ended).await;
    }

    /// Whether a request counts as the call: the first one, of a tool that changes something the first change.
    fn counts(&self, request: &Request) -> bool {
        let is_the_call = self.tool.effect == Effect::Read || request.changes();
        is_the_call && !self.counted.swap(true, Ordering::Relaxed)
    }

    /// A change; with the same key, it happens once.
    pub(crate) async fn change<R: Ask>(
        &self,
        key: Option<String>,
        request: R,
    ) -> Result<R::Answer, Error> {
        if self.selection.is_read_only() {
            let what = "this server was started to read only, so it changes nothing";
            return Err(Error::new(Code::SwitchedOff, what)
                .hint("leave it, or ask your user to start it without `--read-only`"));
        }
        Call { key, ..Call::new(request) }.ask::<R>(self).await
    }
}

/// What counts as the call of a tool says which it is. What a tool may do is what clients are told of it: one
/// that only reads makes no request that changes something.
impl Handle for Through<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        if self.tool.effect == Effect::Read && call.request.changes() {
            let what = format!("a tool that only reads has asked for `{}`", call.request.name());
            return ready(Err(Error::new(Code::Failed, what))).boxed();
        }
        let counts = self.counts(&call.request);
        let tool = counts.then(|| self.tool.name.to_owned());
        let answer = self.handle.call(Call { tool, ..call });
        async move {
            let answer = answer.await;
            if counts {
                self.refused.store(answer.is_err(), Ordering::Relaxed);
            }
            let answer = answer?;
            if matches!(answer, Answer::Replayed(_)) {
                self.replayed.store(true, Ordering::Relaxed);
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// An answer as it is on the wire.
pub(crate) fn shown(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(|error| Error::new(Code::Failed, error))
}

/// These fields of each of many things; the rest is for whoever asks for one of them.
pub(crate) fn brief(items: &impl Serialize, fields: &[&str]) -> Result<Value, Error> {
    let mut items = shown(items)?;
    for item in items.as_array_mut().into_iter().flatten() {
        if let Value::Object(item) = item {
            item.retain(|name, value| fields.contains(&name.as_str()) && !value.is_null());
        }
    }
    Ok(items)
}

/// One more field.
pub(crate) fn with(mut answer: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Value::Object(fields) = &mut answer {
        fields.insert(name.to_owned(), value.into());
    }
    answer
}

/// A page of a list; the cursor is there when there is another.
pub(crate) fn page_of(name: &str, items: Value, cursor: Option<String>) -> Value {
    let page = fields([(name, items)]);
    match cursor {
        Some(cursor) => with(page, "cursor", cursor),
        None => page,
    }
}

/// An answer of these fields.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
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

    /// Whatever reaches it was let through.
    #[derive(Debug)]
    struct Open;

    impl Handle for Open {
        fn call(&self, _: Call) -> BoxFuture<'_, Result<Answer, Error>> {
            async { Err(Error::new(Code::Failed, "it was let through")) }.boxed()
        }
    }

    #[tokio::test]
    async fn a_change_does_not_get_through_where_nothing_is_changed() {
        let meta = JsonObject::new();
        for (read_only, expected) in [(false, Code::Failed), (true, Code::SwitchedOff)] {
            let selection = Selection::default().read_only(read_only);
            let tool = Selection::default().find("schedule_resume").unwrap();
            let through = Through::new(&Open, tool, &selection, &meta);
            let asked = api::ScheduleResume { id: "sch_00000000".to_owned() };
            let error = through.change(None, asked).await.unwrap_err();
            assert_eq!(error.code, expected, "{error}");
        }
    }

    /// What clients are told of a tool holds for what it asks for.
    #[tokio::test]
    async fn a_tool_that_only_reads_asks_for_no_change() {
        let (selection, meta) = (Selection::default(), JsonObject::new());
        for (name, expected) in [
            ("status_get", "a tool that only reads has asked"),
            ("schedule_resume", "it was let through"),
        ] {
            let tool = selection.find(name).unwrap();
            let through = Through::new(&Open, tool, &selection, &meta);
            let asked = api::ScheduleResume { id: "sch_00000000".to_owned() };
            let error = through.read(asked).await.unwrap_err();
            assert!(error.message.starts_with(expected), "{error}");
            let seen = through.read(api::StatusAsk {}).await.unwrap_err();
            assert_eq!(seen.message, "it was let through");
        }
    }
}
