//! Our figures, each beside what it is measured against, in the same run.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark measures spans and prints them"
)]

mod machine;
mod raw;
mod start;
mod store;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Measures Midwatch beside the raw engine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Durable changes through the handle, against raw SQLite writing the same rows
    Store {
        #[arg(long, default_value_t = 64)]
        writers: usize,
        #[arg(long, default_value_t = 4)]
        seconds: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Changes without an idempotency key
        #[arg(long)]
        no_keys: bool,
        /// Where to write [default: a temporary directory, then shared memory]
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Verifying a log, against computing its hashes in memory
    Verify {
        #[arg(long, default_value_t = 1_000_000)]
        entries: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Start to ready on a long log, memory at rest, and `--version`
    Start {
        #[arg(long, default_value_t = 1_000_000)]
        entries: u64,
        #[arg(long, default_value_t = 9)]
        rounds: usize,
    },
}

fn main() -> anyhow::Result<()> {
    machine::describe();
    match Arguments::parse().command {
        Command::Store { writers, seconds, rounds, no_keys, dir } => {
            let span = Duration::from_secs(seconds);
            let load = store::Load { writers, span, rounds, has_keys: !no_keys };
            let dirs = dir.map_or_else(store::default_dirs, |dir| vec![dir]);
            for dir in dirs {
                store::run(&dir, load)?;
            }
            Ok(())
        }
        Command::Verify { entries, rounds } => verify::run(entries, rounds),
        Command::Start { entries, rounds } => start::run(entries, rounds),
    }
}

/// Median, least and most of some measurements.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
