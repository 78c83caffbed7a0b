//! `midwatch promptyoself register`

use api::{Agent, Error};
use clap::Args;
use clap::builder::BoolishValueParser;
use compat::promptyoself::register::{RegisterArgs, invalid_input};
use compat::promptyoself::{PromptFilter, RegisterResult, register_prompt};
use runtime::{Clock, SystemClock};

use super::letta_server::LettaServer;
use super::settings::{Letta, is_same_server, only_agent};
use super::{handle, missing_argument, registered_agents};
use crate::context::Context;

/// Schedule a prompt for an agent
#[derive(Debug, Args)]
pub(super) struct Register {
    /// The id of a Letta agent, or the name of any registered agent
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    agent_id: Option<String>,
    /// The prompt to send
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Send it once, at an ISO 8601 instant; in UTC if it has no offset
    #[arg(long, value_name = "ISO", allow_hyphen_values = true)]
    time: Option<String>,
    /// Send it by a cron expression of five fields, in UTC; a sixth field is the seconds
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,
    /// Send it at an interval: 30s, 5m, 1h or a number of seconds
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<String>,
    /// With --every: the instant of the first prompt
    #[arg(long, value_name = "ISO", allow_hyphen_values = true)]
    start_at: Option<String>,
    /// The most prompts to send
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_repetitions: Option<String>,
    /// Do not check whether the Letta server has this agent
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    skip_validation: bool,
}

pub(super) async fn run(context: &Context, register: Register) -> Result<RegisterResult, Error> {
    let skip_validation = register.skip_validation;
    if register.agent_id.is_none() || register.prompt.is_none() {
        return Err(missing_argument("Missing required arguments: agent-id and prompt"));
    }
    let args = RegisterArgs {
        agent_id: register.agent_id,
        prompt: register.prompt,
        time: register.time,
        cron: register.cron,
        every: register.every,
        start_at: register.start_at,
        max_repetitions: register.max_repetitions,
    };
    let args = args.check()?;
    let id = args.agent_id.as_str();
    let only_agent = only_agent(&context.environment)?;
    PromptFilter { only_agent, ..PromptFilter::default() }.check_may_schedule_for(id)?;
    let letta = Letta::from_environment(&context.environment);
    let registered = registered_agents::load(context).await?.find(id).cloned();
    match (&registered, skip_validation) {
        (Some(agent), false) => validate_registered(context, agent).await?,
        (None, false) => validate(context, &letta, id).await?,
        (_, true) => {}
    }
    let schedule = args.to_schedule(SystemClock.now().as_micros())?;
    let warning = registered.as_ref().and_then(|agent| other_server_warning(context, agent));
    let agent = match registered {
        Some(agent) => agent.name,
        None => registered_agents::register(context, id, &letta).await?,
    };
    let mut result = register_prompt(&handle(context), &args, &schedule, &agent).await?;
    result.message.extend(warning);
    Ok(result)
}

/// A warning if the agent is registered at another server than LETTA_BASE_URL: prompts go to the former.
fn other_server_warning(context: &Context, agent: &Agent) -> Option<String> {
    let (url, named) = (agent.settings.url.as_deref()?, Letta::base_url(&context.environment)?);
    let is_same = agent.backend != "letta" || is_same_server(url, named);
    let name = &agent.name;
    (!is_same).then(|| {
        format!(
            ". It is sent to {url}, where agent `{name}` is registered, not to LETTA_BASE_URL: \
             `midwatch agent edit {name} --url URL` changes that"
        )
    })
}

/// Checks that the Letta server of the environment has this agent. An agent that is registered at another server cannot be
/// checked at this one.
pub(in crate::cli) async fn validate_registered(
    context: &Context,
    agent: &Agent,
) -> Result<(), Error> {
    let (settings, letta) = (&agent.settings, Letta::from_environment(&context.environment));
    let is_same = settings.url.as_deref().is_some_and(|url| is_same_server(url, &letta.url));
    match &settings.remote_id {
        Some(id) if settings.api.as_deref() == Some("rest") && is_same => {
            validate(context, &letta, id).await
        }
        Some(_) | None => Ok(()),
    }
}

async fn validate(context: &Context, letta: &Letta, id: &str) -> Result<(), Error> {
    let failed = |what: &str| invalid_input(format!("Agent validation failed: {what}"));
    let server = LettaServer::new(letta, &context.environment);
    let agents = server.agents().await.map_err(|error| {
        failed(&error.message).hint("skip the Letta server with `--skip-validation`")
    })?;
    match agents.iter().any(|agent| agent.id == id) {
        true => Ok(()),
        false => Err(failed(&format!("Agent {id} not found"))),
    }
}
