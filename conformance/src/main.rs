//! Conformance of the MCP server: the official suite, the inspector, four SDKs, Claude Code, and a fuzzer.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it starts servers and clients, and prints their results"
)]

mod fixture;
mod fuzz;
mod harness;

use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;

#[derive(Debug, Parser)]
#[command(name = "conformance", about = "Tests the MCP server against the protocol")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install the suite and the SDKs below `target/`, and run all checks
    Check,
    /// Test the HTTP API against its OpenAPI document, with Schemathesis
    Api {
        /// Most examples of each operation
        #[arg(long, default_value_t = 30)]
        examples: u32,
    },
    /// Serve the tools, resources and prompts that the official suite needs
    Fixture {
        /// Serve on standard input and output instead of HTTP
        #[arg(long)]
        stdio: bool,
    },
    /// Send random invalid lines to the stdio server
    Fuzz {
        /// How long to run
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The first seed; a failed round prints its seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let command = Arguments::parse().command;
    let mut runtime = match command {
        // `midwatch mcp` serves its client on one thread, too.
        Command::Fixture { stdio: true } => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run(command))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Check => harness::check(),
        Command::Api { examples } => harness::check_api(examples),
        Command::Fuzz { seconds, seed } => {
            let rounds = fuzz::run(seed, Duration::from_secs(seconds)).await?;
            println!("{rounds} rounds from seed {seed}: every line was answered correctly");
            Ok(())
        }
        Command::Fixture { stdio: true } => fixture::serve_stdio().await,
        Command::Fixture { stdio: false } => fixture::serve_http().await,
    }
}
