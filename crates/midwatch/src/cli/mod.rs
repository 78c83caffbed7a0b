//! The command line: one definition for parser, help, completions and manual pages.

mod agent;
mod approval;
mod authority;
mod config;
mod demo;
mod doctor;
mod event;
mod follow;
mod given;
mod ledger;
mod manual;
mod mcp;
mod policy;
mod promptyoself;
mod restoring;
mod run;
mod schedule;
mod status;
mod store;
mod tail;
mod token;
mod watching;
mod why;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Code, Error, LIST_ITEMS_MAX};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use runtime::{Clock, SystemClock};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::output::{Format, Output};
use crate::{daemon, environment, logs};

/// Over the flags that every command takes.
const COMMON: &str = "Common options";

const HELP: &str = "`midwatch help` shows the commands";

/// Keeps the watch while AI agents work alone.
///
/// So far that is a registry of agents, schedules that put them to work, standing orders that say what
/// needs a human's approval, and a log of everything that happens, which cannot be changed quietly. Every command works with and without the daemon; only
/// with it do schedules fire.
#[derive(Debug, Parser)]
#[command(name = "midwatch", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// The data directory [env: MIDWATCH_DATA] [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = COMMON)]
    data: Option<PathBuf>,

    /// The configuration file [env: MIDWATCH_CONFIG] [default: midwatch.toml in the data directory]
    #[arg(long, global = true, value_name = "FILE", help_heading = COMMON)]
    config: Option<PathBuf>,

    /// The PostgreSQL database that holds the data, instead of a file in the data directory
    /// [env: MIDWATCH_STORE_URL] [default: `store.url` of the configuration]
    #[arg(long, global = true, value_name = "URL", help_heading = COMMON)]
    store: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Keep the watch: run the daemon until it is told to stop
    Up,
    /// Try it out: a watch in a throw-away directory, with a schedule that fires every ten seconds
    Demo,
    /// Show how things stand, and whether a daemon keeps the watch
    Status(status::Status),
    /// Look for what is wrong with this installation, and say how to fix it
    Doctor,
    /// Register agents and look at them
    #[command(subcommand)]
    Agent(agent::Command),
    /// Add schedules, look at them, change, pause and fire them
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Start runs, look at them, cancel them and try them again
    #[command(subcommand)]
    Run(run::Command),
    /// See what waits for a human, and decide on it
    #[command(subcommand)]
    Approval(approval::Command),
    /// Stop everything: what is at work is cancelled, and nothing begins until `thaw`
    Freeze(authority::Reason),
    /// Let things go on after a freeze
    Thaw(authority::Reason),
    /// Renew the authority of the watch, which runs out when no human looks after it
    #[command(subcommand)]
    Lease(authority::LeaseCommand),
    /// Check the standing orders, say what they said, and what others would have said
    #[command(subcommand)]
    Policy(policy::Command),
    /// Give out tokens with which people are let in, and take them back
    #[command(subcommand)]
    Token(token::Command),
    /// Tell schedules that wait for it that something has happened
    #[command(subcommand)]
    Event(event::Command),
    /// Say what became of a slot of a schedule, and why
    Why(why::Why),
    /// Let an agent's host speak with the watch: an MCP server on standard input and output
    Mcp(mcp::Mcp),
    /// Prompts that Letta agents schedule for themselves: the promptyoself commands, all in JSON
    Promptyoself(promptyoself::Promptyoself),
    /// Read, verify, export and rebuild the log
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Copy a whole installation from one store into another
    #[command(subcommand)]
    Store(store::Command),
    /// Write, check and show the configuration, and let the daemon read it again
    #[command(subcommand)]
    Config(config::Command),
    /// Print a completion script for a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Where to put them; without it, the first page goes to stdout
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Runs the program on a command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    let wants_json = flags.into_iter().any(|argument| argument == "--json");
    let output = Output { format: if wants_json { Format::Json } else { Format::Human } };
    let of_promptyoself = promptyoself::is_meant(&arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if of_promptyoself && error.use_stderr() => {
            return promptyoself::misused(&error, &in_a_sentence(&error));
        }
        Err(error) => return misused(&error, &output),
    };
    match dispatch(cli, output) {
        Ok(code) => code,
        Err(error) if of_promptyoself => promptyoself::failed(&error),
        Err(error) => {
            output.fail(&error);
            ExitCode::from(error.code.exit_code())
        }
    }
}

