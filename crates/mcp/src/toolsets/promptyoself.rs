//! promptyoself's tools: scheduled prompts for agents, known by numbers.
//!
//! An MCP client cannot register agents, so prompts are scheduled only for registered ones. It cannot upload tools either:
//! that uses the key of the user who started the server, and only an operator may. A default agent is kept for the client
//! of a server over stdio; over HTTP many clients share a server, and each names its agent.

use std::time::{SystemTime, UNIX_EPOCH};

use api::{Code, Error, HealthShow, StatusShow, nearest};
use compat::list_schedules;
use compat::promptyoself::agents::Agents;
use compat::promptyoself::register::{RegisterArgs, invalid_input};
use compat::promptyoself::{self, CONNECTED, PromptFilter, UPLOAD_REFUSED};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::LIST_ITEMS_MAX;
use crate::schema::FieldType::{self, Text};
use crate::tool::{Tool, ToolContext, ToolInput, to_json, with_field};
use crate::tools::Toolset;

/// Every answer has `status`; the other fields differ.
const OUTPUT_FIELDS: &[(&str, FieldType)] = &[("status", Text)];
/// Arguments that some hosts add to every call, with their types.
const HOST_ARGUMENTS: [(&str, &str); 4] = [
    ("heartbeat", "boolean"),
    ("mcp_server_id", "string"),
    ("mcp_server_name", "string"),
    ("request_heartbeat", "boolean"),
];
/// There is no polling: each prompt is delivered when it is due.
const POLL_INTERVAL_SECONDS: u64 = 0;
/// Keys of the request's metadata that may name the calling agent.
const AGENT_META_KEYS: [&str; 4] = ["agent_id", "agentId", "letta_agent_id", "caller_agent_id"];
const EXECUTE_NOTE: &str = "The daemon delivers each prompt when it is due; this call is not needed. \
                            promptyoself_list shows the scheduled prompts, and `runs` lists the deliveries in \
                            progress.";

pub(crate) const TOOLS: &[Tool] = &[
    Tool::new::<Lenient<ScheduleTime>>(
        "promptyoself_schedule_time",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent once, at a given time.",
        OUTPUT_FIELDS,
    )
    .not_idempotent(),
    Tool::new::<Lenient<ScheduleCron>>(
        "promptyoself_schedule_cron",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent with a cron expression.",
        OUTPUT_FIELDS,
    )
    .not_idempotent(),
    Tool::new::<Lenient<ScheduleEvery>>(
        "promptyoself_schedule_every",
        Toolset::Promptyoself,
        "promptyoself register",
        "Schedule a prompt for an agent at a fixed interval.",
        OUTPUT_FIELDS,
    )
    .not_idempotent(),
    Tool::new::<Lenient<List>>(
        "promptyoself_list",
        Toolset::Promptyoself,
        "promptyoself list",
        "List scheduled prompts, next due first.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<Cancel>>(
        "promptyoself_cancel",
        Toolset::Promptyoself,
        "promptyoself cancel",
        "Cancel a scheduled prompt by its number.",
        OUTPUT_FIELDS,
    )
    .destroys(),
    Tool::new::<Lenient<Execute>>(
        "promptyoself_execute",
        Toolset::Promptyoself,
        "promptyoself execute",
        "List the prompts that are being delivered now. Delivery needs no call: prompts are delivered when they are due.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<Test>>(
        "promptyoself_test",
        Toolset::Promptyoself,
        "promptyoself test",
        "Test the connection to the Letta server.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<Upload>>(
        "promptyoself_upload",
        Toolset::Promptyoself,
        "promptyoself upload",
        "Upload a tool to the Letta server. Only an operator may do that, on the command line.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<SetDefaultAgent>>(
        "promptyoself_set_default_agent",
        Toolset::Promptyoself,
        "agent list",
        "Choose the agent that is used when a call has no `agent_id`, until the server ends.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<SetDefaultAgent>>(
        "promptyoself_set_scoped_default_agent",
        Toolset::Promptyoself,
        "agent list",
        "Choose the agent that is used when a call of this client has no `agent_id`.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<AgentsListed>>(
        "promptyoself_agents",
        Toolset::Promptyoself,
        "agent list",
        "List the agents for which prompts can be scheduled. Humans register agents.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<DefaultAgent>>(
        "promptyoself_get_scoped_default_agent",
        Toolset::Promptyoself,
        "agent list",
        "Show which agent is used when a call has no `agent_id`.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<Diagnostics>>(
        "promptyoself_inference_diagnostics",
        Toolset::Promptyoself,
        "agent list",
        "Show how the agent is chosen when a call has no `agent_id`.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<ExecutorStatus>>(
        "promptyoself_executor_status",
        Toolset::Promptyoself,
        "status",
        "Check whether a daemon is delivering prompts.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Lenient<Health>>(
        "health",
        Toolset::Promptyoself,
        "status",
        "Check whether the server is healthy, and show the Letta server that prompts go to.",
        OUTPUT_FIELDS,
    ),
];

