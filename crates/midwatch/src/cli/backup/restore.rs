//! `midwatch backup restore`
//!
//! Everything is unpacked and restored in a temporary folder of the target directory, and moved up when it is complete. So a
//! failure leaves the directory empty, as it was.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use api::{AgentList, Code, Error, LIST_ITEMS_MAX, StatusShow};
use clap::Args;
use kernel::backend::SecretRef;
use runtime::RestoredKey;
use serde::Serialize;
use tempfile::TempDir;

use super::{BackupArgs, absolute, on_files};
use crate::access::{directory_in_use, send};
use crate::backup_file::{self, LEDGER_FOLDER, Manifest, unwritable};
use crate::cli::ledger::{parse_keys, render_caveats};
use crate::cli::support::render::{count_of, entries};
use crate::cli::support::restore_store::{LedgerSource, restore_store};
use crate::context::Context;
use crate::directory::{Directory, Lock};
use crate::secret;
use crate::storage::Storage;
use crate::view::View;

/// What an empty directory may have: the file of a lock, and the folder of a disk's own.
const IGNORED_NAMES: [&str; 2] = ["lock", "lost+found"];
/// The database comes last, because a directory without it has no installation.
const DATABASE: &str = "midwatch.db";

/// Restore a backup into an empty data directory
///
/// `--data DIR` names the directory. If the configuration in the backup names a database, that must be
/// empty too; `--store ''` restores into a file instead. Make sure that the old installation does not
/// run any more before you start the restored one.
#[derive(Debug, Args)]
pub(in crate::cli) struct Restore {
    #[command(flatten)]
    backup: BackupArgs,
}

#[derive(Debug, Serialize)]
struct Answer {
    restored: Restored,
}

#[derive(Debug, Serialize)]
struct Restored {
    data: String,
    entries: u64,
    head: String,
    outputs: u64,
    /// False: a new signing key was created, and an event records it.
    key_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_key: Option<String>,
    /// Key files of the old installation that are not in the backup.
    missing_keys: Vec<String>,
    /// The secrets that the restored installation refers to.
    secrets: Vec<Secret>,
    /// Approvals that were requested in the old directory.
    approvals: Vec<String>,
    caveats: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Secret {
    /// Such as `env:NAME`.
    reference: String,
    used_by: String,
    /// Whether this command can read it.
    found: bool,
}

pub(super) async fn run(context: &Context, restore: Restore) -> Result<(), Error> {
    let keys = parse_keys(&restore.backup.vkey)?;
    let target = EmptyDirectory::claim(&context.directory)?;
    let staging = target.stage()?;

    let progress = context.output.progress("unpacking");
    let (sink, file, into) =
        (progress.sink(), absolute(&restore.backup.file), staging.path().to_owned());
    let manifest = on_files(move || backup_file::unpack(&file, &into, &sink)).await?;
    drop(progress);

    let progress = context.output.progress("restoring");
    let staged = context.in_directory(staging.path().to_owned());
    let config = staged.load_config()?.config;
    let exports = staging.path().join(LEDGER_FOLDER);
    let source = LedgerSource { exports, keys, settings: staged.settings(&config) };
    let storage = Storage::of(&staged, &config)?;
    let (report, key) =
        restore_store(&staged.directory, &storage, source, &progress.sink()).await?;
    target.accept(staging)?;
    drop(progress);

    let new_key = match key {
        RestoredKey::Kept => None,
        RestoredKey::Replaced { new } => Some(new),
    };
    let restored = Restored {
        data: context.directory.path().display().to_string(),
        entries: report.entries,
        head: report.head.to_string(),
        outputs: manifest.count_in("outputs"),
        key_kept: new_key.is_none(),
        new_key,
        missing_keys: manifest.left_out.clone(),
        secrets: list_secrets(context).await,
        approvals: list_old_approvals(context, &storage).await,
        caveats: report.caveats.into_iter().chain(context.config_faults()).collect(),
    };
    context
        .output
        .say(&Answer { restored }, |answer| render(&answer.restored, &manifest, &context.view));
    Ok(())
}

/// A directory without an installation, locked by this process. Emptied again when dropped, unless it has accepted a restored
/// installation.
#[derive(Debug)]
struct EmptyDirectory {
    path: PathBuf,
    was_created: bool,
    is_accepted: bool,
    _lock: Lock,
}

impl EmptyDirectory {
    fn claim(directory: &Directory) -> Result<EmptyDirectory, Error> {
        let path = directory.path();
        let was_created = !path.exists();
        directory.create()?;
        // A lock leaves a file, so a directory of something else is refused before.
        refuse_content(path)?;
        let lock = directory.try_lock()?.ok_or_else(|| directory_in_use(directory))?;
        refuse_content(path)?;
        let path = path.to_owned();
        Ok(EmptyDirectory { path, was_created, is_accepted: false, _lock: lock })
    }

