//! Signed checkpoints of the ledger: each is stored, appended to a file in the data directory, and appended to a copy
//! elsewhere.
//!
//! Both files hold one signed note after the other. A reader skips a note that a crash cut off.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::{CheckpointMade, Code, Error};
use ledger::verify::{CheckpointReader, SignedCheckpoint, Verdict};
use ledger::{Chain, Checkpoint, open_checkpoint, sign_checkpoint};
use store::Store;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::damage::WriteGuard;
use crate::errors;
use crate::installation::Installation;
use crate::installation::Settings;
use crate::ledger::integrity_check::IntegrityCheck;

/// The copy of the signed checkpoints beside the ledger.
pub const CHECKPOINTS_FILE: &str = "checkpoints.log";
/// A checkpoint is signed after this many entries …
pub(crate) const CHECKPOINT_ENTRIES: u64 = 1_000;
/// … or this long after the first entry without one …
pub(crate) const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);
/// … but not more often than this.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);
/// How much of the end of a file is searched for its last note; many notes fit into it.
const TAIL_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct Checkpoints {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) write_guard: Arc<WriteGuard>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) integrity: Arc<IntegrityCheck>,
    /// Locked while a checkpoint is signed, so that no size is signed twice.
    pub(crate) signing: tokio::sync::Mutex<()>,
    /// Set once the copy elsewhere is known to belong to this ledger.
    pub(crate) copy_confirmed: tokio::sync::OnceCell<()>,
    /// Whether the last checkpoint reached the copy elsewhere.
    pub(crate) is_copied: AtomicBool,
}

impl Checkpoints {
    pub(crate) async fn run(&self) {
        let mut signed = 0;
        loop {
            self.store.wait_for_entries_after(signed).await;
            // Whichever comes first: enough entries, or enough time.
            let many = self.store.wait_for_entries_after(signed + CHECKPOINT_ENTRIES - 1);
            let _ = timeout(CHECKPOINT_AFTER, many).await;
            match self.create().await {
                Ok(created) => signed = created.checkpoint.size,
                Err(failed) => warn!(%failed, "failed to sign a checkpoint"),
            }
            sleep(CHECKPOINT_PAUSE).await;
        }
    }

    /// Whether the last checkpoint reached the copy elsewhere, if one is configured.
    pub(crate) fn is_copied(&self) -> Option<bool> {
        let copy = self.installation.settings.checkpoint_copy.as_ref();
        copy.map(|_| self.is_copied.load(Ordering::Relaxed))
    }

    /// Signs the ledger, unless its size was signed already.
    pub(crate) async fn create(&self) -> Result<CheckpointMade, Error> {
        let _one_at_a_time = self.signing.lock().await;
        self.write_guard.check()?;
        let store = &*self.store;
        let chain = store.head().await.map_err(errors::store)?;
        let last = store.last_checkpoint().await.map_err(errors::store)?;
        if let Some(last) = last.filter(|last| last.chain.size() == chain.size()) {
            return Ok(wire(&last.chain, last.note));
        }
        let copy = self.confirmed_copy().await?;
        let origin = Checkpoint::origin_of(&self.installation.instance);
        let checkpoint = Checkpoint { origin, size: chain.size(), root: chain.root() };
        let note = sign_checkpoint(&checkpoint, &[&self.installation.signing_key]);
        let stored = store::Checkpoint { chain: chain.clone(), note: note.clone() };
        store.save_checkpoint(stored).await.map_err(errors::store)?;
        self.append_to_files(note.clone(), copy).await;
        Ok(wire(&chain, note))
    }

    /// Logs a warning if a file cannot be written: the store has the checkpoint.
    async fn append_to_files(&self, note: String, copy: Option<PathBuf>) {
        let own = self.installation.settings.data.join(CHECKPOINTS_FILE);
        let appended = spawn_blocking(move || {
            append_or_warn(&own, &note);
            copy.is_some_and(|copy| append_or_warn(&copy, &note))
        });
        let is_copied = appended.await.unwrap_or_else(|error| {
            warn!(%error, "failed to copy a checkpoint");
            false
        });
        self.is_copied.store(is_copied, Ordering::Relaxed);
    }

    /// The copy elsewhere, if one is configured. Before this process first appends to it, it checks that the copy does not
    /// contradict this ledger.
    async fn confirmed_copy(&self) -> Result<Option<PathBuf>, Error> {
        let Some(copy) = &self.installation.settings.checkpoint_copy else { return Ok(None) };
        match self.copy_confirmed.get_or_try_init(|| self.confirm_copy(copy)).await {
            Ok(()) => Ok(Some(copy.clone())),
            Err(error) if matches!(error.code, Code::LogDamaged | Code::LogRewound) => Err(error),
            Err(error) => {
                warn!(path = %copy.display(), %error, "failed to copy a checkpoint");
                Ok(None)
            }
        }
    }

    /// Checks that the last note of the copy is of this ledger. The store usually has the same note; after a restore it
    /// does not, and then the whole ledger is verified.
    async fn confirm_copy(&self, copy: &Path) -> Result<(), Error> {
        let note = read_last_note(copy).map_err(|error| unreadable(copy, error))?;
        let Some(note) = note else { return Ok(()) };
        let size = self.store.head().await.map_err(errors::store)?.size();
        if size < note.unverified().size {
            return Err(rewound(copy, size, &note));
        }
        if matches_stored(&*self.store, &note).await? == Some(true) {
            return Ok(());
        }
        let report = self.integrity.verify().await?;
        match (report.verdict, report.damage) {
            (Verdict::Ok, _) => Ok(()),
            (_, damage) => {
                let what = damage.map_or_else(String::new, |damage| damage.what);
                Err(errors::store(store::Error::Damaged(what)))
            }
        }
    }
}

