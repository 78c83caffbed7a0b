//! `midwatch promptyoself …`: the commands of promptyoself, compatible with it, on Midwatch's schedules.
//!
//! Stdout always gets one JSON document. An error has both of the forms that clients look for, and exits
//! with 1, or with 2 if the command line is wrong.

mod agents;
mod cancel;
mod describe;
mod execute;
mod import_once;
mod letta_server;
mod list;
pub(super) mod register;
pub(super) mod registered_agents;
pub(super) mod settings;
mod test;
mod upload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Code, Error, Schedule};
use clap::{Args, Subcommand};
use compat::promptyoself::ErrorResult;
use serde::Serialize;

use crate::access::TOKEN_VARIABLE;
use crate::context::Context;
use crate::output::{Format, Output};
use crate::reconnecting_client::ReconnectingClient;
use settings::Variables;

/// The name of the command and of the plugin.
pub(super) const NAME: &str = "promptyoself";
const OUTPUT: Output = Output { format: Format::Json, width: usize::MAX };

const EXAMPLES: &str = "\
Examples:
  midwatch promptyoself register --agent-id agent-123 \\
      --prompt 'Look at your mail.' --every 30m
  midwatch promptyoself register --agent-id agent-123 --prompt 'Happy new year!' \\
      --time 2030-01-01T00:00:00-05:00
  midwatch promptyoself list --all
  midwatch promptyoself cancel --id 5";

/// Manage prompts that Letta agents schedule for themselves: the promptyoself commands, all in JSON
#[derive(Debug, Args)]
#[command(
    subcommand_help_heading = "Available commands",
    disable_help_subcommand = true,
    infer_long_args = true,
    after_help = EXAMPLES
)]
pub(super) struct Promptyoself {
    /// Describe the commands in JSON, for a plugin host
    #[arg(long)]
    describe: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Register(register::Register),
    List(list::List),
    Cancel(cancel::Cancel),
    Execute(execute::Execute),
    /// Test the connection to the Letta server
    Test,
    /// List the agents of the Letta server
    Agents,
    Upload(upload::Upload),
}

/// Reports a wrong command line: the usage on stderr, the error on stdout.
pub(super) fn report_usage(parse_error: &clap::Error, error: &Error) -> ExitCode {
    use std::io::Write;
    let _ = write!(anstream::stderr(), "{}", parse_error.render());
    report_error(error)
}

/// The error of a command line without a required flag.
fn missing_argument(text: &str) -> Error {
    Error::new(Code::BadUsage, text).hint("see `midwatch promptyoself --help`")
}

pub(super) fn report_error(error: &Error) -> ExitCode {
    print(&ErrorResult::from(error));
    match error.code {
        Code::BadUsage => ExitCode::from(Code::BadUsage.exit_code()),
        _ => ExitCode::FAILURE,
    }
}

impl Promptyoself {
    /// Whether this command may have to run the daemon itself.
    pub(super) fn may_run_daemon(&self) -> bool {
        matches!(self.command, Some(Command::Execute(_)))
    }

    /// Runs `--describe`, which needs no data directory; `None` for any other command.
    pub(super) fn run_describe(&self) -> Option<Result<ExitCode, Error>> {
        match (&self.command, self.describe) {
            (Some(_), false) => None,
            (_, true) => {
                print(&describe::document());
                Some(Ok(ExitCode::SUCCESS))
            }
            (None, false) => Some(Err(Error::new(Code::BadUsage, "a command is missing")
                .hint("see `midwatch promptyoself --help`"))),
        }
    }
}

/// A longer `.env` file is ignored.
const ENV_FILE_BYTES_MAX: usize = 1 << 20;

/// The environment, completed by a `.env` file in the working directory.
pub(super) fn variables(of_process: Variables) -> Variables {
    match files::read_text(Path::new(".env"), ENV_FILE_BYTES_MAX) {
        Ok(file) => settings::with_env_file(of_process, &file),
        Err(_) => of_process,
    }
}

/// The data directory if `--data` does not name it.
pub(super) fn data_directory(variables: &Variables) -> Option<PathBuf> {
    let named = variables.get("MIDWATCH_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| settings::database(variables).map(|path| settings::data_beside(&path)))
}

pub(super) async fn run(context: &Context, args: Promptyoself) -> Result<ExitCode, Error> {
    import_once::run(context).await?;
    match args.command {
        Some(Command::Register(register)) => print(&register::run(context, register).await?),
        Some(Command::List(list)) => print(&list::run(context, list).await?),
        Some(Command::Cancel(cancel)) => print(&cancel::run(context, cancel).await?),
        Some(Command::Execute(execute)) => print(&execute::run(context, execute).await?),
        Some(Command::Test) => print(&test::run(context).await?),
        Some(Command::Agents) => print(&agents::run(context).await?),
        Some(Command::Upload(upload)) => print(&upload::run(context, upload).await?),
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of agents on the Letta server that the caller may see.
pub(super) async fn count_letta_agents(context: &Context) -> Result<usize, Error> {
    Ok(agents::visible_agents(context).await?.len())
}

fn print(document: &impl Serialize) {
    OUTPUT.show(document, |_| String::new());
}

/// All schedules; none if there is no data yet.
pub(super) async fn schedules(context: &Context) -> Result<Vec<Schedule>, Error> {
    match has_no_data(context)? {
        true => Ok(Vec::new()),
        false => compat::list_schedules(&handle(context)).await,
    }
}

pub(super) fn has_no_data(context: &Context) -> Result<bool, Error> {
    context.storage()?.is_missing(&context.directory)
}

fn has_token(context: &Context) -> bool {
    context.environment.get(TOKEN_VARIABLE).is_some_and(|token| !token.is_empty())
}

fn handle(context: &Context) -> ReconnectingClient {
    ReconnectingClient::new(context.clone())
}
