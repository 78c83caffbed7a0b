//! `midwatch promptyoself …`: the commands of promptyoself, word for word, on the schedules of this watch.
//!
//! Whatever happens, stdout gets one JSON document. An error has both of the forms in which clients look
//! for it, and ends the command with code 1, a wrong command line with 2.

pub(super) mod agents;
mod describe;
mod execute;
mod server;
pub(super) mod settings;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{Agent, Code, Error, Schedule, TokenList};
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use compat::promptyoself::register::{Asked, refused};
use compat::promptyoself::{self as words, Cancelled, Failure, Listed, Of, Registered};
use runtime::{Clock, SystemClock};
use serde::Serialize;
use tracing::warn;

use super::schedule::promptyoself_database;
use crate::access::{Staying, TOKEN, ask, no_watch};
use crate::context::Context;
use crate::output::{Format, Output};
use execute::Executed;
use server::{RemoteAgent, Server, Tool};
use settings::{Letta, Variables, held_to};

/// The verb, and the plugin.
const NAME: &str = "promptyoself";
const OUTPUT: Output = Output { format: Format::Json };
/// The file in the data directory that says that a database was imported.
const IMPORTED: &str = "promptyoself.imported";

const EXAMPLES: &str = "\
Examples:
  midwatch promptyoself register --agent-id agent-123 --prompt 'Look at your mail.' --every 30m
  midwatch promptyoself register --agent-id agent-123 --prompt 'Happy new year!' \\
      --time 2030-01-01T00:00:00-05:00
  midwatch promptyoself list --all
  midwatch promptyoself cancel --id 5";

#[derive(Debug, Args)]
#[command(
    subcommand_help_heading = "Available commands",
    disable_help_subcommand = true,
    after_help = EXAMPLES
)]
pub(super) struct Promptyoself {
    /// Say in JSON which commands there are, for a plugin host
    #[arg(long)]
    describe: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Schedule a prompt for an agent
    Register(Register),
    /// List scheduled prompts
    List(List),
    /// Cancel a scheduled prompt
    Cancel(Cancel),
    /// Have prompts delivered that are due
    Execute(Execute),
    /// Test the connection to the Letta server
    Test,
    /// List the agents of the Letta server
    Agents,
    /// Give the Letta server a tool
    Upload(Upload),
}

#[derive(Debug, Args)]
pub(super) struct Register {
    /// The id of a Letta agent, or the name of any registered agent
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    agent_id: Option<String>,
    /// What the agent is told
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Once, at an instant in ISO 8601; without an offset it is in UTC
    #[arg(long, value_name = "ISO", allow_hyphen_values = true)]
    time: Option<String>,
    /// By a cron expression of five fields, in UTC
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,
    /// At an interval: 30s, 5m, 1h or a number of seconds
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<String>,
    /// With --every: when the first one is due
    #[arg(long, value_name = "ISO", allow_hyphen_values = true)]
    start_at: Option<String>,
    /// How often at the most
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_repetitions: Option<String>,
    /// Do not ask the Letta server whether it has such an agent
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    skip_validation: bool,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only those of one agent
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    agent_id: Option<String>,
    /// Also those that are cancelled or over
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    all: bool,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// Its number, as `list` shows it
    #[arg(long, value_name = "N", alias = "schedule-id", allow_hyphen_values = true)]
    id: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Execute {
    /// Go on until a signal comes
    #[arg(long = "loop", value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    on_and_on: bool,
    /// With --loop: seconds between two looks at what was done
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    interval: Option<String>,
    /// With --loop: print what was done after each interval, as a line of JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    report: bool,
}

#[derive(Debug, Args)]
pub(super) struct Upload {
    /// What the tool is called; else its source says so
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// What the tool does
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Its source in Python
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    source_code: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
struct Tested {
    message: &'static str,
    agent_count: usize,
}

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
struct Known {
    agents: Vec<RemoteAgent>,
    count: usize,
}

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
struct Uploaded {
    tool_id: String,
    name: Option<String>,
}

/// Whether a command line is one of these, also if it is wrong.
pub(super) fn is_meant(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            // The common flags that are followed by a value.
            Some("--data" | "--config" | "--store") => drop(words.next()),
            Some(flag) if flag.starts_with('-') => {}
            verb => return verb == Some(NAME),
        }
    }
    false
}

/// A wrong command line: how it is used goes to stderr.
pub(super) fn misused(error: &clap::Error, said: &Error) -> ExitCode {
    use std::io::Write;
    let _ = write!(anstream::stderr(), "{}", error.render());
    show_failure(said);
    ExitCode::from(Code::BadUsage.exit_code())
}

pub(super) fn failed(error: &Error) -> ExitCode {
    show_failure(error);
    match error.code {
        Code::BadUsage => ExitCode::from(Code::BadUsage.exit_code()),
        _ => ExitCode::FAILURE,
    }
}

fn show_failure(error: &Error) {
    OUTPUT.show(&Failure::from(error), |_| String::new());
}

