//! The tools of promptyoself: prompts for agents, by numbers.
//!
//! Whoever comes this way registers no agent, so an agent that is not registered is not found. What would ask
//! a server of Letta with the key of whoever started this, or would have to be remembered, is not here:
//! `promptyoself_test`, `promptyoself_upload`, and setting a default agent.

use std::time::{SystemTime, UNIX_EPOCH};

use api::{Code, Error, HealthAsk, StatusAsk};
use compat::promptyoself::agents::Agents;
use compat::promptyoself::register::{Asked, refused};
use compat::promptyoself::{self as words, Of};
use compat::schedules;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::LIST_ITEMS_MAX;
use crate::schema::Kind::{self, Text};
use crate::tool::{Input, Through, Tool, shown, with};
use crate::toolset::Toolset;

/// Whether it worked is in every answer.
const GIVES: &[(&str, Kind)] = &[("status", Text)];
/// What some hosts send with every call.
const IGNORED: [(&str, &str); 4] = [
    ("heartbeat", "boolean"),
    ("mcp_server_id", "string"),
    ("mcp_server_name", "string"),
    ("request_heartbeat", "boolean"),
];
/// Where the request may say by itself which agent it is from.
const META_KEYS: [&str; 4] = ["agent_id", "agentId", "letta_agent_id", "caller_agent_id"];
const NOTE: &str = "The watch delivers each prompt when it is due, and need not be told. promptyoself_list \
                    shows what is scheduled, and `runs` what is being delivered.";

pub(super) const TOOLS: &[Tool] = &[
    Tool::writes::<Lenient<ScheduleTime>>(
        "promptyoself_schedule_time",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent, once at an instant.",
        GIVES,
    )
    .each_time(),
    Tool::writes::<Lenient<ScheduleCron>>(
        "promptyoself_schedule_cron",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent by a cron expression.",
        GIVES,
    )
    .each_time(),
    Tool::writes::<Lenient<ScheduleEvery>>(
        "promptyoself_schedule_every",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent at an interval.",
        GIVES,
    )
    .each_time(),
    Tool::reads::<Lenient<List>>(
        "promptyoself_list",
        Toolset::Promptyoself,
        "promptyoself list",
        "List scheduled prompts, the next one first.",
        GIVES,
    ),
    Tool::writes::<Lenient<Cancel>>(
        "promptyoself_cancel",
        Toolset::Promptyoself,
        "promptyoself cancel",
        "Cancel a scheduled prompt by its number.",
        GIVES,
    )
    .destroys(),
    Tool::reads::<Lenient<Execute>>(
        "promptyoself_execute",
        Toolset::Promptyoself,
        "promptyoself execute",
        "Tell what is being delivered. Prompts are delivered when they are due, without this.",
        GIVES,
    ),
    Tool::reads::<Lenient<AgentsListed>>(
        "promptyoself_agents",
        Toolset::Promptyoself,
        "agent list",
        "List the agents for whom prompts can be scheduled. Humans register them.",
        GIVES,
    ),
    Tool::reads::<Lenient<DefaultAgent>>(
        "promptyoself_get_scoped_default_agent",
        Toolset::Promptyoself,
        "agent list",
        "Tell which agent is meant when a call names none.",
        GIVES,
    ),
    Tool::reads::<Lenient<Diagnostics>>(
        "promptyoself_inference_diagnostics",
        Toolset::Promptyoself,
        "agent list",
        "Tell how it is found out which agent is meant when a call names none.",
        GIVES,
    ),
    Tool::reads::<Lenient<ExecutorStatus>>(
        "promptyoself_executor_status",
        Toolset::Promptyoself,
        "status",
        "Tell whether somebody delivers prompts.",
        GIVES,
    ),
    Tool::reads::<Lenient<Health>>(
        "health",
        Toolset::Promptyoself,
        "status",
        "Tell whether the server is well, and where prompts go.",
        GIVES,
    ),
];

/// Arguments with whatever hosts add to them, and with another name for the agent.
struct Lenient<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Lenient<T>, D::Error> {
        let mut fields = Map::deserialize(source)?;
        for (ignored, _) in IGNORED {
            fields.remove(ignored);
        }
        if let Some(agent) = fields.remove("agentId") {
            fields.entry("agent_id").or_insert(agent);
        }
        T::deserialize(Value::Object(fields)).map(Lenient).map_err(D::Error::custom)
    }
}

impl<T: JsonSchema> JsonSchema for Lenient<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let fields = schema.ensure_object().entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(fields) = fields {
            let what = "Taken, and not looked at.";
            fields.extend(
                IGNORED.map(|(name, kind)| {
                    (name.to_owned(), json!({"type": kind, "description": what}))
                }),
            );
            if fields.contains_key("agent_id") {
                let what = "Another name for `agent_id`.";
                fields.insert("agentId".to_owned(), json!({"type": "string", "description": what}));
            }
        }
        schema
    }
}

