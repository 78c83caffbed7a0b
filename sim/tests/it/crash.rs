//! Small crash campaigns against `midwatch`, which is built if it is missing.
#![expect(clippy::disallowed_methods, reason = "the test starts the real programs")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use anyhow::{Result, ensure};
use serde_json::Value;

const SIM: &str = env!("CARGO_BIN_EXE_sim");
/// `cargo xtask crash` runs campaigns with random seeds.
const SEED: &str = "1";
/// Counts that must not be zero in a campaign of runs.
const RUN_COUNTS: [&str; 5] =
    ["/slots", "/once/done", "/once/unknown", "/repeatable/done", "/repeated"];

#[test]
fn no_change_is_lost_or_doubled_in_forty_crashes() {
    check(&["--cycles", "40"], &["/acknowledged", "/entries", "/repeated", "/retried/calls"]);
}

#[test]
fn no_run_takes_effect_twice_in_eight_crashes() {
    check_runs(&["--runs", "--cycles", "8"]);
}

#[test]
fn no_in_process_run_takes_effect_twice_in_eight_crashes() {
    check(&["--runs", "--inside", "--cycles", "8"], &RUN_COUNTS);
}

#[test]
fn no_run_takes_effect_twice_in_eight_crashes_on_postgresql() {
    check_runs(&["--runs", "--postgres", "--cycles", "8"]);
}

fn check_runs(arguments: &[&str]) {
    let approvals = ["/needs_approval/done", "/needs_approval/cancelled", "/consumed", "/denied"];
    check(arguments, &[&RUN_COUNTS[..], &approvals].concat());
}

/// Runs a campaign that must succeed. Each of `counts` must be above zero: a campaign without these events proves nothing.
fn check(arguments: &[&str], counts: &[&str]) {
    static BUILT: Once = Once::new();
    let program = Path::new(SIM).with_file_name("midwatch");
    BUILT.call_once(|| {
        if !program.exists() {
            build(program.parent().unwrap()).unwrap();
        }
    });
    let mut sim = Command::new(SIM);
    sim.args(["crash", "--seed", SEED]).args(arguments).args(["--json", "--program"]).arg(&program);
    // The seed and the violations go to stderr.
    let output = sim.stderr(Stdio::inherit()).output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    println!("{summary}");
    assert!(output.status.success(), "see above");

    let summary: Value = serde_json::from_str(&summary).unwrap();
    let cycles = arguments.last().unwrap().parse::<u64>().unwrap();
    assert_eq!(
        (&summary["cycles"], &summary["lost"], &summary["doubled"]),
        (&cycles.into(), &0.into(), &0.into())
    );
    for count in counts {
        let number = summary.pointer(count).and_then(Value::as_u64).unwrap();
        assert!(0 < number, "{count}: {summary}");
    }
}

/// Builds `midwatch` with the profile of this test.
fn build(folder: &Path) -> Result<()> {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "midwatch", "--profile", profile, "--target-dir"]);
    let built = cargo.arg(folder.parent().unwrap_or(folder)).status()?;
    ensure!(built.success(), "cannot build midwatch");
    Ok(())
}
