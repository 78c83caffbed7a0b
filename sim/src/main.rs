//! Crash campaigns against the real program, and simulations of its runtime. Not shipped.

mod crash;
mod dice;
mod engine;
mod fold;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "sim", about = "Crash campaigns and simulations")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kill the daemon in a loop and search for lost and repeated changes
    Crash(crash::Options),
    /// The process that `crash --runs --inside` kills
    #[command(hide = true)]
    Host(crash::HostOptions),
    /// Simulate the engine on virtual time from a seed, and check every step
    #[command(name = "watch")]
    Engine(engine::Options),
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Crash(options) => crash::run(&options),
        Command::Host(options) => crash::host(&options),
        Command::Engine(options) => engine::run(&options),
    }
}
