//! The campaigns themselves, small: a few deaths of the program that lies beside them, built if it is
//! missing.
#![expect(clippy::disallowed_methods, reason = "the test starts the real programs")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use anyhow::{Result, ensure};
use serde_json::Value;

const SIM: &str = env!("CARGO_BIN_EXE_sim");
/// In every campaign of runs.
const RUNS_HAPPENED: [&str; 5] =
    ["/slots", "/once/done", "/once/unknown", "/repeatable/done", "/repeated"];

#[test]
fn nothing_is_lost_or_doubled_in_forty_crashes() {
    check(&["--cycles", "40"], &["/acknowledged", "/entries", "/repeated", "/retried/calls"]);
}

#[test]
fn no_run_takes_effect_twice_in_eight_crashes() {
    check_runs(&["--runs", "--cycles", "8"]);
}

#[test]
fn no_run_inside_the_process_takes_effect_twice_in_eight_crashes() {
    check(&["--runs", "--inside", "--cycles", "8"], &RUNS_HAPPENED);
}

#[test]
fn no_run_takes_effect_twice_on_postgresql() {
    check_runs(&["--runs", "--postgres", "--cycles", "8"]);
}

fn check_runs(arguments: &[&str]) {
    let asked = ["/asked/done", "/asked/cancelled", "/consumed", "/denied"];
    check(arguments, &[&RUNS_HAPPENED[..], &asked].concat());
}

/// A campaign that goes well, and in which each of these has happened: one in which nothing happened
/// proves nothing.
fn check(arguments: &[&str], happened: &[&str]) {
    static BUILT: Once = Once::new();
    let program = Path::new(SIM).with_file_name("midwatch");
    BUILT.call_once(|| {
        if !program.exists() {
            build(program.parent().unwrap()).unwrap();
        }
    });
    let mut sim = Command::new(SIM);
    sim.arg("crash").args(arguments).args(["--json", "--program"]).arg(&program);
    // The seed goes to stderr first, and so does what is wrong.
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
    for count in happened {
        let number = summary.pointer(count).and_then(Value::as_u64).unwrap();
        assert!(0 < number, "{count}: {summary}");
    }
}

/// Into the folder of the profile that this test was built with.
fn build(folder: &Path) -> Result<()> {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "midwatch", "--profile", profile, "--target-dir"]);
    let built = cargo.arg(folder.parent().unwrap_or(folder)).status()?;
    ensure!(built.success(), "midwatch cannot be built");
    Ok(())
}