impl Promptyoself {
    /// Whether it may keep the watch.
    pub(super) fn is_daemon(&self) -> bool {
        matches!(self.command, Some(Command::Execute(_)))
    }

    /// The answer to `--describe`, which needs nothing and changes nothing.
    pub(super) fn described(&self) -> Option<Result<ExitCode, Error>> {
        match (&self.command, self.describe) {
            (Some(_), false) => None,
            (_, true) => {
                show(&describe::document());
                Some(Ok(ExitCode::SUCCESS))
            }
            (None, false) => Some(Err(Error::new(Code::BadUsage, "a command is missing")
                .hint("`midwatch promptyoself --help` shows the commands"))),
        }
    }
}

/// The variables of the process, and those of a `.env` file where it was started.
pub(super) fn variables(of_process: Variables) -> Variables {
    match std::fs::read_to_string(".env") {
        Ok(file) => settings::with_file(of_process, &file),
        Err(_) => of_process,
    }
}

/// The data directory, unless it was named.
pub(super) fn data(variables: &Variables) -> Option<PathBuf> {
    let named = variables.get("MIDWATCH_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| settings::database(variables).map(|database| settings::data_beside(&database)))
}

pub(super) async fn run(context: &Context, asked: Promptyoself) -> Result<ExitCode, Error> {
    import_once(context).await?;
    match asked.command {
        Some(Command::Register(asked)) => show(&register(context, asked).await?),
        Some(Command::List(asked)) => show(&list(context, asked).await?),
        Some(Command::Cancel(asked)) => show(&cancel(context, asked).await?),
        Some(Command::Execute(asked)) => show(&execute(context, asked).await?),
        Some(Command::Test) => show(&test(context).await?),
        Some(Command::Agents) => {
            let agents = remote_agents(context).await?;
            show(&Known { count: agents.len(), agents });
        }
        Some(Command::Upload(asked)) => show(&upload(context, asked).await?),
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes over what the earlier program has left in the database that stands for this directory. Once:
/// what was removed since must not come back.
async fn import_once(context: &Context) -> Result<(), Error> {
    let Some(database) = settings::database(&context.environment) else { return Ok(()) };
    let beside = settings::data_beside(&database);
    let is_meant = std::path::absolute(&beside).is_ok_and(|it| it == context.directory.path());
    let mark = context.directory.path().join(IMPORTED);
    if !is_meant || mark.exists() || !database.exists() {
        return Ok(());
    }
    let left_out = match promptyoself_database(context, &database, SystemClock.now()).await {
        Ok(left_out) => left_out,
        // What cannot be imported does not keep anybody from working; it is tried again the next time.
        Err(error) if error.code != Code::Failed => {
            warn!(%error, "the database of the earlier promptyoself is not imported");
            return Ok(());
        }
        Err(failed) => return Err(failed),
    };
    for what in left_out {
        warn!(%what, "not carried over from the earlier promptyoself");
    }
    context.directory.create()?;
    std::fs::write(&mark, database.display().to_string()).map_err(|error| {
        let what = format!("`{}` cannot be written: {error}", mark.display());
        Error::new(Code::Failed, what).hint("check who may write to the data directory")
    })
}

fn show(answer: &impl Serialize) {
    OUTPUT.show(answer, |_| String::new());
}

async fn register(context: &Context, asked: Register) -> Result<Registered, Error> {
    let skip_validation = asked.skip_validation;
    let said = Asked {
        agent_id: asked.agent_id,
        prompt: asked.prompt,
        time: asked.time,
        cron: asked.cron,
        every: asked.every,
        start_at: asked.start_at,
        max_repetitions: asked.max_repetitions,
    };
    let said = said.said()?;
    let id = said.agent_id.as_str();
    Of { own: held_to(&context.environment)?, ..Of::default() }.check(id)?;
    let letta = Letta::of(&context.environment);
    let known = agents::registered(context).await?.find(id).cloned();
    // Who is registered elsewhere is known there, and not at this server.
    let is_there = |agent: &Agent| {
        agent.api.as_deref() == Some("rest") && agent.url.as_deref() == Some(&letta.url)
    };
    if known.as_ref().is_none_or(is_there) && !skip_validation {
        validate(context, &letta, id).await?;
    }
    let wanted = said.wanted(SystemClock.now().as_micros())?;
    let elsewhere = known.as_ref().and_then(|agent| elsewhere(context, agent));
    let agent = match known {
        Some(agent) => agent.name,
        None => agents::register(context, id, &letta).await?,
    };
    let mut registered = words::add(&handle(context), &said, &wanted, &agent).await?;
    registered.message.extend(elsewhere);
    Ok(registered)
}

/// What is said if an agent is registered at another server than the one that was named: prompts go to the
/// first.
fn elsewhere(context: &Context, agent: &Agent) -> Option<String> {
    let (url, named) = (agent.url.as_deref()?, Letta::named(&context.environment)?);
    let is_same = agent.backend != "letta" || url.trim_end_matches('/') == named;
    let name = &agent.name;
    (!is_same).then(|| {
        format!(
            ". It goes to {url}, where agent `{name}` is registered, and not to LETTA_BASE_URL: \
             `midwatch agent edit {name} --url URL` changes that"
        )
    })
}

async fn validate(context: &Context, letta: &Letta, id: &str) -> Result<(), Error> {
    let failed = |what: &str| refused(format!("Agent validation failed: {what}"));
    let server = Server::new(letta, &context.environment);
    let agents = server.agents().await.map_err(|error| {
        failed(&error.message).hint("--skip-validation does without the Letta server")
    })?;
    match agents.iter().any(|agent| agent.id == id) {
        true => Ok(()),
        false => Err(failed(&format!("Agent {id} not found"))),
    }
}

async fn list(context: &Context, asked: List) -> Result<Listed, Error> {
    let of = Of { own: held_to(&context.environment)?, agent_id: asked.agent_id.as_deref() };
    match is_missing(context)? {
        true => Ok(Listed::default()),
        false => words::list(&handle(context), of, asked.all).await,
    }
}

async fn cancel(context: &Context, asked: Cancel) -> Result<Cancelled, Error> {
    let of = Of { own: held_to(&context.environment)?, ..Of::default() };
    let id = words::number_given(asked.id.as_deref().unwrap_or_default())?;
    match is_missing(context)? {
        true => Err(words::unknown(id)),
        false => words::cancel(&handle(context), None, of, id).await,
    }
}

async fn execute(context: &Context, asked: Execute) -> Result<Executed, Error> {
    let given = asked.interval.as_deref();
    let interval = execute::seconds(given.unwrap_or(settings::interval(&context.environment)))?;
    if !asked.on_and_on {
        return execute::once(context).await;
    }
    let told = |executed: Executed| {
        if asked.report {
            let _ = OUTPUT.show_line(&executed, |_| String::new());
        }
    };
    execute::on_and_on(context, interval, told).await
}

/// With the agents that whoever asks may know of.
async fn test(context: &Context) -> Result<Tested, Error> {
    let agent_count = remote_agents(context).await?.len();
    Ok(Tested { message: "Connection to Letta server successful", agent_count })
}

/// The agents of the server; of those, whoever is held to itself is shown its own.
async fn remote_agents(context: &Context) -> Result<Vec<RemoteAgent>, Error> {
    let own = held_to(&context.environment)?;
    let reached = match is_operator(context).await? {
        true => None,
        false => Some(agents::registered(context).await?),
    };
    let letta = Letta::of(&context.environment);
    let mut agents = Server::new(&letta, &context.environment).agents().await?;
    agents.retain(|agent| own.is_none_or(|own| own == agent.id));
    agents.retain(|agent| reached.as_ref().is_none_or(|known| known.find(&agent.id).is_some()));
    Ok(agents)
}

/// Whether whoever asks may do what the key of the environment lets them: agents may not, whether a token
/// says who they are or a run has started them.
async fn is_operator(context: &Context) -> Result<bool, Error> {
    match is_missing(context)? {
        // Nobody has given out a token yet.
        true if has_token(context) => Err(no_watch(&context.directory)),
        true => Ok(true),
        false => match ask(context, TokenList { limit: Some(1), cursor: None }).await {
            Ok(_) => Ok(true),
            Err(refused) if refused.code == Code::RoleTooLow => Ok(false),
            Err(refused) => Err(refused),
        },
    }
}

fn has_token(context: &Context) -> bool {
    context.environment.get(TOKEN).is_some_and(|token| !token.is_empty())
}

async fn upload(context: &Context, asked: Upload) -> Result<Uploaded, Error> {
    let source_code = asked.source_code.filter(|text| !text.is_empty());
    let missing = || refused("Missing required argument: source-code");
    let source_code = source_code.ok_or_else(missing)?;
    if held_to(&context.environment)?.is_some() || !is_operator(context).await? {
        let what = "Whoever is held to itself may not give the Letta server a tool";
        return Err(Error::new(Code::RoleTooLow, what).hint("ask an operator to upload it"));
    }
    let tool = Tool { source_code, name: asked.name, description: asked.description };
    let letta = Letta::of(&context.environment);
    let taken = Server::new(&letta, &context.environment).upload(&tool).await?;
    Ok(Uploaded { tool_id: taken.id, name: taken.name.or(tool.name) })
}

/// All schedules; none if there is no watch yet.
pub(super) async fn schedules(context: &Context) -> Result<Vec<Schedule>, Error> {
    match is_missing(context)? {
        true => Ok(Vec::new()),
        false => compat::schedules(&handle(context)).await,
    }
}

fn is_missing(context: &Context) -> Result<bool, Error> {
    context.storage()?.is_missing(&context.directory)
}

fn handle(context: &Context) -> Staying {
    Staying::new(context.clone())
}
