//! The disk and load during a phase, and whether its figure meets the bar.

use std::path::Path;

use crate::machine;

/// A figure is void if the median flush time changed by more than this fraction during the phase.
const FLUSH_CHANGE_MAX: f64 = 0.3;

/// The disk at the start of a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    flush_p50_ms: f64,
}

impl Conditions {
    pub(crate) fn start(phase: &str, what: &str, dir: &Path) -> anyhow::Result<Conditions> {
        println!("\n{phase}: {what}, in {}", dir.display());
        Ok(Conditions { flush_p50_ms: print_disk("start", dir)? })
    }

    pub(crate) fn end(self, dir: &Path) -> anyhow::Result<()> {
        let flush_p50_ms = print_disk("end", dir)?;
        let change = flush_p50_ms / self.flush_p50_ms - 1.0;
        if FLUSH_CHANGE_MAX < change.abs() {
            println!("  void     the median flush time changed by {:+.0} %", change * 1e2);
        }
        Ok(())
    }
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    /// Prints whether a figure meets its bar.
    pub(crate) fn print(self, what: &str, value: f64) {
        let (is_met, relation, bar) = match self {
            Bar::AtMost(bar) => (value <= bar, "at most", bar),
            Bar::AtLeast(bar) => (bar <= value, "at least", bar),
        };
        let verdict = if is_met { "met" } else { "missed" };
        println!("  bar      {what} {value:.2}, {relation} {bar}: {verdict} ({:.2}x)", value / bar);
    }
}

fn print_disk(when: &str, dir: &Path) -> anyhow::Result<f64> {
    let (p50, p99) = machine::flush_ms(dir)?;
    let load = machine::load_average();
    println!("  {when:<8} flush p50 {p50:.2} ms, p99 {p99:.2} ms; load {load}");
    Ok(p50)
}

/// The quantile of sorted values, in thousandths.
pub(crate) fn quantile(sorted: &[i64], thousandths: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let found = sorted.get((sorted.len() * thousandths / 1_000).min(last));
    found.map_or(f64::NAN, |value| *value as f64)
}
