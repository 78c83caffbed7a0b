//! Campaigns against the real program, and simulations of its runtime. Not shipped.

mod crash;
mod dice;
mod fold;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "sim", about = "Campaigns against the real program")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kill the daemon in a loop and look for what it lost or did twice
    Crash(crash::Options),
    /// The process that `crash --runs --inside` kills
    #[command(hide = true)]
    Host(crash::HostOptions),
    /// Live through seeded lives of the runtime on virtual time, and check every step
    Watch(watch::Options),
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Crash(options) => crash::run(&options),
        Command::Host(options) => crash::host(&options),
        Command::Watch(options) => watch::run(&options),
    }
}
