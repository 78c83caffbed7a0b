//! Signed checkpoints: made, kept in the store, appended to a file, and copied elsewhere.
//!
//! The file beside the database and the copy elsewhere hold one note after the other. A note that was
//! cut short by a crash is passed over when they are read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use api::{CheckpointMade, Code, Error};
use ledger::verify::{Checkpoints, SignedCheckpoint, Verdict};
use ledger::{Chain, Checkpoint, open, sign};
use store::Store;
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::errors;
use crate::watch::{Settings, Engine};

const FILE_NAME: &str = "checkpoints.log";
/// The end of a file in which its last note is looked for; many notes fit into it.
const TAIL_BYTES: u64 = 64 << 10;

impl Engine {
    /// Signs the log as it is. When that size was signed already, it is not signed again.
    pub(crate) async fn checkpoint(&self) -> Result<CheckpointMade, Error> {
        let _one_at_a_time = self.signing().lock().await;
        self.may_write()?;
        let store = self.store();
        let chain = store.head().await.map_err(errors::store)?;
        let last = store.last_checkpoint().await.map_err(errors::store)?;
        if let Some(last) = last.filter(|last| last.chain.size() == chain.size()) {
            return Ok(made(&last.chain, last.note));
        }
        let copy = self.confirmed_copy().await?;
        let origin = Checkpoint::origin_of(self.instance());
        let checkpoint = Checkpoint { origin, size: chain.size(), root: chain.root() };
        let note = sign(&checkpoint, &[self.key()]);
        let kept = store::Checkpoint { chain: chain.clone(), note: note.clone() };
        store.keep_checkpoint(kept).await.map_err(errors::store)?;
        self.append_to_files(note.clone(), copy).await;
        Ok(made(&chain, note))
    }

    /// The store has the checkpoint; a file that cannot be written is a warning.
    async fn append_to_files(&self, note: String, copy: Option<PathBuf>) {
        let paths = [Some(self.settings().data.join(FILE_NAME)), copy];
        let appended = spawn_blocking(move || {
            for path in paths.into_iter().flatten() {
                if let Err(error) = append(&path, &note) {
                    warn!(path = %path.display(), %error, "a checkpoint could not be copied");
                }
            }
        });
        if let Err(error) = appended.await {
            warn!(%error, "a checkpoint could not be copied");
        }
    }

    /// The copy elsewhere, if there is one and it is not evidence against this log. That is found out
    /// before this process appends to it for the first time.
    async fn confirmed_copy(&self) -> Result<Option<PathBuf>, Error> {
        let Some(copy) = &self.settings().checkpoint_copy else { return Ok(None) };
        match self.copy_confirmed().get_or_try_init(|| self.confirm(copy)).await {
            Ok(()) => Ok(Some(copy.clone())),
            Err(error) if matches!(error.code, Code::LogDamaged | Code::LogRewound) => Err(error),
            Err(error) => {
                warn!(path = %copy.display(), %error, "a checkpoint could not be copied");
                Ok(None)
            }
        }
    }

    /// The newest note in a file must vouch for this log. Mostly it is stored as well; after a restore
    /// it is not, and then the whole log is verified.
    async fn confirm(&self, copy: &Path) -> Result<(), Error> {
        let note = last_note(copy).map_err(|error| unreadable(copy, error))?;
        let Some(note) = note else { return Ok(()) };
        let size = self.store().head().await.map_err(errors::store)?.size();
        if size < note.unverified().size {
            return Err(rewound(copy, size, &note));
        }
        if is_stored(self.store(), &note).await? == Some(true) {
            return Ok(());
        }
        let report = self.verify_all().await?;
        match (report.verdict, report.damage) {
            (Verdict::Ok, _) => Ok(()),
            (_, damage) => {
                let what = damage.map_or_else(String::new, |damage| damage.what);
                Err(errors::store(store::Error::Damaged(what)))
            }
        }
    }
}

fn made(chain: &Chain, note: String) -> CheckpointMade {
    let (size, root) = (chain.size(), chain.root().to_string());
    CheckpointMade { checkpoint: api::Checkpoint { size, root, note } }
}

fn append(path: &PathBuf, note: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(note.as_bytes())?;
    file.sync_data()
}

