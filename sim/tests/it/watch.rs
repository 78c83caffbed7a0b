//! The simulation, small: a few seeds that are always the same, and one that is not.
#![expect(clippy::disallowed_methods, reason = "the test starts the real program")]

use std::env;
use std::process::{Command, Stdio};

use serde_json::Value;

const SIM: &str = env!("CARGO_BIN_EXE_sim");
/// Another seed than a random one, to look at a failure again.
const SEED: &str = "MIDWATCH_SIM_SEED";
/// Each of these must have happened: lives in which nothing happened prove nothing.
const HAPPENED: [&str; 33] = [
    "/acknowledged",
    "/in_doubt",
    "/hung_up",
    "/jumps",
    "/crashes",
    "/stops",
    "/overtaken",
    "/ended",
    "/reads",
    "/begun_at_once",
    "/begun_by_two",
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
fn lives_of_fixed_seeds_keep_every_invariant() {
    let summary = check(&["--seed", "9", "--lives", "10", "--steps", "60"]);
    for count in HAPPENED {
        let number = summary.pointer(count).and_then(Value::as_u64).unwrap_or_default();
        assert!(0 < number, "{count}: {summary}");
    }
}

#[test]
fn lives_of_a_random_seed_keep_every_invariant() {
    let seed = env::var(SEED).ok();
    let seed = seed.iter().flat_map(|seed| ["--seed", seed]);
    let arguments: Vec<&str> = seed.chain(["--lives", "4", "--steps", "80"]).collect();
    check(&arguments);
}

#[test]
fn one_run_does_not_wait_behind_thousands_of_another_agent() {
    check(&["--crowd", "2000", "--seed", "1"]);
}

/// The seed goes to stderr first; so do the life, the step, what is wrong, and how to see it again.
fn check(arguments: &[&str]) -> Value {
    let mut sim = Command::new(SIM);
    sim.arg("watch").args(arguments).arg("--json").stderr(Stdio::inherit());
    let output = sim.output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    println!("{summary}");
    assert!(output.status.success(), "see above");
    serde_json::from_str(&summary).unwrap()
}
