//! Whether the server speaks the protocol as others do: the official suite, the inspector and the SDKs.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it starts servers and clients, and prints what became of them"
)]

mod fixture;
mod fuzz;
mod harness;

use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;

#[derive(Debug, Parser)]
#[command(name = "conformance", about = "Holds the MCP server to the protocol")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is needed below `target/`, and run everything
    Check,
    /// Be the server that the official suite asks for
    Fixture {
        /// On standard input and output, instead of HTTP
        #[arg(long)]
        stdio: bool,
    },
    /// Write lines that nobody would write, for so long
    Fuzz {
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Where to begin; a round that fails says its own
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let command = Arguments::parse().command;
    let mut runtime = match command {
        // One client on a pair of pipes is served by one thread, as by `midwatch mcp`.
        Command::Fixture { stdio: true } => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(run(command))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Check => harness::check(),
        Command::Fuzz { seconds, seed } => {
            let rounds = fuzz::run(seed, Duration::from_secs(seconds)).await?;
            println!("{rounds} rounds from seed {seed}: every line was answered as it should be");
            Ok(())
        }
        Command::Fixture { stdio: true } => fixture::serve_stdio().await,
        Command::Fixture { stdio: false } => fixture::serve_http().await,
    }
}
