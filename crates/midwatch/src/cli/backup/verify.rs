//! `midwatch backup verify`

use api::{Code, Error};
use clap::Args;
use ledger::verify::{Anchors, Verdict};
use serde::Serialize;
use store_sqlite::Sqlite;

use super::{BackupArgs, absolute, on_files};
use crate::backup_file::{self, LEDGER_FOLDER, unwritable};
use crate::cli::ledger::{parse_keys, render_caveats};
use crate::cli::support::render::{count_of, entries};
use crate::cli::support::restore_store::{LedgerSource, restore_store};
use crate::context::Context;
use crate::directory::Directory;
use crate::storage::Storage;
use crate::view::View;

/// Try to restore a backup into a temporary directory, and check the ledger in it
///
/// Changes nothing. It needs as much space below TMPDIR as the restored installation.
#[derive(Debug, Args)]
pub(in crate::cli) struct Verify {
    #[command(flatten)]
    backup: BackupArgs,
}

#[derive(Debug, Serialize)]
struct Answer {
    backup: Verified,
}

#[derive(Debug, Serialize)]
struct Verified {
    file: String,
    version: String,
    created_at: String,
    entries: u64,
    head: String,
    outputs: u64,
    /// Key files of the installation that are not in the backup.
    left_out: Vec<String>,
    /// What was not checked, or would not work after a restore.
    caveats: Vec<String>,
}

pub(super) async fn run(context: &Context, verify: Verify) -> Result<(), Error> {
    let keys = parse_keys(&verify.backup.vkey)?;
    let file = absolute(&verify.backup.file);
    let temporary = tempfile::Builder::new().prefix("midwatch-verify-").tempdir();
    let temporary = temporary.map_err(|error| unwritable(&std::env::temp_dir(), &error))?;
    let progress = context.output.progress("unpacking");
    let (sink, backup, into) = (progress.sink(), file.clone(), temporary.path().to_owned());
    let manifest = on_files(move || backup_file::unpack(&backup, &into, &sink)).await?;
    drop(progress);

    let progress = context.output.progress("restoring");
    let restored = context.in_directory(temporary.path().to_owned());
    let directory = Directory::at(temporary.path().to_owned());
    let exports = temporary.path().join(LEDGER_FOLDER);
    let source = LedgerSource { exports, keys, settings: restored.settings(&restored.defaults()?) };
    let storage = Storage::File(directory.database());
    let (report, _) = restore_store(&directory, &storage, source, &progress.sink()).await?;
    drop(progress);

    let progress = context.output.progress("checking");
    let store = Sqlite::open_read_only(&directory.database()).map_err(runtime::store_error)?;
    let checked = runtime::verify(&store, Anchors::default(), &progress.sink()).await?;
    drop(progress);
    if checked.verdict != Verdict::Ok {
        let damage = checked.damage.map(|damage| damage.to_string()).unwrap_or_default();
        let what = format!("the restored ledger does not verify: {damage}");
        return Err(Error::new(Code::LogDamaged, what).hint("use an older backup"));
    }
    let backup = Verified {
        file: file.display().to_string(),
        version: manifest.version.clone(),
        created_at: manifest.created_at.clone(),
        entries: report.entries,
        head: report.head.to_string(),
        outputs: manifest.count_in("outputs"),
        left_out: manifest.left_out.clone(),
        caveats: report.caveats.into_iter().chain(restored.config_faults()).collect(),
    };
    context.output.say(&Answer { backup }, |answer| render(&answer.backup, &context.view));
    Ok(())
}

fn render(verified: &Verified, view: &View) -> String {
    let Verified { version, created_at, entries: count, outputs, left_out, caveats, .. } = verified;
    let outputs = count_of(*outputs, "output", "outputs");
    let keys = match left_out.is_empty() {
        true => String::new(),
        false => {
            format!("\nit has no keys: a restore needs your copies of {}", left_out.join(" and "))
        }
    };
    format!(
        "ok: a trial restore has {} and {outputs}\nwritten by version {version}, {}{keys}{}",
        entries(*count),
        view.moment(created_at),
        render_caveats(caveats, view)
    )
}
