//! Runs everything there is to hold a server to, and says what became of it.
//!
//! The fixture is held to the whole suite. The real program is held to what needs no fixtures, and tells a
//! story to the clients of four SDKs. Nothing is expected to fail.

mod clients;
mod inspector;
mod install;
mod suite;
mod world;

use anyhow::{Result, ensure};

use install::Installed;
use world::{Fixture, World};

/// What became of one thing.
#[derive(Debug)]
struct Row {
    what: String,
    passed: usize,
    /// What went wrong, in the words of whoever found it.
    wrong: Vec<String>,
}

pub(crate) fn check() -> Result<()> {
    let installed = Installed::new()?;
    let mut rows = Vec::new();
    let fixture = Fixture::start()?;
    for revision in suite::REVISIONS {
        rows.push(suite::whole(&installed, &fixture.url, revision)?);
    }
    drop(fixture);
    let world = World::start()?;
    for revision in suite::REVISIONS {
        rows.push(suite::without_fixtures(&installed, &world, revision)?);
    }
    rows.extend(inspector::strict(&installed, &world)?);
    rows.extend(clients::stories(&installed, &world)?);
    installed.describe()?;
    for row in &rows {
        row.print();
    }
    let red = rows.iter().filter(|row| !row.wrong.is_empty()).count();
    ensure!(red == 0, "{red} of {} are red", rows.len());
    Ok(())
}

impl Row {
    fn print(&self) {
        let Row { what, passed, wrong } = self;
        println!("{what:<44} {passed:>4} passed, {} failed", wrong.len());
        for wrong in wrong {
            println!("    {wrong}");
        }
    }
}
