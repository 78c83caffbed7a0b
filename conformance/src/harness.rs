//! Runs all conformance checks and prints their results.
//!
//! The fixture must pass the whole official suite. The real program must pass the scenarios that need no fixture, the
//! inspector, the story with the clients of four SDKs, and the permission prompts of Claude Code. No failures are
//! expected.

mod api;
mod clients;
mod inspector;
mod install;
mod suite;
mod world;

use anyhow::{Result, ensure};

pub(crate) use api::check as check_api;
use install::Installed;
use world::{Fixture, World};

/// The result of one check.
#[derive(Debug)]
struct Row {
    name: String,
    passed: usize,
    /// Messages of the tool that found the failures.
    failures: Vec<String>,
}

pub(crate) fn check() -> Result<()> {
    let installed = Installed::new()?;
    let mut rows = Vec::new();
    let fixture = Fixture::start()?;
    for revision in suite::REVISIONS {
        rows.push(suite::run_all(&installed, &fixture.url, revision)?);
    }
    drop(fixture);
    let world = World::start()?;
    for revision in suite::REVISIONS {
        rows.push(suite::run_without_fixture(&installed, &world, revision)?);
    }
    rows.extend(inspector::run_strict(&installed, &world)?);
    rows.extend(clients::run_stories(&installed, &world)?);
    installed.print_versions()?;
    for row in &rows {
        row.print();
    }
    let failed = rows.iter().filter(|row| !row.failures.is_empty()).count();
    ensure!(failed == 0, "{failed} of {} checks failed", rows.len());
    Ok(())
}

impl Row {
    fn print(&self) {
        let Row { name, passed, failures } = self;
        println!("{name:<44} {passed:>4} passed, {} failed", failures.len());
        for failure in failures {
            println!("    {failure}");
        }
    }
}