/// Arguments that may contain what hosts add, and `agentId` for `agent_id`.
struct Lenient<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Lenient<T>, D::Error> {
        let mut fields = Map::deserialize(source)?;
        for (name, _) in HOST_ARGUMENTS {
            fields.remove(name);
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
            let ignored = "Ignored; accepted for compatibility.";
            fields.extend(HOST_ARGUMENTS.map(|(name, kind)| {
                (name.to_owned(), json!({"type": kind, "description": ignored}))
            }));
            if fields.contains_key("agent_id") {
                let alias = "Another name for `agent_id`.";
                fields
                    .insert("agentId".to_owned(), json!({"type": "string", "description": alias}));
            }
        }
        schema
    }
}

impl<T: ToolInput> ToolInput for Lenient<T> {
    const CHANGES: bool = T::CHANGES;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        self.0.execute(context).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleTime {
    /// The prompt to send to the agent.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// When to send it, in ISO 8601; without an offset it is in UTC.
    #[schemars(with = "String")]
    time: Option<String>,
    /// The id of a Letta agent, or the name of another agent. Default: the calling agent.
    agent_id: Option<String>,
    /// Do not check whether the Letta server has the agent, which must be registered all the same. Default: false.
    skip_validation: Option<bool>,
}

impl ToolInput for ScheduleTime {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let ScheduleTime { prompt, time, agent_id, skip_validation } = self;
        let args = RegisterArgs { agent_id, prompt, time, ..RegisterArgs::default() };
        schedule_prompt(context, args, validation(skip_validation)).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleCron {
    /// The prompt to send to the agent.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// A cron expression with five fields, in UTC; a sixth field is the seconds.
    #[schemars(with = "String")]
    cron: Option<String>,
    /// Maximum number of times the prompt is sent. Default: no limit.
    #[schemars(with = "Option<u64>", range(min = 1))]
    max_repetitions: Option<Value>,
    /// The id of a Letta agent, or the name of another agent. Default: the calling agent.
    agent_id: Option<String>,
    /// Do not check whether the Letta server has the agent, which must be registered all the same. Default: false.
    skip_validation: Option<bool>,
}

impl ToolInput for ScheduleCron {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let ScheduleCron { prompt, cron, agent_id, .. } = self;
        let max_repetitions = self.max_repetitions.as_ref().map(text);
        let args =
            RegisterArgs { agent_id, prompt, cron, max_repetitions, ..RegisterArgs::default() };
        schedule_prompt(context, args, validation(self.skip_validation)).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleEvery {
    /// The prompt to send to the agent.
    #[schemars(with = "String")]
    prompt: Option<String>,
    /// An interval: `30s`, `5m`, `1h` or a number of seconds.
    #[schemars(with = "String")]
    every: Option<Value>,
    /// When to send it first, in ISO 8601. Default: one interval from now.
    start_at: Option<String>,
    /// Maximum number of times the prompt is sent. Default: no limit.
    #[schemars(with = "Option<u64>", range(min = 1))]
    max_repetitions: Option<Value>,
    /// The id of a Letta agent, or the name of another agent. Default: the calling agent.
    agent_id: Option<String>,
    /// Do not check whether the Letta server has the agent, which must be registered all the same. Default: false.
    skip_validation: Option<bool>,
}

impl ToolInput for ScheduleEvery {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let ScheduleEvery { prompt, start_at, agent_id, .. } = self;
        let every = self.every.as_ref().map(text);
        let max_repetitions = self.max_repetitions.as_ref().map(text);
        let args = RegisterArgs {
            agent_id,
            prompt,
            every,
            start_at,
            max_repetitions,
            ..RegisterArgs::default()
        };
        schedule_prompt(context, args, validation(self.skip_validation)).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only prompts for this agent.
    agent_id: Option<String>,
    /// Also list cancelled and ended prompts. Default: false.
    include_cancelled: Option<bool>,
}

impl ToolInput for List {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let filter = PromptFilter { agent_id: self.agent_id.as_deref(), ..prompt_filter(context) };
        let all = self.include_cancelled.unwrap_or(false);
        let mut listed = promptyoself::list_prompts(context, filter, all).await?;
        let is_truncated = LIST_ITEMS_MAX < listed.schedules.len();
        listed.schedules.truncate(LIST_ITEMS_MAX);
        let answer = to_json(&listed)?;
        Ok(if is_truncated { with_field(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// The number of the prompt, from promptyoself_list.
    #[serde(alias = "id")]
    #[schemars(with = "u64")]
    schedule_id: Option<Value>,
}

impl ToolInput for Cancel {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let id =
            promptyoself::parse_number(&self.schedule_id.as_ref().map(text).unwrap_or_default())?;
        let (key, filter) = (context.key.clone(), prompt_filter(context));
        to_json(&promptyoself::cancel_prompt(context, key, filter, id).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Execute {
    /// Ignored; accepted for compatibility. The daemon delivers prompts continuously.
    #[serde(rename = "loop")]
    _loop: Option<bool>,
    /// Seconds. It must be a number, but has no effect.
    #[schemars(with = "Option<u64>")]
    interval: Option<Value>,
}

impl ToolInput for Execute {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let interval = self.interval.as_ref().map(text).unwrap_or("0".to_owned());
        let not_a_number = |_| invalid_input("Interval must be a number (seconds)");
        interval.trim().parse::<u64>().map_err(not_a_number)?;
        let status = context.read(StatusShow {}).await?;
        if !status.daemon.running {
            let what = "no daemon is running, so no prompt is delivered";
            return Err(Error::new(Code::NotNow, what).hint("ask a human to start one"));
        }
        if status.authority.frozen.is_some() {
            let what = "the installation is frozen, so no prompt is delivered";
            return Err(Error::new(Code::NotNow, what).hint("a human must thaw it"));
        }
        let agents = Agents::load(context).await?;
        let filter = prompt_filter(context);
        let mut found = list_schedules(context).await?;
        found.retain(|it| {
            promptyoself::view::prompt_item(it, &agents).is_some_and(|item| filter.matches(&item))
        });
        let runs = found.into_iter().flat_map(|schedule| schedule.live);
        let runs: Vec<String> = runs.take(LIST_ITEMS_MAX).collect();
        Ok(json!({
            "status": "success",
            "executed": [],
            "message": "0 prompts executed",
            "runs": runs,
            "note": EXECUTE_NOTE,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Test {}

impl ToolInput for Test {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let Some(letta) = &context.selection.agent().letta else {
            let what = "this server does not know a Letta server to test";
            let hint = "a human can test it on the command line";
            return Err(Error::new(Code::NotNow, what).hint(hint));
        };
        let agent_count = (letta.count_agents)().await?;
        Ok(json!({"status": "success", "message": CONNECTED, "agent_count": agent_count}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Upload {
    /// The source of the tool, in Python.
    #[serde(rename = "source_code")]
    _source_code: Option<String>,
    /// Ignored: Letta reads the name from the source.
    #[serde(rename = "name")]
    _name: Option<String>,
    /// What the tool does.
    #[serde(rename = "description")]
    _description: Option<String>,
}

impl ToolInput for Upload {
    async fn execute(self, _: &ToolContext<'_>) -> Result<Value, Error> {
        Err(Error::new(Code::RoleTooLow, UPLOAD_REFUSED))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetDefaultAgent {
    /// The id of a Letta agent, or the name of another agent.
    #[schemars(with = "String")]
    agent_id: Option<String>,
}

impl ToolInput for SetDefaultAgent {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let caller = context.selection.agent();
        if caller.letta.is_none() {
            let what = "this server has many clients and keeps no default agent for them";
            return Err(Error::new(Code::NotNow, what).hint("pass `agent_id` in each call"));
        }
        let id = promptyoself::named_agent(self.agent_id.as_deref())
            .ok_or_else(|| invalid_input("agent_id is required"))?;
        prompt_filter(context).check_may_schedule_for(id)?;
        let agents = Agents::load(context).await?;
        agents.find(id).ok_or_else(|| agent_not_found(id, &agents, Validation::Ask))?;
        caller.choose(id.to_owned());
        Ok(json!({"status": "success", "agent_id": id}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentsListed {}

impl ToolInput for AgentsListed {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let mut agents = Agents::load(context).await?.to_list();
        agents.retain(|agent| prompt_filter(context).only_agent.is_none_or(|own| own == agent.id));
        let count = agents.len();
        let agents: Vec<_> = agents.into_iter().take(LIST_ITEMS_MAX).collect();
        let answer = json!({"status": "success", "agents": agents, "count": count});
        Ok(if LIST_ITEMS_MAX < count { with_field(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DefaultAgent {}

impl ToolInput for DefaultAgent {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let agents = Agents::load(context).await?;
        let (agent_id, source) = infer_agent(context, &agents).unzip();
        Ok(json!({"status": "ok", "scope": source, "agent_id": agent_id}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diagnostics {}

impl ToolInput for Diagnostics {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let agents = Agents::load(context).await?;
        let (agent_id, source) = infer_agent(context, &agents).unzip();
        let keys: Vec<&String> = context.meta.keys().take(LIST_ITEMS_MAX).collect();
        Ok(json!({
            "status": "ok",
            "ctx_metadata_keys": keys,
            "default_agent_id": default_agent(context).map(|(id, _)| id),
            "agents_count": agents.to_list().len(),
            "inferred_agent_id": agent_id,
            "inference_debug": {"source": source},
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorStatus {}

impl ToolInput for ExecutorStatus {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let status = context.read(StatusShow {}).await?;
        let running = status.daemon.running && status.authority.frozen.is_none();
        Ok(json!({"status": "ok", "running": running, "interval": POLL_INTERVAL_SECONDS}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Health {}

impl ToolInput for Health {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let health = context.read(HealthShow {}).await?;
        let agents = Agents::load(context).await?;
        let registered = agents.letta_agents().find_map(|agent| agent.settings.url.clone());
        let letta = context.selection.agent().letta.as_ref();
        let has_key = letta.is_some_and(|letta| letta.has_key)
            || agents.letta_agents().any(|agent| agent.settings.credential.is_some());
        Ok(json!({
            "status": if health.is_well() { "healthy" } else { "unhealthy" },
            "letta_base_url": registered.or_else(|| letta.map(|letta| letta.url.clone())),
            "db": health.daemon.data,
            "auth_set": has_key,
            "executor_autostart": health.daemon.running,
            "executor_interval": POLL_INTERVAL_SECONDS,
        }))
    }
}

/// The text of a number or string: some hosts send numbers as strings.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Limits a call to the agent for which the server was started, if any.
fn prompt_filter<'a>(context: &'a ToolContext<'_>) -> PromptFilter<'a> {
    PromptFilter { only_agent: context.selection.agent().only.as_deref(), agent_id: None }
}

/// Whether the Letta server is asked about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validation {
    Ask,
    Skip,
}

fn validation(skip: Option<bool>) -> Validation {
    if skip.unwrap_or(false) { Validation::Skip } else { Validation::Ask }
}

async fn schedule_prompt(
    context: &ToolContext<'_>,
    args: RegisterArgs,
    validation: Validation,
) -> Result<Value, Error> {
    let agents = Agents::load(context).await?;
    let named = promptyoself::named_agent(args.agent_id.as_deref()).map(str::to_owned);
    let agent_id = named.or_else(|| infer_agent(context, &agents).map(|(id, _)| id));
    let not_inferred = || {
        invalid_input("agent_id is required and could not be inferred")
            .hint("pass an `agent_id` from promptyoself_agents")
    };
    let agent_id = Some(agent_id.ok_or_else(not_inferred)?);
    let args = RegisterArgs { agent_id, ..args }.check()?;
    let id = args.agent_id.as_str();
    prompt_filter(context).check_may_schedule_for(id)?;
    let agent = agents.find(id).ok_or_else(|| agent_not_found(id, &agents, validation))?;
    if let (Validation::Ask, Some(letta)) = (validation, &context.selection.agent().letta) {
        (letta.validate_agent)(agent.clone()).await?;
    }
    let new = args.to_schedule(now_us())?;
    let registered = match &context.key {
        Some(key) => promptyoself::register_once(context, key, &args, &new, &agent.name).await?,
        None => promptyoself::register_prompt(context, &args, &new, &agent.name).await?,
    };
    to_json(&registered)
}

fn agent_not_found(id: &str, agents: &Agents, validation: Validation) -> Error {
    let what = match validation {
        Validation::Ask => format!("Agent validation failed: Agent {id} not found"),
        Validation::Skip => format!("Agent {id} is not registered"),
    };
    let known = agents.to_list();
    let similar = nearest(id, known.iter().map(|agent| agent.id.as_str()));
    let list = "promptyoself_agents lists the registered agents; only a human can register others";
    invalid_input(what).hint(match similar {
        Some(similar) => format!("did you mean `{similar}`? {list}"),
        None => list.to_owned(),
    })
}

/// The agent that the client has chosen, or else that of the environment, and where it was found.
fn default_agent(context: &ToolContext<'_>) -> Option<(String, &'static str)> {
    let caller = context.selection.agent();
    let chosen = caller.chosen().map(|id| (id, "scoped-default"));
    chosen.or_else(|| caller.default.clone().map(|id| (id, "env")))
}

/// The agent to use when a call names none, and where it was found.
fn infer_agent(context: &ToolContext<'_>, agents: &Agents) -> Option<(String, &'static str)> {
    let non_empty = |value: Option<&Value>| {
        promptyoself::named_agent(value.and_then(Value::as_str)).map(str::to_owned)
    };
    let meta = context.meta;
    let from_meta = AGENT_META_KEYS.iter().find_map(|key| non_empty(meta.get(*key)));
    let from_meta =
        from_meta.or_else(|| non_empty(meta.get("agent").and_then(|agent| agent.get("id"))));
    let only = || agents.only_agent_id().map(|id| (id, "single-agent-fallback"));
    from_meta.map(|id| (id, "context.metadata")).or_else(|| default_agent(context)).or_else(only)
}

/// The current time: `register` refuses past times, and an interval starts now.
#[expect(
    clippy::disallowed_methods,
    reason = "relative times become instants here, as they do on the command line"
)]
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
