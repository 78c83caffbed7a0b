//! `midwatch ledger …`

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{
    Code, Error, LedgerCheckpoint, LedgerExport, LedgerRebuild, ProgressSink, TablesRebuilt,
};
use clap::{Args, Subcommand};
use ledger::VerifyingKey;
use ledger::export::{MANIFEST_BYTES_MAX, Manifest};
use ledger::verify::{Anchors, ExportFiles, KEYS_MAX, Report, Verdict, verify_export};
use runtime::{ExportDir, RestoredKey, SystemClock, forget_damage, last_note, report_unreadable};
use serde::Serialize;
use store_postgres::Postgres;
use store_sqlite::Sqlite;

use super::restoring::Restoring;
use super::{tail, unreadable};
use crate::access::{ask, ask_with_progress, held, no_watch};
use crate::context::Context;
use crate::output::{counted, entries, table};
use crate::storage::Storage;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the newest events, or those after a place
    Tail(tail::Tail),
    /// Verify the log, or exported files, without changing anything
    Verify(Verify),
    /// Write the log to files, one pair for each month
    Export {
        /// Where to [default: exports in the data directory]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Sign the log as it is now, and print the signed note
    Checkpoint,
    /// Make every derived table anew from the log
    Rebuild(Rebuild),
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Verify exported files instead of a data directory
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    #[command(flatten)]
    known: Known,
}

