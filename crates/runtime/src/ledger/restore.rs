//! Recreates a data directory from exported files.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use api::{Code, Error, ProgressSink};
use kernel::installation::{Event as InstallationEvent, KeyReplaced};
use kernel::{Actor, EventBody};
use ledger::export::{LineReader, gunzip};
use ledger::verify::{Anchors, ExportFiles, Report, Verdict, entry_files, verify_export};
use store::{Page, Store};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::clock::{Clock, now_of};
use crate::commit::identity::{commit_identity, identity};
use crate::errors::{self, internal};
use crate::installation::Settings;
use crate::ledger::rebuild::rebuild;
use crate::secrets::key_files;

/// Pages read ahead of the store.
const PAGES_AHEAD_MAX: usize = 4;

/// A directory with exported files.
#[derive(Clone, Debug)]
pub struct ExportDir(pub PathBuf);

impl ExportFiles for ExportDir {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(BufReader::new(files::open_linked(&self.0.join(name))?)))
    }
}

/// Which signing key a restored ledger has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoredKey {
    /// The key that signed the exports is in the data directory.
    Kept,
    /// That key is missing, so a new one was created. An event records it.
    Replaced { new: String },
}

/// Fills an empty store from verified exports, and makes sure that the ledger has a signing key.
pub async fn restore(
    store: &dyn Store,
    clock: &dyn Clock,
    settings: &Settings,
    exports: &ExportDir,
    anchors: Anchors,
    progress: &ProgressSink,
) -> Result<(Report, RestoredKey), Error> {
    if store.head().await.map_err(errors::store)?.size() != 0 {
        return Err(
            Error::new(Code::Exists, "the target store is not empty").hint("choose an empty store")
        );
    }
    let files = exports.clone();
    let verified = spawn_blocking(move || verify_export(&files, anchors, &mut |_| {}));
    let report = verified.await.map_err(internal)?.map_err(|error| unreadable(exports, error))?;
    if report.verdict != Verdict::Ok {
        let what =
            report.damage.as_ref().map_or("it has no entries", |damage| damage.what.as_str());
        let what = format!("the export `{}` cannot be trusted: {what}", exports.0.display());
        return Err(Error::new(Code::LogDamaged, what).hint(
            "`midwatch ledger verify --export DIR` shows the details; nothing was restored",
        ));
    }
    append_entries(store, exports, report.entries, progress).await?;
    let actor = Actor::system();
    rebuild(store, &actor, clock.now(), "recreated from exports", &ProgressSink::default()).await?;
    let key = adopt_key(store, clock, settings).await?;
    Ok((report, key))
}

async fn append_entries(
    store: &dyn Store,
    exports: &ExportDir,
    total: u64,
    progress: &ProgressSink,
) -> Result<(), Error> {
    let (pages, mut queue) = mpsc::channel(PAGES_AHEAD_MAX);
    let exports = exports.clone();
    let reader = spawn_blocking(move || read_pages(&exports, &pages));
    while let Some(page) = queue.recv().await {
        let page: Page = page;
        let last = page.last_seq().unwrap_or_default();
        store.append_entries(page).await.map_err(errors::store)?;
        progress.show(last, total);
    }
    reader.await.map_err(internal)?
}

fn read_pages(exports: &ExportDir, pages: &mpsc::Sender<Page>) -> Result<(), Error> {
    let failed = |error| unreadable(exports, error);
    for name in entry_files(exports).map_err(failed)? {
        let mut lines = LineReader::new(gunzip(exports.open(&name).map_err(failed)?));
        let mut page = Page::default();
        while let Some(line) = lines.next().map_err(internal)? {
            page.push(&line.entry_ref());
            if page.is_full() && pages.blocking_send(std::mem::take(&mut page)).is_err() {
                return Ok(());
            }
        }
        if !page.is_empty() && pages.blocking_send(page).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Uses the key in the data directory if it is the right one, and creates a new key if there is none.
async fn adopt_key(
    store: &dyn Store,
    clock: &dyn Clock,
    settings: &Settings,
) -> Result<RestoredKey, Error> {
    let unknown = || internal("the ledger does not name its installation");
    let identity = identity(store).await?.ok_or_else(unknown)?;
    match key_files::read(&settings.data)? {
        Some(key) if key.verifying_key().to_text() == identity.key => Ok(RestoredKey::Kept),
        Some(_) => {
            let path = key_files::path(&settings.data);
            let what = format!("`{}` is not the signing key of this ledger", path.display());
            Err(Error::new(Code::KeyMissing, what)
                .hint("put the right key there, or move this one away to get a new key"))
        }
        None => {
            let key = key_files::create(&settings.data, &identity.instance)?;
            let new = key.verifying_key().to_text();
            let replaced = KeyReplaced { old: identity.key, new: new.clone() };
            let body = EventBody::Installation(
                identity.instance,
                InstallationEvent::KeyReplaced(replaced),
            );
            commit_identity(store, now_of(store, clock), body).await?;
            Ok(RestoredKey::Replaced { new })
        }
    }
}

fn unreadable(exports: &ExportDir, error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::Failed,
    };
    Error::new(code, format!("the export `{}` cannot be read: {error}", exports.0.display()))
}
