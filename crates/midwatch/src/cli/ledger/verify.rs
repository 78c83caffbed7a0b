//! `midwatch ledger verify`

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Error, ProgressSink};
use clap::Args;
use ledger::export::{MANIFEST_BYTES_MAX, Manifest};
use ledger::verify::{Anchors, ExportFiles, Report, Verdict, verify_export};
use runtime::{CHECKPOINTS_FILE, ExportDir, read_last_note, report_unreadable};
use store_postgres::Postgres;
use store_sqlite::Sqlite;

use super::{parse_keys, render_caveats};
use crate::access::no_installation;
use crate::cli::support::input::unreadable;
use crate::cli::support::render::{count_of, entries};
use crate::context::Context;
use crate::storage::Storage;
use crate::view::View;

/// Verify the ledger, or exported files, without changing anything
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    /// Verify exported files instead of a data directory
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    #[command(flatten)]
    trusted: Trusted,
}

/// Keys and checkpoints that the caller got from elsewhere.
#[derive(Debug, Args)]
struct Trusted {
    /// A public key that must have signed it; repeat it if there were several [default: those
    /// that the ledger names]
    #[arg(long, value_name = "KEY")]
    vkey: Vec<String>,
    /// A file with checkpoints, stored elsewhere, that must all match
    #[arg(long, value_name = "FILE")]
    expect_checkpoint: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, verify: Verify) -> Result<ExitCode, Error> {
    let progress = context.output.progress("verifying");
    let report = match &verify.export {
        Some(dir) => verify_files(dir, verify.trusted.anchors()?, &progress.sink())?,
        None => verify_store(context, &verify.trusted, &progress.sink()).await?,
    };
    drop(progress);
    context.output.say(&report, |report| render(report, &context.view));
    Ok(match report.verdict {
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Tampered | Verdict::Truncated | Verdict::Unreadable => ExitCode::FAILURE,
    })
}

fn verify_files(dir: &Path, anchors: Anchors, progress: &ProgressSink) -> Result<Report, Error> {
    let files = ExportDir(dir.to_owned());
    let total = claimed_entries(&files).unwrap_or_default();
    verify_export(&files, anchors, &mut |done| progress.show(done, total.max(done)))
        .map_err(|error| unreadable("export", dir, error))
}

/// The number of entries that the last manifest claims, for the progress bar only.
fn claimed_entries(files: &ExportDir) -> Option<u64> {
    let names = files.names().ok()?.into_iter();
    // Names sort by month.
    let last = names.filter(|name| name.ends_with(".manifest")).max()?;
    let mut note = String::new();
    files.open(&last).ok()?.take(MANIFEST_BYTES_MAX as u64).read_to_string(&mut note).ok()?;
    Manifest::parse_unverified(&note).ok().map(|manifest| manifest.after.size)
}

/// Verifies the store, even while a daemon writes to it.
async fn verify_store(
    context: &Context,
    trusted: &Trusted,
    progress: &ProgressSink,
) -> Result<Report, Error> {
    let storage = context.storage()?;
    if storage.is_missing(&context.directory)? {
        return Err(no_installation(&context.directory));
    }
    let path = match &storage {
        Storage::File(path) => path,
        Storage::Database(target) => {
            let store = Postgres::open_read_only(target).await.map_err(runtime::store_error)?;
            let anchors = trusted.anchors_in(context.directory.path())?;
            return runtime::verify(&store, anchors, progress).await;
        }
    };
    loop {
        // Checkpoints are read before the ledger, so that none is ahead of a ledger that grows.
        let anchors = trusted.anchors_in(context.directory.path())?;
        let store = match Sqlite::open_read_only(path) {
            Ok(store) => store,
            Err(store::Error::Damaged(what)) => return Ok(report_unreadable(anchors, what)),
            Err(error) => return Err(runtime::store_error(error)),
        };
        let report = runtime::verify(&store, anchors, progress).await?;
        if !store.is_outdated() {
            return Ok(report);
        }
    }
}

impl Trusted {
    fn anchors(&self) -> Result<Anchors, Error> {
        let checkpoints = match &self.expect_checkpoint {
            None => None,
            Some(path) => {
                let failed = |error| unreadable("checkpoint file", path, error);
                let missing = || io::Error::from(io::ErrorKind::NotFound);
                let last = read_last_note(path).map_err(failed)?;
                last.ok_or_else(|| unreadable("checkpoint in", path, missing()))?;
                runtime::read_notes(path).map_err(failed)?
            }
        };
        Ok(Anchors { keys: parse_keys(&self.vkey)?, checkpoints, own_checkpoints: None })
    }

    /// With the checkpoints that are kept beside the ledger.
    fn anchors_in(&self, data: &Path) -> Result<Anchors, Error> {
        let own = data.join(CHECKPOINTS_FILE);
        let own_checkpoints = runtime::read_notes(&own)
            .map_err(|error| unreadable("checkpoint file", &own, error))?;
        Ok(Anchors { own_checkpoints, ..self.anchors()? })
    }
}

fn render(report: &Report, view: &View) -> String {
    let good = count_of(report.entries, "good entry", "good entries");
    let mut text = match report.verdict {
        Verdict::Ok => format!(
            "ok: {}, {}, head {}",
            entries(report.entries),
            count_of(report.checkpoints, "signature", "signatures"),
            report.head
        ),
        Verdict::Tampered => format!("TAMPERED after {good}"),
        Verdict::Truncated => format!("TRUNCATED after {good}"),
        Verdict::Unreadable => format!("UNREADABLE after {good}"),
    };
    if let Some(damage) = &report.damage {
        text.push_str(&format!("\n{damage}"));
    }
    text.push_str(&render_caveats(&report.caveats, view));
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ledger::export::{LedgerHead, Month};
    use ledger::{Chain, SigningKey};

    use super::*;

    #[test]
    fn total_is_taken_from_the_last_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let files = ExportDir(dir.path().to_owned());
        assert_eq!(claimed_entries(&files), None);
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let empty = LedgerHead::from(&Chain::empty());
        for (month, size) in [("2026-10", 7), ("2026-09", 3)] {
            let month: Month = month.parse().unwrap();
            let manifest = Manifest {
                instance: "x".into(),
                month,
                before: empty,
                after: LedgerHead { size, ..empty },
                sha256: empty.head,
                bytes: 0,
                previous: None,
            };
            let note = manifest.sign(&[&key]).unwrap();
            fs::write(dir.path().join(month.manifest_file_name()), note).unwrap();
        }
        assert_eq!(claimed_entries(&files), Some(7));
        fs::write(dir.path().join("ledger-2026-11.manifest"), "rubbish").unwrap();
        assert_eq!(claimed_entries(&files), None);
    }
}