/// What is known from elsewhere.
#[derive(Debug, Args)]
struct Known {
    /// The public key that must have signed it; give each if there were several [default: those
    /// that the log names]
    #[arg(long, value_name = "KEY")]
    vkey: Vec<String>,
    /// A file with checkpoints, kept elsewhere, all of which must fit it
    #[arg(long, value_name = "FILE")]
    expect_checkpoint: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Rebuild {
    /// Recreate the whole data directory from exported files
    #[arg(long, value_name = "DIR")]
    from_export: Option<PathBuf>,
    /// The public key that must have signed them; give each if there were several [default: those
    /// that the log names]
    #[arg(long, value_name = "KEY", requires = "from_export")]
    vkey: Vec<String>,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Tail(tail) => tail::run(context, tail).await?,
        Command::Verify(verify) => return self::verify(context, verify).await,
        Command::Export { dir } => export(context, dir).await?,
        Command::Checkpoint => {
            let answer = ask(context, LedgerCheckpoint {}).await?;
            context.output.show(&answer, |answer| answer.checkpoint.note.clone());
        }
        Command::Rebuild(Rebuild { from_export: Some(dir), vkey }) => {
            restore(context, dir, vkey).await?;
        }
        Command::Rebuild(Rebuild { from_export: None, .. }) => rebuild(context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn verify(context: &Context, verify: Verify) -> Result<ExitCode, Error> {
    let progress = context.output.progress("verifying");
    let report = match &verify.export {
        Some(dir) => verify_files(dir, verify.known.anchors()?, &progress.sink())?,
        None => verify_directory(context, &verify.known, &progress.sink()).await?,
    };
    drop(progress);
    context.output.show(&report, page);
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

/// How many entries the last manifest speaks of, if it can be read; for the progress bar only.
fn claimed_entries(files: &ExportDir) -> Option<u64> {
    let names = files.names().ok()?.into_iter();
    // The names sort as the months do.
    let last = names.filter(|name| name.ends_with(".manifest")).max()?;
    let mut note = String::new();
    files.open(&last).ok()?.take(MANIFEST_BYTES_MAX as u64).read_to_string(&mut note).ok()?;
    Manifest::peek(&note).ok().map(|manifest| manifest.after.size)
}

/// Beside a daemon that goes on writing, or without one; nothing is changed either way.
async fn verify_directory(
    context: &Context,
    known: &Known,
    progress: &ProgressSink,
) -> Result<Report, Error> {
    let storage = context.storage()?;
    if storage.is_missing(&context.directory)? {
        return Err(no_watch(&context.directory));
    }
    let path = match &storage {
        Storage::File(path) => path,
        Storage::Database(target) => {
            let store = Postgres::open_read_only(target).await.map_err(runtime::store_error)?;
            return runtime::verify(&store, known.anchors()?, progress).await;
        }
    };
    loop {
        // Read before the log, so that no checkpoint in it is ahead of a log that grows.
        let anchors = known.anchors()?;
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

impl Known {
    fn anchors(&self) -> Result<Anchors, Error> {
        let checkpoints = match &self.expect_checkpoint {
            None => None,
            Some(path) => {
                let failed = |error| unreadable("checkpoint file", path, error);
                let missing = || io::Error::from(io::ErrorKind::NotFound);
                let last = last_note(path).map_err(failed)?;
                last.ok_or_else(|| unreadable("checkpoint in", path, missing()))?;
                runtime::notes(path).map_err(failed)?
            }
        };
        Ok(Anchors { keys: keys(&self.vkey)?, checkpoints })
    }
}

fn keys(vkeys: &[String]) -> Result<Vec<VerifyingKey>, Error> {
    if KEYS_MAX < vkeys.len() {
        let what = format!("{} keys were given, and a log has at most {KEYS_MAX}", vkeys.len());
        return Err(Error::new(Code::InvalidInput, what).hint("give those of this log only"));
    }
    vkeys.iter().map(|vkey| VerifyingKey::parse(vkey)).collect::<Result<_, _>>().map_err(|error| {
        Error::new(Code::InvalidInput, format!("the key is not a public key: {error}"))
            .hint("`midwatch status` shows the public key of a log")
    })
}

fn page(report: &Report) -> String {
    let mut text = match report.verdict {
        Verdict::Ok => format!(
            "ok: {}, {}, head {}",
            entries(report.entries),
            counted(report.checkpoints, "signature", "signatures"),
            report.head
        ),
        Verdict::Tampered => format!("TAMPERED after {}", good(report)),
        Verdict::Truncated => format!("TRUNCATED after {}", good(report)),
        Verdict::Unreadable => format!("UNREADABLE after {}", good(report)),
    };
    if let Some(damage) = &report.damage {
        let file = damage.file.as_ref().map_or_else(String::new, |file| format!(" in {file}"));
        let entry = damage.seq.map_or_else(String::new, |seq| format!(" at entry {seq}"));
        text.push_str(&format!("\n{}{entry}{file}", damage.what));
    }
    text.push_str(&notes(&report.caveats));
    text
}

fn notes(caveats: &[String]) -> String {
    caveats.iter().map(|caveat| format!("\nnote: {caveat}")).collect()
}

fn good(report: &Report) -> String {
    counted(report.entries, "good entry", "good entries")
}

async fn export(context: &Context, dir: Option<PathBuf>) -> Result<(), Error> {
    // The daemon may have another working directory.
    let dir = dir.map(|dir| std::path::absolute(&dir).unwrap_or(dir));
    let dir = dir.map(|dir| dir.into_os_string().into_string()).transpose().map_err(|dir| {
        let what = format!("the path {dir:?} is not text");
        Error::new(Code::InvalidInput, what).hint("name a directory whose path is UTF-8")
    })?;
    let progress = context.output.progress("exporting");
    let request = LedgerExport { dir };
    let answer = ask_with_progress(context, request, progress.sink()).await?;
    drop(progress);
    context.output.show(&answer, |answer| {
        let rows = answer.exports.iter().map(|export| {
            let entries = format!("{}–{}", export.first, export.last);
            let state = if export.written { "written" } else { "there already" };
            [export.month.clone(), entries, export.file.clone(), state.to_owned()]
        });
        format!("{}\nin {}", table(["MONTH", "ENTRIES", "FILE", ""], rows), answer.dir)
    });
    Ok(())
}

async fn rebuild(context: &Context) -> Result<(), Error> {
    let progress = context.output.progress("rebuilding");
    let answer = ask_with_progress(context, LedgerRebuild {}, progress.sink()).await?;
    drop(progress);
    context.output.show(&answer, |TablesRebuilt { rebuilt }| {
        let found = match rebuilt.differences {
            0 => "the tables were what the log says".to_owned(),
            count => format!("{} not what the log says", counted(count, "was", "were")),
        };
        let rows = counted(rebuilt.rows, "row", "rows");
        format!("made {rows} from {}; {found}", entries(rebuilt.entries))
    });
    Ok(())
}

#[derive(Debug, Serialize)]
struct Restored {
    entries: u64,
    head: String,
    /// False: a new key was made, and an event tells of it.
    key_kept: bool,
    /// The new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_key: Option<String>,
    caveats: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RestoredAnswer {
    restored: Restored,
}

async fn restore(context: &Context, dir: PathBuf, vkeys: Vec<String>) -> Result<(), Error> {
    let directory = &context.directory;
    directory.create()?;
    let lock = directory.try_lock()?.ok_or_else(|| held(directory))?;
    let storage = context.storage()?;
    let keys = keys(&vkeys)?;
    let progress = context.output.progress("recreating");
    let settings = context.settings(&context.load_config()?.config);
    let anchors = Anchors { keys, checkpoints: None };
    let (clock, sink, exports) = (SystemClock, progress.sink(), ExportDir(dir));
    // Every entry was verified; what was said of another log is not said of this one.
    let data = directory.path();
    let forget = || forget_damage(data).map_err(|error| unreadable("verdict in", data, error));
    let (report, key) = match &storage {
        Storage::File(_) => {
            let restoring = Restoring::begin(directory)?;
            let store = restoring.open()?;
            let done =
                runtime::restore(&store, &clock, &settings, &exports, anchors, &sink).await?;
            forget()?;
            restoring.finish(store).await?;
            done
        }
        Storage::Database(target) => {
            let store = Postgres::open(target).await.map_err(runtime::store_error)?;
            let done =
                runtime::restore(&store, &clock, &settings, &exports, anchors, &sink).await?;
            forget()?;
            done
        }
    };
    drop((progress, lock));
    let new_key = match key {
        RestoredKey::Kept => None,
        RestoredKey::Replaced { new } => Some(new),
    };
    let answer = RestoredAnswer {
        restored: Restored {
            entries: report.entries,
            head: report.head.to_string(),
            key_kept: new_key.is_none(),
            new_key,
            caveats: report.caveats,
        },
    };
    context.output.show(&answer, |RestoredAnswer { restored }| {
        let key = match &restored.new_key {
            None => "its signing key was there".to_owned(),
            Some(new) => format!(
                "its signing key was not there: a new one was made, and the log says so\n\
                 public key: {new}"
            ),
        };
        format!("recreated {}; {key}{}", entries(restored.entries), notes(&restored.caveats))
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ledger::export::{End, Month};
    use ledger::{Chain, SigningKey};

    use super::*;

    #[test]
    fn the_last_manifest_says_how_many_entries_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let files = ExportDir(dir.path().to_owned());
        assert_eq!(claimed_entries(&files), None);
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let empty = End::from(&Chain::empty());
        for (month, size) in [("2026-10", 7), ("2026-09", 3)] {
            let month: Month = month.parse().unwrap();
            let manifest = Manifest {
                instance: "x".into(),
                month,
                before: empty,
                after: End { size, ..empty },
                sha256: empty.head,
                bytes: 0,
                previous: None,
            };
            let note = manifest.sign(&[&key]).unwrap();
            fs::write(dir.path().join(month.manifest_name()), note).unwrap();
        }
        assert_eq!(claimed_entries(&files), Some(7));
        fs::write(dir.path().join("ledger-2026-11.manifest"), "rubbish").unwrap();
        assert_eq!(claimed_entries(&files), None);
    }
}