/// Before anything is written: no file of checkpoints may know a longer log than there is, or another
/// one as far as stored checkpoints tell. A log that is known to be damaged is past this; it is only
/// read.
pub(crate) async fn check_not_rewound(store: &dyn Store, settings: &Settings) -> Result<(), Error> {
    if store.stopped_writing().is_some() {
        return Ok(());
    }
    let size = store.head().await.map_err(errors::store)?.size();
    let beside = settings.data.join(FILE_NAME);
    for path in [Some(&beside), settings.checkpoint_copy.as_ref()].into_iter().flatten() {
        let note = last_note(path).map_err(|error| unreadable(path, error))?;
        let Some(note) = note else { continue };
        if size < note.unverified().size {
            return Err(rewound(path, size, &note));
        }
        if is_stored(store, &note).await? == Some(false) {
            let (size, path) = (note.unverified().size, path.display());
            store.stop_writing(format!(
                "it is not the log that the checkpoint of {size} entries in `{path}` vouches for: it \
                 was rewritten or replaced"
            ));
        }
    }
    Ok(())
}

/// Whether the checkpoint that is stored for the size of a note says the same, if there is one.
async fn is_stored(store: &dyn Store, note: &SignedCheckpoint) -> Result<Option<bool>, Error> {
    let size = note.unverified().size;
    let stored = store.checkpoint_notes(size.saturating_sub(1), 1).await.map_err(errors::store)?;
    let same_size = stored.into_iter().find(|(stored, _)| *stored == size);
    Ok(same_size.map(|(_, stored)| {
        SignedCheckpoint::parse(&stored).is_ok_and(|it| it.unverified() == note.unverified())
    }))
}

/// Before anything is appended: the newest checkpoint must belong to this log and to this key.
pub(crate) async fn check_newest(watch: &Engine) -> Result<(), Error> {
    let store = watch.store();
    let keys = [watch.key().verifying_key().clone()];
    if let Some(last) = store.last_checkpoint().await.map_err(errors::store)? {
        let signed = open(&last.note, &keys).map_err(|error| error.to_string());
        let same = signed.map(|it| it.root == last.chain.root() && it.size == last.chain.size());
        if same != Ok(true) {
            let why = same.err().unwrap_or("it names another root".to_owned());
            store.stop_writing(format!("the newest checkpoint does not fit the log: {why}"));
        }
    }
    Ok(())
}

/// A file of checkpoints cannot be looked at.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    let what = format!("the file of checkpoints `{}` cannot be read: {error}", path.display());
    Error::new(Code::Failed, what).hint(
        "it must be a file that this user can read; \
         `checkpoint_copy` under `[ledger]` names the one elsewhere",
    )
}

fn rewound(copy: &Path, size: u64, outside: &SignedCheckpoint) -> Error {
    let what = format!(
        "the log has {size} entries, but `{}` holds a checkpoint of {}",
        copy.display(),
        outside.unverified().size
    );
    Error::new(Code::LogRewound, what).hint(
        "an older copy of the data directory was put back, or entries were cut off; \
         if you meant to, move that file away and start again",
    )
}

/// The last whole note of a checkpoint file; `None` when there is no file or no note in it.
pub fn last_note(path: &Path) -> io::Result<Option<SignedCheckpoint>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Checkpoints::new(io::Cursor::new(tail)).last().transpose()
}

/// All notes that a checkpoint file holds now; `None` when there is no file. What is appended later
/// is left out, because a log that is read meanwhile may not reach as far.
pub fn notes(path: &Path) -> io::Result<Option<Checkpoints>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    Ok(Some(Checkpoints::new(BufReader::new(file.take(length)))))
}

#[cfg(test)]
mod tests {
    use ledger::{Hash, SigningKey};

    use super::*;

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let note = |size| {
            let origin = Checkpoint::origin_of("x");
            sign(&Checkpoint { origin, size, root: Hash::ZERO }, &[&key])
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoints.log");
        assert!(last_note(&path).unwrap().is_none());
        let notes: String = (1..=2_000).map(note).collect();
        assert!(TAIL_BYTES < notes.len() as u64);
        std::fs::write(&path, notes).unwrap();
        assert_eq!(last_note(&path).unwrap().unwrap().unverified().size, 2_000);
    }
}