impl<T: Input> Input for Lenient<T> {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        self.0.ask(through).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleTime {
    /// What the agent is told.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// An instant in ISO 8601; without an offset it is in UTC.
    #[schemars(with = "String")]
    time: Option<String>,
    /// The id of a Letta agent, or the name of any agent. Default: the agent that asks.
    agent_id: Option<String>,
    /// Taken, and not looked at: an agent that is not registered is not found.
    #[serde(rename = "skip_validation")]
    _skip_validation: Option<bool>,
    /// With the same key, the same prompt is scheduled once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleTime {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ScheduleTime { prompt, time, agent_id, idempotency_key, .. } = self;
        let asked = Asked { agent_id, prompt, time, ..Asked::default() };
        scheduled(through, idempotency_key, asked).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleCron {
    /// What the agent is told.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// A cron expression of five fields, in UTC.
    #[schemars(with = "String")]
    cron: Option<String>,
    /// How often at the most. Default: no limit.
    #[schemars(with = "Option<u64>")]
    max_repetitions: Option<Value>,
    /// The id of a Letta agent, or the name of any agent. Default: the agent that asks.
    agent_id: Option<String>,
    /// Taken, and not looked at: an agent that is not registered is not found.
    #[serde(rename = "skip_validation")]
    _skip_validation: Option<bool>,
    /// With the same key, the same prompt is scheduled once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleCron {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ScheduleCron { prompt, cron, agent_id, idempotency_key, .. } = self;
        let max_repetitions = self.max_repetitions.as_ref().map(text);
        let asked = Asked { agent_id, prompt, cron, max_repetitions, ..Asked::default() };
        scheduled(through, idempotency_key, asked).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleEvery {
    /// What the agent is told.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// An interval: `30s`, `5m`, `1h` or a number of seconds.
    #[schemars(with = "String")]
    every: Option<Value>,
    /// When the first one is due, in ISO 8601. Default: one interval from now.
    start_at: Option<String>,
    /// How often at the most. Default: no limit.
    #[schemars(with = "Option<u64>")]
    max_repetitions: Option<Value>,
    /// The id of a Letta agent, or the name of any agent. Default: the agent that asks.
    agent_id: Option<String>,
    /// Taken, and not looked at: an agent that is not registered is not found.
    #[serde(rename = "skip_validation")]
    _skip_validation: Option<bool>,
    /// With the same key, the same prompt is scheduled once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleEvery {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ScheduleEvery { prompt, start_at, agent_id, idempotency_key, .. } = self;
        let every = self.every.as_ref().map(text);
        let max_repetitions = self.max_repetitions.as_ref().map(text);
        let asked =
            Asked { agent_id, prompt, every, start_at, max_repetitions, ..Asked::default() };
        scheduled(through, idempotency_key, asked).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only those of one agent.
    agent_id: Option<String>,
    /// Also those that are cancelled or over. Default: false.
    include_cancelled: Option<bool>,
}

impl Input for List {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let of = Of { agent_id: self.agent_id.as_deref(), ..of(through) };
        let all = self.include_cancelled.unwrap_or(false);
        let mut listed = words::list(through, of, all).await?;
        let is_cut = LIST_ITEMS_MAX < listed.schedules.len();
        listed.schedules.truncate(LIST_ITEMS_MAX);
        let answer = shown(&listed)?;
        Ok(if is_cut { with(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// Its number, as promptyoself_list shows it.
    #[serde(alias = "id")]
    #[schemars(with = "u64")]
    schedule_id: Option<Value>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for Cancel {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let id = words::number_given(&self.schedule_id.as_ref().map(text).unwrap_or_default())?;
        let (key, of) = (self.idempotency_key, of(through));
        shown(&words::cancel(through, key, of, id).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Execute {
    /// Taken, and not looked at: the watch goes on by itself.
    #[serde(rename = "loop")]
    _on_and_on: Option<bool>,
    /// Seconds; looked at, and of no effect.
    #[schemars(with = "Option<u64>")]
    interval: Option<Value>,
}

impl Input for Execute {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let interval = self.interval.as_ref().map(text).unwrap_or("0".to_owned());
        let unfit = |_| refused("Interval must be a number (seconds)");
        interval.trim().parse::<u64>().map_err(unfit)?;
        let status = through.read(StatusAsk {}).await?;
        if !status.watch.kept {
            let what = "no daemon keeps the watch, so nothing is delivered";
            return Err(Error::new(Code::NotNow, what).hint("`midwatch up` starts one"));
        }
        if status.authority.frozen.is_some() {
            let what = "the watch is frozen, so nothing is delivered";
            return Err(Error::new(Code::NotNow, what).hint("`midwatch thaw` lets things go on"));
        }
        let agents = Agents::registered(through).await?;
        let of = of(through);
        let mut found = schedules(through).await?;
        found.retain(|it| words::view::item(it, &agents).is_some_and(|item| of.is(&item)));
        let runs = found.into_iter().flat_map(|schedule| schedule.live);
        let runs: Vec<String> = runs.take(LIST_ITEMS_MAX).collect();
        Ok(json!({
            "status": "success",
            "executed": [],
            "message": "0 prompts executed",
            "runs": runs,
            "note": NOTE,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentsListed {}

impl Input for AgentsListed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let mut agents = Agents::registered(through).await?.listed();
        agents.retain(|agent| of(through).own.is_none_or(|own| own == agent.id));
        let count = agents.len();
        let agents: Vec<_> = agents.into_iter().take(LIST_ITEMS_MAX).collect();
        let answer = json!({"status": "success", "agents": agents, "count": count});
        Ok(if LIST_ITEMS_MAX < count { with(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DefaultAgent {}

impl Input for DefaultAgent {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let agents = Agents::registered(through).await?;
        let (agent_id, source) = inferred(through, &agents).unzip();
        Ok(json!({"status": "ok", "scope": source, "agent_id": agent_id}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diagnostics {}

impl Input for Diagnostics {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let agents = Agents::registered(through).await?;
        let (agent_id, source) = inferred(through, &agents).unzip();
        let keys: Vec<&String> = through.meta.keys().take(LIST_ITEMS_MAX).collect();
        Ok(json!({
            "status": "ok",
            "ctx_metadata_keys": keys,
            "default_agent_id": through.selection.agent().default,
            "agents_count": agents.listed().len(),
            "inferred_agent_id": agent_id,
            "inference_debug": {"source": source},
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorStatus {}

impl Input for ExecutorStatus {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let status = through.read(StatusAsk {}).await?;
        let running = status.watch.kept && status.authority.frozen.is_none();
        // Nobody looks at intervals: each prompt is delivered at its time.
        Ok(json!({"status": "ok", "running": running, "interval": null}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Health {}

impl Input for Health {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let health = through.read(HealthAsk {}).await?;
        let agents = Agents::registered(through).await?;
        let first = agents.of_letta().next();
        Ok(json!({
            "status": if health.is_well() { "healthy" } else { "unhealthy" },
            "letta_base_url": first.and_then(|agent| agent.url.as_deref()),
            "db": health.watch.data,
            "auth_set": agents.of_letta().any(|agent| agent.credential.is_some()),
            "executor_autostart": health.watch.kept,
            "executor_interval": null,
        }))
    }
}

/// A number as a number, or in quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn of<'a>(through: &'a Through<'_>) -> Of<'a> {
    Of { own: through.selection.agent().only.as_deref(), agent_id: None }
}

async fn scheduled(
    through: &Through<'_>,
    key: Option<String>,
    asked: Asked,
) -> Result<Value, Error> {
    let agents = Agents::registered(through).await?;
    let named = asked.agent_id.clone().filter(|id| !id.trim().is_empty());
    let agent_id = named.or_else(|| inferred(through, &agents).map(|(id, _)| id));
    let unknown = || {
        refused("agent_id is required and could not be inferred")
            .hint("give `agent_id`; promptyoself_agents shows them")
    };
    let agent_id = Some(agent_id.ok_or_else(unknown)?);
    let said = Asked { agent_id, ..asked }.said()?;
    let id = said.agent_id.as_str();
    of(through).check(id)?;
    let absent = || {
        refused(format!("Agent validation failed: Agent {id} not found"))
            .hint("promptyoself_agents shows those that are registered; a human registers others")
    };
    let agent = agents.find(id).ok_or_else(absent)?;
    let wanted = said.wanted(now_us())?;
    let registered = match key {
        Some(key) => words::add_once(through, &key, &said, &wanted, &agent.name).await?,
        None => words::add(through, &said, &wanted, &agent.name).await?,
    };
    shown(&registered)
}

/// The agent that is meant when a call names none, and who says so.
fn inferred(through: &Through<'_>, agents: &Agents) -> Option<(String, &'static str)> {
    let given = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let meta = through.meta;
    let of_meta = META_KEYS.iter().find_map(|key| given(meta.get(*key)));
    let of_meta = of_meta.or_else(|| given(meta.get("agent").and_then(|agent| agent.get("id"))));
    let of_start = || through.selection.agent().default.clone().map(|id| (id, "env"));
    let only = || agents.only().map(|id| (id, "single-agent-fallback"));
    of_meta.map(|id| (id, "context.metadata")).or_else(of_start).or_else(only)
}

/// A time is compared to now, and an interval begins now, before either is asked for.
#[expect(
    clippy::disallowed_methods,
    reason = "what is relative to now becomes an instant here, as it does where a command is given"
)]
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
