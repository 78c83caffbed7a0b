//! Small simulations with fixed seeds. `cargo xtask sim` runs campaigns with random ones.
#![expect(clippy::disallowed_methods, reason = "the test starts the real program")]

use std::process::{Command, Stdio};

use serde_json::Value;

const SIM: &str = env!("CARGO_BIN_EXE_sim");
/// Counts that must not be zero: simulations without these events prove nothing.
const COUNTS: [&str; 34] = [
    "/acknowledged",
    "/in_doubt",
    "/abandoned_calls",
    "/jumps",
    "/crashes",
    "/stops",
    "/unrecorded_stops",
    "/takeovers",
    "/ended",
    "/reads",
    "/fast_starts",
    "/dual_approved_starts",
    "/out_of_tokens",
    "/out_of_money",
    "/origins/slot",
    "/origins/catch_up",
    "/origins/manual",
    "/origins/event",
    "/origins/backfill",
    "/origins/after",
    "/origins/buffer",
    "/dispositions/ran",
    "/dispositions/ran_late",
    "/dispositions/failed",
    "/dispositions/unknown",
    "/dispositions/cancelled",
    "/dispositions/coalesced",
    "/dispositions/superseded",
    "/dispositions/skipped_budget",
    "/dispositions/skipped_policy",
    "/dispositions/skipped_overlap",
    "/dispositions/skipped_missed",
    "/dispositions/skipped_paused",
    "/dispositions/skipped_full",
];

#[test]
fn invariants_hold_and_every_kind_of_event_occurs() {
    let summary = check(&["--seed", "15", "--lives", "10", "--steps", "60"]);
    for count in COUNTS {
        let number = summary.pointer(count).and_then(Value::as_u64).unwrap_or_default();
        assert!(0 < number, "{count}: {summary}");
    }
}

#[test]
fn invariants_hold_in_longer_simulations() {
    check(&["--seed", "2026", "--lives", "4", "--steps", "80"]);
}

#[test]
fn a_run_does_not_wait_behind_thousands_of_another_agent() {
    check(&["--crowd", "2000", "--seed", "1"]);
}

/// The seed, the step, the violation and the command to reproduce it go to stderr.
fn check(arguments: &[&str]) -> Value {
    let mut sim = Command::new(SIM);
    sim.arg("watch").args(arguments).arg("--json").stderr(Stdio::inherit());
    let output = sim.output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    println!("{summary}");
    assert!(output.status.success(), "see above");
    serde_json::from_str(&summary).unwrap()
}
