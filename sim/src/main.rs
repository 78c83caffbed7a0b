//! Campaigns against the real program. Not shipped.

mod crash;
mod dice;

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
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Crash(options) => crash::run(&options),
    }
}