    fn stage(&self) -> Result<TempDir, Error> {
        let staging = tempfile::Builder::new().prefix("restore-").tempdir_in(&self.path);
        staging.map_err(|error| unwritable(&self.path, &error))
    }

    /// Moves everything up but the exported ledger, which is in the store now.
    fn accept(mut self, staging: TempDir) -> Result<(), Error> {
        self.move_up(staging.path()).map_err(|error| unwritable(&self.path, &error))?;
        self.is_accepted = true;
        Ok(())
    }

    fn move_up(&self, staging: &Path) -> io::Result<()> {
        fs::remove_dir_all(staging.join(LEDGER_FOLDER))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(staging)? {
            names.push(entry?.file_name());
        }
        names.sort_by_key(|name| name == OsStr::new(DATABASE));
        for name in names {
            fs::rename(staging.join(&name), self.path.join(&name))?;
        }
        fs::File::open(&self.path)?.sync_all()
    }
}

fn refuse_content(path: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(path).map_err(|error| unwritable(path, &error))? {
        let name = entry.map_err(|error| unwritable(path, &error))?.file_name();
        if !IGNORED_NAMES.iter().any(|ignored| name == OsStr::new(ignored)) {
            let name = name.to_string_lossy();
            let what = format!("`{}` is not empty: it has `{name}`", path.display());
            return Err(Error::new(Code::Exists, what)
                .hint("name an empty or new directory with `--data DIR`"));
        }
    }
    Ok(())
}

impl Drop for EmptyDirectory {
    fn drop(&mut self) {
        if self.is_accepted {
            return;
        }
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            let _ = match entry.file_name() == OsStr::new("lost+found") {
                true => Ok(()),
                false if path.is_dir() => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
        }
        if self.was_created {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The secrets that the configuration and the agents refer to. None if the installation cannot be opened, which `up` explains.
async fn list_secrets(context: &Context) -> Vec<Secret> {
    let Ok(config) = context.load_config().map(|loaded| loaded.config) else { return Vec::new() };
    let mut secrets = Vec::new();
    let mut add = |reference: String, used_by: String| {
        let parsed = reference.parse::<SecretRef>().ok();
        let found = parsed.is_some_and(|it| secret::read(&it, "", context).is_ok());
        secrets.push(Secret { reference, used_by, found });
    };
    for (key, reference) in
        [("store.password", config.store.password), ("notice.token", config.notice.token)]
    {
        if let Some(reference) = reference {
            add(reference.to_string(), format!("`{key}`"));
        }
    }
    let list = AgentList { limit: Some(LIST_ITEMS_MAX), ..AgentList::default() };
    for agent in send(context, list).await.map(|list| list.agents).unwrap_or_default() {
        let variables = agent.settings.env.iter().map(|name| format!("env:{name}"));
        for reference in agent.settings.credential.clone().into_iter().chain(variables) {
            add(reference, format!("agent `{}`", agent.name));
        }
    }
    secrets
}

/// The pending approvals, if they are bound to the directory in which they were requested.
async fn list_old_approvals(context: &Context, storage: &Storage) -> Vec<String> {
    match storage {
        Storage::File(_) => {
            send(context, StatusShow {}).await.map(|it| it.approvals).unwrap_or_default()
        }
        Storage::Database(_) => Vec::new(),
    }
}

fn render(restored: &Restored, manifest: &Manifest, view: &View) -> String {
    let outputs = count_of(restored.outputs, "output", "outputs");
    let mut lines = vec![format!(
        "restored {} and {outputs} into {}, as of {}",
        entries(restored.entries),
        restored.data,
        view.moment(&manifest.created_at)
    )];
    lines.extend(restored.new_key.as_ref().map(|new| {
        format!(
            "the backup has no signing key, so a new one was created and recorded in the ledger\n\
             public key: {new}"
        )
    }));
    if restored.missing_keys.iter().any(|name| name == "sealing.key") {
        let line = "the backup has no sealing key: sensitive schedules fail until you put your copy of \
                    `sealing.key` into the directory";
        lines.push(line.to_owned());
    }
    if !restored.secrets.is_empty() {
        lines.push(
            "secrets are never in a backup; the daemon must be able to read these:".to_owned(),
        );
        lines.extend(restored.secrets.iter().map(|secret| {
            let found = if secret.found { "found" } else { "MISSING here" };
            format!("  {} for {} ({found})", secret.reference, secret.used_by)
        }));
    }
    if !restored.approvals.is_empty() {
        let waiting = count_of(restored.approvals.len() as u64, "run waits", "runs wait");
        lines.push(format!(
            "{waiting} for approval, but approvals are valid only in the old directory: deny them, and \
             start the runs again with `midwatch run retry RUN`"
        ));
    }
    lines.push(format!(
        "make sure that the old installation is stopped, then: `midwatch up --data {}`",
        restored.data
    ));
    format!("{}{}", lines.join("\n"), render_caveats(&restored.caveats, view))
}
