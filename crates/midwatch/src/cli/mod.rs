//! The command line: one definition for parser, help, completions and manual pages.
//!
//! A folder per noun (`run/`, `schedule/`), a file per verb with its flags, its help, its request and how
//! its answer is rendered. `support/` has what several commands share.

mod agent;
mod approval;
mod backup;
mod cleanup;
mod completions;
mod config;
mod demo;
mod device;
mod doctor;
mod event;
mod freeze;
mod lease;
mod ledger;
mod man;
mod mcp;
mod notice;
mod open;
mod policy;
mod promptyoself;
mod run;
mod schedule;
mod status;
mod stop;
mod store;
mod support;
mod thaw;
mod timeline;
mod token;
mod up;
mod why;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use api::{Code, Error};
use clap::{CommandFactory, Parser, Subcommand};
use runtime::{Clock, SystemClock};
use tokio::runtime::Builder;

use crate::context::Context;
use crate::output::{self, Format, Output};
use crate::view::{View, width};
use crate::{environment, local_checks, logs};
use support::command_line::{report, subcommands, usage_error};

/// The help heading of the flags that every command takes.
pub(crate) const COMMON: &str = "Common options";

/// Keeps the watch while AI agents work alone.
///
/// Midwatch runs agents on schedules, asks a human for approval where the policy requires it, and records
/// everything in a tamper-evident ledger. Every command works with and without the daemon; schedules fire
/// only while the daemon runs.
#[derive(Debug, Parser)]
#[command(name = "midwatch", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// The data directory [env: MIDWATCH_DATA] [default: the platform's data folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = COMMON)]
    data: Option<PathBuf>,

    /// The configuration file [env: MIDWATCH_CONFIG] [default: midwatch.toml in the data directory]
    #[arg(long, global = true, value_name = "FILE", help_heading = COMMON)]
    config: Option<PathBuf>,

    /// The PostgreSQL database to use instead of a file in the data directory
    /// [env: MIDWATCH_STORE_URL] [default: `store.url` of the configuration]
    #[arg(long, global = true, value_name = "URL", help_heading = COMMON)]
    store: Option<String>,

    /// Print exact times in UTC
    #[arg(long, global = true, help_heading = COMMON)]
    utc: bool,

    /// Print one JSON document instead of text
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
    /// Try it out in a minute: a daemon of its own, which is also killed
    ///
    /// A schedule fires, a slot is skipped, a run waits for your approval, the daemon is killed with `kill -9`, and
    /// `midwatch why` explains what became of it. Only you approve: without a terminal the run stays parked. Everything is
    /// in a temporary directory, which ctrl-c removes; without a terminal the demo ends by itself.
    Demo,
    Open(open::Open),
    Stop(stop::Stop),
    Status(status::Status),
    Timeline(timeline::Timeline),
    /// Find problems of this installation and explain how to fix them
    Doctor,
    /// Register, change, test and remove agents
    #[command(subcommand)]
    Agent(agent::Command),
    /// Add, change, pause, fire and import schedules
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// Start, follow, cancel and retry runs
    #[command(subcommand)]
    Run(run::Command),
    /// Review and decide approvals
    #[command(subcommand)]
    Approval(approval::Command),
    Freeze(freeze::Freeze),
    Thaw(thaw::Thaw),
    /// Confirm that a human is still here; without that, runs need approval after 14 days and stop after
    /// 28
    #[command(subcommand)]
    Lease(lease::Command),
    /// Check and list the rules; explain past decisions; try other rules on them
    #[command(subcommand)]
    Policy(policy::Command),
    /// Create, list and revoke access tokens
    #[command(subcommand)]
    Token(token::Command),
    /// List and revoke the browsers in which people have signed in
    #[command(subcommand)]
    Device(device::Command),
    /// List and test the channels that notify you
    #[command(subcommand)]
    Notice(notice::Command),
    /// Publish events that fire schedules
    #[command(subcommand)]
    Event(event::Command),
    Why(why::Why),
    Mcp(mcp::Mcp),
    Promptyoself(promptyoself::Promptyoself),
    /// Read, verify, export and rebuild the ledger
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Back up an installation into one file, and restore it
    #[command(subcommand)]
    Backup(backup::Command),
    Cleanup(cleanup::Cleanup),
    /// Copy an installation from one store into another
    #[command(subcommand)]
    Store(store::Command),
    /// Write, check, show and reload the configuration
    #[command(subcommand)]
    Config(config::Command),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the program on a command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let flags = arguments.iter().take_while(|argument| *argument != "--");
    let wants_json = flags.into_iter().any(|argument| argument == "--json");
    let format = if wants_json { Format::Json } else { Format::Human };
    let output = Output { format, width: width(&environment::of_process()) };
    let subcommands = subcommands(&arguments);
    let is_promptyoself = subcommands.first().is_some_and(|name| name == promptyoself::NAME);
    let typed: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if is_promptyoself && error.use_stderr() => {
            return promptyoself::report_usage(&error, &usage_error(&error, &subcommands));
        }
        Err(error) => return report(&error, &subcommands, &output),
    };
    let done =
        dispatch(cli, typed, output).and_then(|code| output::failed_write().map_or(Ok(code), Err));
    match done {
        Ok(code) => code,
        Err(error) if is_promptyoself => promptyoself::report_error(&error),
        Err(error) => {
            output.fail(&error);
            ExitCode::from(error.code.exit_code())
        }
    }
}

