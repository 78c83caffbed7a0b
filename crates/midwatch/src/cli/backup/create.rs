//! `midwatch backup create`
//!
//! The backup is made of files that no longer change: links to the exported ledger and to the outputs, and copies of the rest,
//! in a temporary folder of the data directory. So the daemon goes on meanwhile.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use api::{Code, Error, Exported, LedgerExport};
use calendar::format_instant;
use clap::Args;
use ledger::export::Month;
use ledger::verify::{Anchors, Report, Verdict, verify_export};
use runtime::{BACKUP_STAGING_PREFIX, Clock, ExportDir, SystemClock};
use serde::Serialize;
use tempfile::TempDir;

use super::{absolute, on_files};
use crate::access::send_with_progress;
use crate::backup_file::{
    self, BackupContent, DATA_FOLDERS, KEY_FILES, LEDGER_FOLDER, PLAIN_FILES, is_member_name,
    unwritable,
};
use crate::cli::support::render::{count_of, entries, size};
use crate::context::{Context, VERSION};

/// How often the ledger is exported again if another export replaced its files meanwhile.
const EXPORTS_MAX: u32 = 3;

/// Back up the installation into one file
///
/// The file has the ledger, the configuration, the policy and the outputs of runs. It works while the
/// daemon runs. Keys are left out unless you add `--keys`; without the signing key, a restored ledger
/// continues under a new one. Secrets that the configuration and agents refer to are never in it.
#[derive(Debug, Args)]
pub(in crate::cli) struct Create {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Include `signing.key` and `sealing.key`; keep such a file as safe as the keys themselves
    #[arg(long)]
    keys: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    backup: Created,
}

#[derive(Debug, Serialize)]
struct Created {
    file: String,
    bytes: u64,
    entries: u64,
    head: String,
    outputs: u64,
    /// Key files in the backup.
    keys: Vec<String>,
    /// Key files of the installation that are not in the backup.
    left_out: Vec<String>,
}

pub(super) async fn run(context: &Context, create: Create) -> Result<(), Error> {
    let file = absolute(&create.file);
    if fs::symlink_metadata(&file).is_ok() {
        let what = format!("`{}` exists already", file.display());
        return Err(Error::new(Code::Exists, what).hint("name a file that does not exist yet"));
    }
    let (staging, report) = stage_ledger(context).await?;
    let progress = context.output.progress("writing the backup");
    let (sink, context_copy, keys) = (progress.sink(), context.clone(), create.keys);
    let written = on_files(move || {
        let left_out = stage_files(&context_copy, staging.path(), keys)?;
        let content = BackupContent {
            root: staging.path(),
            names: list_staged(staging.path())
                .map_err(|error| unwritable(staging.path(), &error))?,
            left_out,
            version: VERSION,
            created_at: format_instant(SystemClock.now().as_micros()),
        };
        let (bytes, manifest) = backup_file::write(&content, &file, &sink)?;
        Ok((file, bytes, manifest))
    });
    let (file, bytes, manifest) = written.await?;
    drop(progress);
    let keys = KEY_FILES.into_iter().filter(|name| manifest.has_file(name));
    let backup = Created {
        file: file.display().to_string(),
        bytes,
        entries: report.entries,
        head: report.head.to_string(),
        outputs: manifest.count_in("outputs"),
        keys: keys.map(str::to_owned).collect(),
        left_out: manifest.left_out,
    };
    context.output.say(&Answer { backup }, |answer| render(&answer.backup));
    Ok(())
}

/// Exports the ledger, and links its files into a temporary folder once they verify.
async fn stage_ledger(context: &Context) -> Result<(TempDir, Report), Error> {
    let data = context.directory.path();
    for attempt in 1.. {
        let progress = context.output.progress("exporting the ledger");
        let request = LedgerExport { dir: None };
        let exported = send_with_progress(context, request, progress.sink()).await?;
        let data = data.to_owned();
        let staged = on_files(move || {
            let staging = tempfile::Builder::new().prefix(BACKUP_STAGING_PREFIX).tempdir_in(&data);
            let staging = staging.map_err(|error| unwritable(&data, &error))?;
            let folder = staging.path().join(LEDGER_FOLDER);
            link_exports(&exported, &folder).map_err(|error| unwritable(&folder, &error))?;
            let report = verify_export(&ExportDir(folder), Anchors::default(), &mut |_| {});
            let report = report.map_err(|error| unwritable(staging.path(), &error))?;
            Ok((staging, report))
        });
        let (staging, report) = staged.await?;
        match (report.verdict, &report.damage) {
            (Verdict::Ok, _) => return Ok((staging, report)),
            (_, _) if attempt < EXPORTS_MAX => {}
            (_, damage) => {
                let damage = damage.as_ref().map(ToString::to_string).unwrap_or_default();
                let what = format!("the exported ledger does not verify: {damage}");
                return Err(Error::new(Code::LogDamaged, what)
                    .hint("`midwatch ledger verify` checks the ledger; no backup was written"));
            }
        }
    }
    Err(Error::new(Code::Failed, "the ledger was not exported"))
}

