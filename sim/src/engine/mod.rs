//! The simulation: the real engine on virtual time, over a store that fails.
//!
//! A seed determines the history: clock, faults, operators and the agent backend all follow from it. Each simulation is
//! run twice, and both must write the same ledger.

mod check;
mod clock;
mod crowd;
mod disruptions;
mod drain;
mod fault_rates;
mod faults;
mod generate;
mod history;
mod keyed_dice;
mod naive_calendar;
mod operators;
mod patterns;
mod process;
mod scripted_backend;
mod simulation;
mod stops;
mod store;
mod store_view;
mod summary;

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::runtime::{Builder, Runtime};

use history::History;
use summary::Summary;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Repeat the history of an earlier simulation [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many simulations to run
    #[arg(long, value_name = "N", default_value_t = 100)]
    lives: u64,
    /// Run only the simulation with this number
    #[arg(long, value_name = "N")]
    life: Option<u64>,
    /// Steps of each simulation
    #[arg(long, value_name = "N", default_value_t = 120)]
    steps: u64,
    /// Instead: check that one run does not wait behind N runs of another agent
    #[arg(long, value_name = "N")]
    crowd: Option<u64>,
    /// Print every step and every entry
    #[arg(long)]
    trace: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let seed = options.seed.map_or_else(|| getrandom::u32().map(u64::from), Ok)?;
    eprintln!("seed {seed}");
    let mut summary = Summary::default();
    if let Some(many) = options.crowd {
        summary.add(&virtual_time()?.block_on(crowd::simulate(seed, many))?);
    } else {
        for life in options.life.map_or(1..=options.lives, |life| life..=life) {
            let Err(error) = run_twice(seed, life, options).map(|counts| summary.add(&counts))
            else {
                continue;
            };
            let steps = options.steps;
            eprintln!("seed {seed}, life {life}, {error:#}");
            eprintln!(
                "to reproduce: sim watch --seed {seed} --life {life} --steps {steps} --trace"
            );
            return Ok(ExitCode::FAILURE);
        }
    }
    let text = match options.json {
        true => serde_json::to_string(&summary)?,
        false => serde_json::to_string_pretty(&summary)?,
    };
    writeln!(stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// S16: the same seed gives the same history.
fn run_twice(seed: u64, life: u64, options: &Options) -> Result<Summary> {
    let (first, summary) = run_once(seed, life, options)?;
    let (second, _) = run_once(seed, life, options).context("S16: fails only the second time")?;
    match first.difference(&second) {
        Some(difference) => {
            bail!("S16: one seed gave two histories; the first difference is {difference}")
        }
        None => Ok(summary),
    }
}

fn run_once(seed: u64, life: u64, options: &Options) -> Result<(History, Summary)> {
    virtual_time()?.block_on(simulation::simulate(seed, life, options))
}

/// One thread, on which time passes only when every task waits.
fn virtual_time() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().start_paused(true).build()?)
}