fn dispatch(cli: Cli, typed: Vec<String>, output: Output) -> Result<ExitCode, Error> {
    // These need neither a data directory nor a runtime.
    match cli.command {
        Command::Completions(completions) => return Ok(completions::run(&completions, &output)),
        Command::Man(man) => return man::run(&man, &output),
        Command::Schedule(schedule::Command::Next(next)) => {
            let view = view(cli.utc, &environment::of_process());
            return schedule::next::run(next, &view, &output);
        }
        Command::Promptyoself(ref promptyoself) => {
            if let Some(described) = promptyoself.run_describe() {
                return described;
            }
        }
        _ => {}
    }
    // A command holds a token, and one without a daemon the keys. The daemon checks the result.
    let _ = local_checks::disable_core_dumps();
    // Files that are created from here on are private to this user.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let context = context(&cli, typed, output)?;
    if is_look(&cli.command) && io::stdin().is_terminal() && io::stdout().is_terminal() {
        context.set_look();
    }
    let is_daemon = match &cli.command {
        Command::Promptyoself(promptyoself) => promptyoself.may_run_daemon(),
        command => matches!(command, Command::Up(_)),
    };
    let _logs = (!is_daemon).then(|| logs::init_quiet(&context.environment));
    let mut runtime = match is_daemon {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let runtime = runtime.worker_threads(worker_threads()).enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(Code::Failed, error))?;
    runtime.block_on(run_command(&context, cli.command))
}

/// Whether a person who runs this command at a terminal looks at the installation, which keeps the lease from expiring.
/// A command that stays could run long after they have left; one that agents run, too, says nothing about a person.
fn is_look(command: &Command) -> bool {
    match command {
        Command::Up(_) | Command::Demo | Command::Mcp(_) | Command::Promptyoself(_) => false,
        // It renews the lease itself.
        Command::Lease(_) => false,
        Command::Timeline(timeline) => !timeline.follows(),
        Command::Run(command) => !command.follows(),
        Command::Ledger(command) => !command.follows(),
        Command::Open(_)
        | Command::Device(_)
        | Command::Stop(_)
        | Command::Status(_)
        | Command::Doctor
        | Command::Agent(_)
        | Command::Schedule(_)
        | Command::Approval(_)
        | Command::Freeze(_)
        | Command::Thaw(_)
        | Command::Policy(_)
        | Command::Token(_)
        | Command::Notice(_)
        | Command::Event(_)
        | Command::Why(_)
        | Command::Backup(_)
        | Command::Cleanup(_)
        | Command::Store(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Man(_) => true,
    }
}

fn context(cli: &Cli, typed: Vec<String>, output: Output) -> Result<Context, Error> {
    let mut data = cli.data.clone().or_else(|| environment::path("MIDWATCH_DATA"));
    let config = cli.config.clone().or_else(|| environment::path("MIDWATCH_CONFIG"));
    let mut environment = environment::of_process();
    if matches!(cli.command, Command::Promptyoself(_)) {
        environment = promptyoself::variables(environment);
        data = data.or_else(|| promptyoself::data_directory(&environment));
    }
    let store = cli.store.clone();
    environment.extend(store.map(|url| ("MIDWATCH_STORE_URL".to_owned(), url)));
    let view = view(cli.utc, &environment).for_command(typed);
    Context::new(data, config, environment, output, view)
}

fn view(utc: bool, environment: &BTreeMap<String, String>) -> View {
    View::new(environment, utc, SystemClock.now().as_micros())
}

async fn run_command(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Up(up) => up::run(context, up).await,
        Command::Demo => demo::run(context).await,
        Command::Open(open) => open::run(context, open).await,
        Command::Device(command) => device::run(context, command).await,
        Command::Stop(stop) => stop::run(context, stop).await,
        Command::Status(status) => status::run(context, status).await,
        Command::Timeline(timeline) => timeline::run(context, timeline).await,
        Command::Doctor => doctor::run(context).await,
        Command::Agent(command) => agent::run(context, command).await,
        Command::Schedule(command) => schedule::run(context, command).await,
        Command::Run(command) => run::run(context, command).await,
        Command::Approval(command) => approval::run(context, command).await,
        Command::Freeze(freeze) => freeze::run(context, freeze).await,
        Command::Thaw(thaw) => thaw::run(context, thaw).await,
        Command::Lease(command) => lease::run(context, command).await,
        Command::Policy(command) => policy::run(context, command).await,
        Command::Token(command) => token::run(context, command).await,
        Command::Notice(command) => notice::run(context, command).await,
        Command::Event(command) => event::run(context, command).await,
        Command::Why(why) => why::run(context, why).await,
        Command::Mcp(mcp) => mcp::run(context, mcp).await,
        Command::Promptyoself(promptyoself) => promptyoself::run(context, promptyoself).await,
        Command::Ledger(command) => ledger::run(context, command).await,
        Command::Backup(command) => backup::run(context, command).await,
        Command::Cleanup(cleanup) => cleanup::run(context, cleanup).await,
        Command::Store(command) => store::run(context, command).await,
        Command::Config(command) => config::run(context, command).await,
        Command::Completions(_) | Command::Man(_) => Ok(ExitCode::SUCCESS),
    }
}

/// One core is left to the store's writer.
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

/// The definition of all commands, for generated help and pages.
pub fn definition() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_end_with_their_answer_are_a_look() {
        for (line, expected) in [
            ("status", true),
            ("status --json", true),
            ("run list", true),
            ("run show run_1", true),
            ("schedule list", true),
            ("timeline", true),
            ("ledger tail", true),
            ("approval show apr_1", true),
            ("why news", true),
            ("run watch run_1", false),
            ("timeline --follow", false),
            ("ledger tail -f", false),
            ("up", false),
            ("demo", false),
            ("mcp", false),
            ("promptyoself list", false),
            ("lease renew", false),
        ] {
            let arguments = std::iter::once("midwatch").chain(line.split(' '));
            let cli = Cli::try_parse_from(arguments).unwrap();
            assert_eq!(is_look(&cli.command), expected, "{line}");
        }
    }
}