fn dispatch(cli: Cli, output: Output) -> Result<ExitCode, Error> {
    match cli.command {
        Command::Completions { shell } => return Ok(manual::completions(shell, &output)),
        Command::Man { dir } => return manual::pages(dir.as_deref(), &output),
        Command::Schedule(schedule::Command::Next(next)) => {
            return schedule::next::run(next, SystemClock.now(), &output);
        }
        Command::Promptyoself(ref asked) => {
            if let Some(described) = asked.described() {
                return described;
            }
        }
        _ => {}
    }
    // Whatever is made from here on is for this user only; a manual page is for everybody.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let data = cli.data.or_else(|| environment::path("MIDWATCH_DATA"));
    let config = cli.config.or_else(|| environment::path("MIDWATCH_CONFIG"));
    let mut environment = environment::of_process();
    let is_promptyoself = matches!(cli.command, Command::Promptyoself(_));
    if is_promptyoself {
        environment = promptyoself::variables(environment);
    }
    let data = data.or_else(|| promptyoself::data(&environment).filter(|_| is_promptyoself));
    environment.extend(cli.store.map(|url| ("MIDWATCH_STORE_URL".to_owned(), url)));
    let context = Context::new(data, config, environment, output)?;
    let is_daemon = match &cli.command {
        Command::Promptyoself(asked) => asked.is_daemon(),
        command => matches!(command, Command::Up | Command::Demo),
    };
    let _logs = (!is_daemon).then(|| logs::init_quiet(&context.environment));
    let mut runtime = match is_daemon {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let runtime = runtime.worker_threads(workers()).enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(Code::Failed, error))?;
    runtime.block_on(async {
        match cli.command {
            Command::Up => {
                let (ready, _) = oneshot::channel();
                daemon::up(&context, ready).await.map(|()| ExitCode::SUCCESS)
            }
            Command::Demo => demo::run(output).await,
            Command::Status(status) => status::run(&context, status).await,
            Command::Doctor => doctor::run(&context).await,
            Command::Agent(command) => agent::run(&context, command).await,
            Command::Schedule(command) => schedule::run(&context, command).await,
            Command::Run(command) => run::run(&context, command).await,
            Command::Approval(command) => approval::run(&context, command).await,
            Command::Freeze(reason) => authority::freeze(&context, reason).await,
            Command::Thaw(reason) => authority::thaw(&context, reason).await,
            Command::Lease(command) => authority::lease(&context, command).await,
            Command::Policy(command) => policy::run(&context, command).await,
            Command::Token(command) => token::run(&context, command).await,
            Command::Event(command) => event::run(&context, command).await,
            Command::Why(why) => why::run(&context, why).await,
            Command::Mcp(asked) => mcp::run(&context, asked).await,
            Command::Promptyoself(asked) => promptyoself::run(&context, asked).await,
            Command::Ledger(command) => ledger::run(&context, command).await,
            Command::Store(command) => store::run(&context, command).await,
            Command::Config(command) => config::run(&context, command).await,
            Command::Completions { .. } | Command::Man { .. } => Ok(ExitCode::SUCCESS),
        }
    })
}

/// The store's writer has a core for itself where there are several.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

/// Help and version are answers; everything else is bad usage.
fn misused(error: &clap::Error, output: &Output) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let usage = Code::BadUsage.exit_code();
    let failure = match (error.kind(), output.format) {
        (DisplayHelp | DisplayVersion, _) => return print(error, 0),
        (DisplayHelpOnMissingArgumentOrSubcommand, Format::Human) => return print(error, usage),
        (DisplayHelpOnMissingArgumentOrSubcommand, Format::Json) => {
            Error::new(Code::BadUsage, "a command is missing").hint(HELP)
        }
        _ => in_a_sentence(error),
    };
    output.fail(&failure);
    ExitCode::from(usage)
}

fn print(error: &clap::Error, code: u8) -> ExitCode {
    // Nothing can be done when nobody reads it.
    let _ = error.print();
    ExitCode::from(code)
}

/// The parser speaks in paragraphs: first what is wrong, then a tip, then how it is used.
fn in_a_sentence(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<String> = text.split("\n\n").map(joined).collect();
    let after = |word: &str| paragraphs.iter().find_map(|it| it.strip_prefix(word));
    let hint = match (after("tip: "), after("Usage: ")) {
        (Some(tip), _) => tip.to_owned(),
        (None, _) if error.kind() == ErrorKind::InvalidSubcommand => HELP.to_owned(),
        (None, Some(usage)) => format!("it is used as `{usage}`"),
        (None, None) => "the same with `--help` shows how it is used".to_owned(),
    };
    Error::new(Code::BadUsage, after("error: ").unwrap_or(&text)).hint(hint)
}

/// How many items of a list to show; the watch knows how many are too many.
fn list_limit(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("give a whole number from 1 to {LIST_ITEMS_MAX}"))
}

/// A file or a folder that was named and cannot be read.
fn unreadable(what: &str, path: &Path, error: io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(Code::NotFound, format!("there is no {what} `{path}`"))
                .hint("check the path")
        }
        _ => Error::new(Code::Failed, format!("the {what} `{path}` cannot be read: {error}"))
            .hint("check what it is, and who may read it"),
    }
}

/// The definition of all commands, for whatever is generated from it.
pub fn definition() -> clap::Command {
    Cli::command()
}
