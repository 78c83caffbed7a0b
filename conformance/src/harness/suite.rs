//! The official conformance suite.
//!
//! It writes a file with the checks of each scenario. Those are counted here, because its exit code ignores warnings.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Row;
use super::install::Installed;
use super::world::World;

pub(super) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios that are not part of a revision: an extension that is not offered, and checks that are not final.
const UNSCORED: [&str; 5] = [
    "tasks-",
    "json-schema-2020-12",
    "http-header-validation",
    "http-custom-header-server-validation",
    "server-sse-polling",
];

/// Scenarios of each revision that need no fixture.
const WITHOUT_FIXTURE: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "tools-list",
            "server-sse-multiple-streams",
            "resources-list",
            "prompts-list",
            "dns-rebinding-protection",
        ],
    ),
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "server-sse-multiple-streams",
            "resources-list",
            "sep-2164-resource-not-found",
            "prompts-list",
            "dns-rebinding-protection",
            "caching",
            "input-required-result-unsupported-methods",
            "http-header-validation",
        ],
    ),
];
/// Checks of those scenarios that need a tool of the fixture, and are not counted.
const NEED_FIXTURE: [&str; 4] = [
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
}

/// Runs all scenarios of a revision against the fixture.
pub(super) fn run_all(installed: &Installed, url: &str, revision: &str) -> Result<Row> {
    let out = installed.dir().join("out").join(format!("fixture-{revision}"));
    let mut suite = suite(installed, url, &out)?;
    suite.args(["--requirements", revision]).env("MIDWATCH_TOKEN", "fixture");
    let mut row = Row { name: format!("suite, fixture, {revision}"), passed: 0, failures: vec![] };
    let output = suite.output()?;
    ensure!(out.exists(), "the suite did not run: {}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        row.failures.push(format!("the suite ended with {}", output.status));
    }
    row.count(&out, |scenario, _| !UNSCORED.iter().any(|it| scenario.contains(it)))?;
    Ok(row)
}

/// Runs the scenarios that need no fixture against the real server.
pub(super) fn run_without_fixture(
    installed: &Installed,
    world: &World,
    revision: &str,
) -> Result<Row> {
    let found = WITHOUT_FIXTURE.iter().find(|(of, _)| *of == revision);
    let (_, scenarios) = found.context("no scenarios for this revision")?;
    let mut row =
        Row { name: format!("suite, real server, {revision}"), passed: 0, failures: vec![] };
    for scenario in *scenarios {
        let out = installed.dir().join("out").join(format!("real-{revision}-{scenario}"));
        let mut suite = suite(installed, &world.url, &out)?;
        suite.args(["--scenario", scenario, "--spec-version", revision]);
        let output = suite.env("MIDWATCH_TOKEN", &world.token).output()?;
        ensure!(out.exists(), "the suite did not run: {}", String::from_utf8_lossy(&output.stderr));
        row.count(&out, |_, check| !NEED_FIXTURE.contains(&check.id.as_str()))?;
    }
    Ok(row)
}

fn suite(installed: &Installed, url: &str, out: &Path) -> Result<Command> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let token = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/token.cjs");
    let mut node = installed.node();
    node.arg("--require").arg(token);
    node.arg(installed.package("@modelcontextprotocol/conformance/dist/index.js"));
    // The suite only accepts `localhost` as the name of this machine.
    node.args(["server", "--url", &url.replace("127.0.0.1", "localhost"), "-o"]).arg(out);
    Ok(node)
}

impl Row {
    /// Adds the results of the checks that `counts` selects.
    fn count(&mut self, out: &Path, counts: impl Fn(&str, &Check) -> bool) -> Result<()> {
        let mut found = false;
        for entry in fs::read_dir(out)? {
            let entry = entry?;
            let scenario = entry.file_name().to_string_lossy().into_owned();
            let Ok(text) = fs::read(entry.path().join("checks.json")) else { continue };
            let checks: Vec<Check> = serde_json::from_slice(&text)?;
            found = true;
            for check in checks.iter().filter(|check| counts(&scenario, check)) {
                match check.status.as_str() {
                    "SUCCESS" => self.passed += 1,
                    "FAILURE" | "WARNING" => {
                        let message = check.error_message.as_deref().unwrap_or_default();
                        self.failures.push(format!("{scenario}: {}: {message}", check.id));
                    }
                    _ => {}
                }
            }
        }
        ensure!(found, "the suite wrote nothing to {}", out.display());
        Ok(())
    }
}
