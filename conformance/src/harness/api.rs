//! The HTTP API against its OpenAPI document, by Schemathesis.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::install;
use super::world::World;

const PACKAGE: &str = "schemathesis==4.32.0";
/// Examples are the same in every run.
const SEED: &str = "2026";
/// Not sent: it ends the daemon.
const LEFT_OUT: &str = "/api/v1/daemon/stop";
/// Checks that every request of a schema is accepted. Ours have grammars that no schema has, such as that of cron.
const LEFT_OUT_CHECK: &str = "positive_data_acceptance";

/// 428 is the right status of an edit without its version, RFC 6585.
const CONFIG: &str = "[checks]\n\
    missing_required_header.expected-statuses = [400, 401, 403, 406, 415, 422, 428]\n";
/// Schedules that requests find in lists, more than they remove.
const SCHEDULES: usize = 8;

/// Sends about `examples` requests per operation. Schemathesis takes ids from the lists that it gets.
pub(crate) fn check(examples: u32) -> Result<()> {
    let python = install::python("schemathesis", PACKAGE)?;
    let world = World::start()?;
    for index in 0..SCHEDULES {
        let schedule = world.add_schedule(&format!("brief-{index}"), "echo")?;
        world.start_run(&schedule)?;
    }
    let asking = world.start_run(&world.add_schedule("asks", "outside")?)?;
    world.wait_for_approval(&asking)?;
    let config = world.root().join("schemathesis.toml");
    fs::write(&config, CONFIG)?;
    run(&python.with_file_name("st"), &config, &world, examples)?;
    world.verify()
}

fn run(program: &Path, config: &Path, world: &World, examples: u32) -> Result<()> {
    let token = world.create_token("otto", "operator")?;
    let base = world.url.strip_suffix("/mcp").context("the url has no path")?;
    let document = format!("{base}/api/v1/openapi.json");
    let bearer = format!("Authorization: Bearer {token}");
    let mut schemathesis = Command::new(program);
    schemathesis
        .arg("--config-file")
        .arg(config)
        .args(["run", &document, "--url", base, "--header", &bearer])
        .args(["--mode", "all", "--seed", SEED, "--max-examples", &examples.to_string()])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
        .args(["--exclude-path", LEFT_OUT, "--exclude-checks", LEFT_OUT_CHECK])
        .args(["--continue-on-failure", "--workers", "1", "--rate-limit", "40/s", "--no-color"])
        .current_dir(world.root())
        .stdin(Stdio::null());
    let status = schemathesis.status().context("cannot run schemathesis")?;
    ensure!(status.success(), "schemathesis ended with {status}");
    Ok(())
}
