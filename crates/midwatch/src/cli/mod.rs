//! The command line: one definition for parser, help, completions and manual pages.

mod agent;
mod config;
mod doctor;
mod ledger;
mod manual;
mod restoring;
mod status;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{Code, Error};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use tokio::runtime::Builder;

use crate::context::Context;
use crate::output::{Format, Output};
use crate::{daemon, environment, logs};

/// Keeps the watch while AI agents work alone.
///
/// So far that is a registry of agents, and a log of everything that happens, which cannot be changed
/// quietly. Every command works with and without the daemon.
#[derive(Debug, Parser)]
#[command(name = "midwatch", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// The data directory [env: MIDWATCH_DATA] [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The configuration file [env: MIDWATCH_CONFIG] [default: midwatch.toml in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Keep the watch: run the daemon until it is told to stop
    Up,
    /// Show how things stand, and whether a daemon keeps the watch
    Status,
    /// Look for what is wrong with this installation, and say how to fix it
    Doctor,
    /// Register agents and look at them
    #[command(subcommand)]
    Agent(agent::Command),
    /// Read, verify, export and rebuild the log
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Write, check and show the configuration
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
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return misused(&error, &output),
    };
    match dispatch(cli, output) {
        Ok(code) => code,
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
        _ => {}
    }
    // Whatever is made from here on is for this user only; a manual page is for everybody.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let data = cli.data.or_else(|| environment::path("MIDWATCH_DATA"));
    let config = cli.config.or_else(|| environment::path("MIDWATCH_CONFIG"));
    let context = Context::new(data, config, environment::of_process(), output)?;
    let is_daemon = matches!(cli.command, Command::Up);
    let _logs = (!is_daemon).then(|| logs::init_quiet(&context.environment));
    let mut runtime = match is_daemon {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let runtime = runtime.worker_threads(workers()).enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(Code::Failed, error))?;
    runtime.block_on(async {
        match cli.command {
            Command::Up => daemon::up(&context).await.map(|()| ExitCode::SUCCESS),
            Command::Status => status::run(&context).await,
            Command::Doctor => doctor::run(&context).await,
            Command::Agent(command) => agent::run(&context, command).await,
            Command::Ledger(command) => ledger::run(&context, command).await,
            Command::Config(command) => config::run(&context, command),
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
    let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_answer || output.format == Format::Human {
        // Nothing can be done when nobody reads it.
        let _ = error.print();
        return ExitCode::from(if is_answer { 0 } else { Code::BadUsage.exit_code() });
    }
    let (what, hint) = in_a_sentence(&error.render().to_string());
    output.fail(&Error::new(Code::BadUsage, what).hint(hint));
    ExitCode::from(Code::BadUsage.exit_code())
}

/// What the parser says in paragraphs: first what is wrong, then tips, then how it is used.
fn in_a_sentence(text: &str) -> (String, String) {
    let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.split("\n\n").map(joined);
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: ").map(str::to_owned));
    (what, tip.unwrap_or_else(|| "`midwatch help` shows the commands".to_owned()))
}

/// The definition of all commands, for whatever is generated from it.
pub fn definition() -> clap::Command {
    Cli::command()
}
