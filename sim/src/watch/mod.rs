//! The simulation: the real runtime on virtual time and a store that fails, life after life.
//!
//! A seed is a history: time, chance, faults, people and hands all come from it, and nothing else
//! enters. Each life is lived twice, and both must leave the same log.

mod chance;
mod check;
mod clock;
mod crowd;
mod faults;
mod hands;
mod history;
mod life;
mod mood;
mod patterns;
mod peek;
mod people;
mod plan;
mod process;
mod rest;
mod slow;
mod store;
mod summary;
mod upheaval;

use std::io::{Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::runtime::{Builder, Runtime};

use history::History;
use summary::Summary;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Repeats the history of an earlier simulation [default: a random one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many lives
    #[arg(long, value_name = "N", default_value_t = 100)]
    lives: u64,
    /// Only this one of them
    #[arg(long, value_name = "N")]
    life: Option<u64>,
    /// How many steps each life has
    #[arg(long, value_name = "N", default_value_t = 120)]
    steps: u64,
    /// Instead of lives: one run beside so many of another agent
    #[arg(long, value_name = "N")]
    crowd: Option<u64>,
    /// Tell every step and every entry
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
        summary.add(&virtual_time()?.block_on(crowd::live(seed, many))?);
    } else {
        for life in options.life.map_or(1..=options.lives, |life| life..=life) {
            let Err(wrong) = twice(seed, life, options).map(|lived| summary.add(&lived)) else {
                continue;
            };
            let steps = options.steps;
            eprintln!("seed {seed}, life {life}, {wrong:#}");
            eprintln!("again: sim watch --seed {seed} --life {life} --steps {steps} --trace");
            return Ok(ExitCode::FAILURE);
        }
    }
    let told = match options.json {
        true => serde_json::to_string(&summary)?,
        false => serde_json::to_string_pretty(&summary)?,
    };
    writeln!(stdout(), "{told}")?;
    Ok(ExitCode::SUCCESS)
}

/// S16: the same seed is the same history.
fn twice(seed: u64, life: u64, options: &Options) -> Result<Summary> {
    let (first, summary) = once(seed, life, options)?;
    let (second, _) = once(seed, life, options).context("S16: only the second time")?;
    match first.difference(&second) {
        Some(difference) => bail!("S16: one seed has two histories, which part at {difference}"),
        None => Ok(summary),
    }
}

fn once(seed: u64, life: u64, options: &Options) -> Result<(History, Summary)> {
    virtual_time()?.block_on(life::live(seed, life, options))
}

/// One thread, and time that passes only when nothing else can happen.
fn virtual_time() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().start_paused(true).build()?)
}
