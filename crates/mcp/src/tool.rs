//! A tool: one row says what clients are told of it, and what happens when it is called.

use std::fmt;
use std::sync::Arc;

use api::{Ask, Call, Code, Error, Handle};
use futures::future::{BoxFuture, FutureExt};
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::schema::{self, Kind};
use crate::toolset::Toolset;

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
pub(crate) struct Through<'a> {
    pub(crate) handle: &'a dyn Handle,
    /// What the tool may do that is called.
    pub(crate) effect: Effect,
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

    /// Twice is not the same as once, but for the key that such a tool asks for.
    pub(crate) const fn each_time(self) -> Tool {
        Tool { idempotent: false, ..self }
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
        rmcp::model::Tool::new(self.name, self.summary, (self.takes)())
            .with_raw_output_schema(Arc::new(schema::output(self.gives)))
            .with_annotations(hints)
    }

    pub(crate) async fn call(
        &self,
        through: &Through<'_>,
        arguments: JsonObject,
    ) -> Result<Value, Error> {
        (self.call)(through, arguments).await
    }
}

fn call<'a, T: Input>(
    through: &'a Through<'a>,
    arguments: JsonObject,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let input: T = serde_json::from_value(Value::Object(arguments)).map_err(|wrong| {
            Error::new(
                Code::InvalidInput,
                format!("the arguments are not what the tool takes: {wrong}"),
            )
            .hint("its input schema says which fields there are, and of what type each is")
        })?;
        input.ask(through).await
    }
    .boxed()
}

impl Through<'_> {
    pub(crate) async fn read<R: Ask>(&self, request: R) -> Result<R::Answer, Error> {
        self.change(None, request).await
    }

    /// A change; with the same key, it happens once. What a tool may do is what clients are told of it: one that
    /// only reads makes no request that changes something.
    pub(crate) async fn change<R: Ask>(
        &self,
        key: Option<String>,
        request: R,
    ) -> Result<R::Answer, Error> {
        let call = Call { key, ..Call::new(request) };
        if self.effect == Effect::Read && call.request.changes() {
            let what = format!("a tool that only reads has asked for `{}`", call.request.name());
            return Err(Error::new(Code::Failed, what));
        }
        call.ask::<R>(self.handle).await
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
