//! The HTTP API against its OpenAPI document, by Schemathesis.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::install;
use super::world::World;

const PACKAGE: &str = "schemathesis==4.32.0";
/// Examples are the same in every run.
const SEED: &str = "2026";
/// Not sent: it ends the daemon.
const LEFT_OUT: &str = "/daemon/stop";
/// Checks that every request of a schema is accepted. Ours have grammars that no schema has, such as that of cron.
const LEFT_OUT_CHECK: &str = "positive_data_acceptance";

/// Sends `examples` requests per operation and check.
pub(crate) fn check(examples: u32) -> Result<()> {
    let python = install::python("schemathesis", PACKAGE)?;
    let world = World::start()?;
    let token = world.create_token("otto", "operator")?;
    let base = world.url.strip_suffix("/mcp").context("the url has no path")?;
    let document = format!("{base}/api/v1/openapi.json");
    let bearer = format!("Authorization: Bearer {token}");
    let mut schemathesis = Command::new(python.with_file_name("st"));
    schemathesis
        .args(["run", &document, "--url", &format!("{base}/api/v1"), "--header", &bearer])
        .args(["--mode", "all", "--seed", SEED, "--max-examples", &examples.to_string()])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
        .args(["--exclude-path", LEFT_OUT, "--exclude-checks", LEFT_OUT_CHECK])
        .args(["--continue-on-failure", "--workers", "1", "--rate-limit", "40/s", "--no-color"])
        .stdin(Stdio::null());
    let status = schemathesis.status().context("cannot run schemathesis")?;
    ensure!(status.success(), "schemathesis ended with {status}");
    world.verify()
}
