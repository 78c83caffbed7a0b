//! The campaign itself, small: forty deaths of the program that lies beside it, built if it is missing.
#![expect(clippy::disallowed_methods, reason = "the test starts the real programs")]

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::Value;

const SIM: &str = env!("CARGO_BIN_EXE_sim");

#[test]
fn nothing_is_lost_or_doubled_in_forty_crashes() {
    let program = Path::new(SIM).with_file_name("midwatch");
    if !program.exists() {
        build(program.parent().unwrap()).unwrap();
    }
    let mut sim = Command::new(SIM);
    sim.args(["crash", "--cycles", "40", "--json", "--program"]).arg(&program);
    // The seed goes to stderr first, and so does what is wrong.
    let output = sim.stderr(Stdio::inherit()).output().unwrap();
    let summary = String::from_utf8(output.stdout).unwrap();
    println!("{summary}");
    assert!(output.status.success(), "see above");

    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(
        (&summary["cycles"], &summary["lost"], &summary["doubled"]),
        (&40.into(), &0.into(), &0.into())
    );
    // A campaign in which nothing happened proves nothing.
    for count in ["acknowledged", "entries", "repeated"] {
        assert!(0 < summary[count].as_u64().unwrap(), "{count}: {summary}");
    }
    assert!(0 < summary["retried"]["calls"].as_u64().unwrap(), "{summary}");
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
