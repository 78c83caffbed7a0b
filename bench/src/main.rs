//! Benchmarks. Each measures Midwatch and its baseline in the same run.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark measures spans and prints them"
)]

mod calendar;
mod log_end;
mod machine;
mod mcp;
mod policy;
mod raw;
mod raw_postgres;
mod schedule;
mod start;
mod store;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Measures Midwatch and its baselines")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Durable changes through the handle, compared with the raw database writing the same rows
    Store {
        #[arg(long, value_enum, default_value_t = store::Database::Sqlite)]
        engine: store::Database,
        #[arg(long, default_value_t = 64)]
        writers: usize,
        #[arg(long, default_value_t = 4)]
        seconds: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Stores on one database, among which the writers are divided; PostgreSQL only
        #[arg(long, default_value_t = 1)]
        nodes: usize,
        /// Send changes without idempotency keys
        #[arg(long)]
        no_keys: bool,
        /// Directory to write to [default: a temporary directory, then shared memory]. A PostgreSQL server always uses a
        /// temporary directory.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Two designs for appending to the ledger on PostgreSQL, as plain SQL
    LogEnd {
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// Verifying a ledger, compared with computing its hashes in memory
    Verify {
        #[arg(long, default_value_t = 1_000_000)]
        entries: u64,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// The next slot of common, rare and impossible triggers, compared with another library
    Calendar {
        #[arg(long, default_value_t = 9)]
        rounds: usize,
    },
    /// The policy: a decision among 200 rules, and loading 1,000
    Policy {
        #[arg(long, default_value_t = 9)]
        rounds: usize,
    },
    /// Schedules: lateness, fires, finished runs, growth, recovery and creation, each compared with a peer
    Schedule(schedule::Options),
    /// The MCP server, compared with servers of the Python and TypeScript SDKs
    Mcp(mcp::Options),
    /// Start to ready on a long ledger, memory at rest, and `--version`
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
        Command::Store { engine, writers, seconds, rounds, nodes, no_keys, dir } => {
            let span = Duration::from_secs(seconds);
            let load = store::Load { engine, writers, span, rounds, nodes, has_keys: !no_keys };
            let dirs = dir.map_or_else(|| store::default_dirs(engine), |dir| vec![dir]);
            for dir in dirs {
                store::run(&dir, load)?;
            }
            Ok(())
        }
        Command::LogEnd { seconds, rounds } => log_end::run(seconds, rounds),
        Command::Verify { entries, rounds } => verify::run(entries, rounds),
        Command::Calendar { rounds } => calendar::run(rounds),
        Command::Policy { rounds } => policy::run(rounds),
        Command::Mcp(options) => mcp::run(&options),
        Command::Schedule(options) => schedule::run(&options),
        Command::Start { entries, rounds } => start::run(entries, rounds),
    }
}

/// Median, minimum and maximum.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}