fn link_exports(exported: &Exported, folder: &Path) -> io::Result<()> {
    create_folder(folder)?;
    let from = Path::new(&exported.dir);
    for export in &exported.exports {
        let month: Month = export.month.parse().map_err(io::Error::other)?;
        for name in [month.lines_file_name(), month.manifest_file_name()] {
            link(&from.join(&name), &folder.join(&name))?;
        }
    }
    Ok(())
}

/// Adds everything but the ledger. Returns the key files that were left out.
fn stage_files(context: &Context, staging: &Path, with_keys: bool) -> Result<Vec<String>, Error> {
    let data = context.directory.path();
    for name in PLAIN_FILES {
        // The configuration may be elsewhere, and both it and the policy may be links.
        let from = match name {
            "midwatch.toml" => context.config_path(),
            name => data.join(name),
        };
        copy_file(&from, &staging.join(name)).map_err(|error| unwritable(&from, &error))?;
    }
    for folder in DATA_FOLDERS {
        let (from, to) = (data.join(folder), staging.join(folder));
        link_folder(&from, &to, folder).map_err(|error| unwritable(&from, &error))?;
    }
    let mut left_out = Vec::new();
    for name in KEY_FILES {
        let from = data.join(name);
        match with_keys {
            true => {
                copy_file(&from, &staging.join(name)).map_err(|error| unwritable(&from, &error))?;
            }
            false if from.exists() => left_out.push(name.to_owned()),
            false => {}
        }
    }
    Ok(left_out)
}

/// Copies a file if it exists.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match files::open_linked(from) {
        Ok(source) => source,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    io::copy(&mut source, &mut files::create(to)?).map(drop)
}

/// Links the files of a folder, if it exists. Names that cannot be in a backup are not ours.
fn link_folder(from: &Path, to: &Path, folder: &str) -> io::Result<()> {
    let found = match fs::read_dir(from) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    create_folder(to)?;
    for entry in found {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_file() && member_name(folder, &name).is_some() {
            match link(&entry.path(), &to.join(&name)) {
                // The daemon removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                linked => linked?,
            }
        }
    }
    Ok(())
}

/// Gives a file another name, so that it stays if the first name is removed. Copies it where that is not possible.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => copy_file(from, to),
        linked => linked,
    }
}

/// The names of all staged files, as the backup has them.
fn list_staged(staging: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in [""].into_iter().chain([LEDGER_FOLDER]).chain(DATA_FOLDERS) {
        let path = staging.join(folder);
        if !path.exists() {
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path)? {
            found.extend(member_name(folder, &entry?.file_name()));
        }
        found.sort();
        names.append(&mut found);
    }
    Ok(names)
}

/// The name in the backup of a file in a folder; `None` if it cannot be in one.
fn member_name(folder: &str, file: &OsStr) -> Option<String> {
    let file = file.to_str()?;
    let name = if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
    is_member_name(&name).then_some(name)
}

fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn render(created: &Created) -> String {
    let Created { file, bytes, entries: count, outputs, keys, left_out, .. } = created;
    let outputs = count_of(*outputs, "output", "outputs");
    let first = format!("backed up {} and {outputs} to {file} ({})", entries(*count), size(*bytes));
    let keys = match (keys.is_empty(), left_out.is_empty()) {
        (false, _) => format!("\nit has the keys ({}): keep it secret", keys.join(", ")),
        (true, false) => {
            format!("\nit has no keys: keep copies of {} elsewhere", left_out.join(" and "))
        }
        (true, true) => String::new(),
    };
    format!("{first}{keys}\n`midwatch backup verify {file}` tries to restore it")
}