fn wire(chain: &Chain, note: String) -> CheckpointMade {
    let (size, root) = (chain.size(), chain.root().to_string());
    CheckpointMade { checkpoint: api::Checkpoint { size, root, note } }
}

/// Returns whether the note was appended.
fn append_or_warn(path: &Path, note: &str) -> bool {
    let appended = append(path, note);
    if let Err(error) = &appended {
        warn!(path = %path.display(), %error, "failed to copy a checkpoint");
    }
    appended.is_ok()
}

fn append(path: &Path, note: &str) -> io::Result<()> {
    let mut file = files::append(path)?;
    file.write_all(note.as_bytes())?;
    file.sync_data()
}

/// Checks before the first write that no checkpoint file is of a longer ledger, or of another one as far as stored
/// checkpoints show. A ledger that is known to be damaged is only read, and not checked.
pub(crate) async fn check_not_rewound(store: &dyn Store, settings: &Settings) -> Result<(), Error> {
    if store.write_stop_reason().is_some() {
        return Ok(());
    }
    let size = store.head().await.map_err(errors::store)?.size();
    let own = settings.data.join(CHECKPOINTS_FILE);
    for path in [Some(&own), settings.checkpoint_copy.as_ref()].into_iter().flatten() {
        let note = read_last_note(path).map_err(|error| unreadable(path, error))?;
        let Some(note) = note else { continue };
        if size < note.unverified().size {
            return Err(rewound(path, size, &note));
        }
        if matches_stored(store, &note).await? == Some(false) {
            let (size, path) = (note.unverified().size, path.display());
            store.stop_writing(format!(
                "it does not match the checkpoint of {size} entries in `{path}`: it was rewritten or \
                 replaced"
            ));
        }
    }
    Ok(())
}

/// Whether the stored checkpoint of the same size equals a note. `None` if none is stored.
async fn matches_stored(store: &dyn Store, note: &SignedCheckpoint) -> Result<Option<bool>, Error> {
    let size = note.unverified().size;
    let stored = store.checkpoint_notes(size.saturating_sub(1), 1).await.map_err(errors::store)?;
    let same_size = stored.into_iter().find(|(stored, _)| *stored == size);
    Ok(same_size.map(|(_, stored)| {
        SignedCheckpoint::parse(&stored).is_ok_and(|it| it.unverified() == note.unverified())
    }))
}

/// Checks before the first write that the newest stored checkpoint is of this ledger and signed with its key.
pub(crate) async fn check_newest(
    store: &dyn Store,
    installation: &Installation,
) -> Result<(), Error> {
    let keys = [installation.signing_key.verifying_key().clone()];
    if let Some(last) = store.last_checkpoint().await.map_err(errors::store)? {
        let signed = open_checkpoint(&last.note, &keys).map_err(|error| error.to_string());
        let same = signed.map(|it| it.root == last.chain.root() && it.size == last.chain.size());
        if same != Ok(true) {
            let why = same.err().unwrap_or("it has another root".to_owned());
            store.stop_writing(format!("the newest checkpoint does not match the ledger: {why}"));
        }
    }
    Ok(())
}

pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    let what = format!("the checkpoint file `{}` cannot be read: {error}", path.display());
    Error::new(Code::Failed, what).hint(
        "make it readable for this user; \
         `checkpoint_copy` under `[ledger]` sets the path of the copy elsewhere",
    )
}

fn rewound(path: &Path, size: u64, note: &SignedCheckpoint) -> Error {
    let what = format!(
        "the ledger has {size} entries, but `{}` has a checkpoint of {}",
        path.display(),
        note.unverified().size
    );
    Error::new(Code::LogRewound, what).hint(
        "an older copy of the data directory was restored, or entries were removed; \
         if that was intended, move that file away and start again",
    )
}

/// The last complete note of a checkpoint file. `None` if the file does not exist or has no note.
pub fn read_last_note(path: &Path) -> io::Result<Option<SignedCheckpoint>> {
    let mut file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    CheckpointReader::new(io::Cursor::new(tail)).last().transpose()
}

/// The notes that a checkpoint file has now. `None` if it does not exist. Notes that are appended later are left out, because
/// they may be of more entries than the caller has read.
pub fn read_notes(path: &Path) -> io::Result<Option<CheckpointReader>> {
    let file = match files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    Ok(Some(CheckpointReader::new(BufReader::new(file.take(length)))))
}

#[cfg(test)]
mod tests {
    use ledger::{Hash, SigningKey};

    use super::*;

    #[test]
    fn read_last_note_reads_only_the_end_of_a_long_file() {
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let note = |size| {
            let origin = Checkpoint::origin_of("x");
            sign_checkpoint(&Checkpoint { origin, size, root: Hash::ZERO }, &[&key])
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoints.log");
        assert!(read_last_note(&path).unwrap().is_none());
        let notes: String = (1..=2_000).map(note).collect();
        assert!(TAIL_BYTES < notes.len() as u64);
        std::fs::write(&path, notes).unwrap();
        assert_eq!(read_last_note(&path).unwrap().unwrap().unverified().size, 2_000);
    }
}
