//! Signed checkpoints: made, kept in the store, appended to a file, and copied elsewhere.
//!
//! The file beside the database and the copy elsewhere hold one note after the other. A note that was
//! cut short by a crash is passed over when they are read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use api::{CheckpointMade, Code, Error};
use ledger::verify::SignedCheckpoint;
use ledger::{Chain, Checkpoint, open, sign};
use store::Store;
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::errors;
use crate::watch::{Settings, Watch};

const FILE_NAME: &str = "checkpoints.log";
/// The end of a file in which its last note is looked for; many notes fit into it.
const TAIL_BYTES: u64 = 64 << 10;

impl Watch {
    /// Signs the log as it is. When that size was signed already, it is not signed again.
    pub(crate) async fn checkpoint(&self) -> Result<CheckpointMade, Error> {
        let _one_at_a_time = self.signing().lock().await;
        let store = self.store();
        let chain = store.head().await.map_err(errors::store)?;
        let last = store.last_checkpoint().await.map_err(errors::store)?;
        if let Some(last) = last.filter(|last| last.chain.size() == chain.size()) {
            return Ok(made(&last.chain, last.note));
        }
        let origin = Checkpoint::origin_of(self.instance());
        let checkpoint = Checkpoint { origin, size: chain.size(), root: chain.root() };
        let note = sign(&checkpoint, &[self.key()]);
        let kept = store::Checkpoint { chain: chain.clone(), note: note.clone() };
        store.keep_checkpoint(kept).await.map_err(errors::store)?;
        self.append_to_files(note.clone()).await;
        Ok(made(&chain, note))
    }

    /// The store has the checkpoint; a file that cannot be written is a warning.
    async fn append_to_files(&self, note: String) {
        let beside = self.settings().data.join(FILE_NAME);
        let paths = [Some(beside), self.settings().checkpoint_copy.clone()];
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

/// Before anything is written: no file of checkpoints may know a longer log than there is. A log
/// that is known to be damaged is past this; it is only read.
pub(crate) async fn check_not_rewound(store: &dyn Store, settings: &Settings) -> Result<(), Error> {
    if store.stopped_writing().is_some() {
        return Ok(());
    }
    let size = store.head().await.map_err(errors::store)?.size();
    let beside = settings.data.join(FILE_NAME);
    for path in [Some(&beside), settings.checkpoint_copy.as_ref()].into_iter().flatten() {
        match last_note(path).map_err(|error| unreadable(path, error))? {
            Some(note) if size < note.unverified().size => return Err(rewound(path, size, &note)),
            _ => {}
        }
    }
    Ok(())
}

/// Before anything is appended: the newest checkpoint must belong to this log and to this key.
pub(crate) async fn check_newest(watch: &Watch) -> Result<(), Error> {
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
    Ok(last_note_in(&String::from_utf8_lossy(&tail)))
}

/// A note begins with its origin and ends with its signature.
fn last_note_in(text: &str) -> Option<SignedCheckpoint> {
    let (mut last, mut note) = (None, String::new());
    for line in text.split_inclusive('\n') {
        if line.starts_with("midwatch/") {
            note.clear();
        }
        note.push_str(line);
        if line.starts_with('—') {
            last = SignedCheckpoint::parse(&note).ok().or(last);
            note.clear();
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use ledger::{Hash, SigningKey};

    use super::*;

    #[test]
    fn the_last_whole_note_counts() {
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let note = |size| {
            let origin = Checkpoint::origin_of("x");
            sign(&Checkpoint { origin, size, root: Hash::ZERO }, &[&key])
        };
        let (one, two) = (note(1), note(2));
        let cut = &two[..two.len() - 20];
        let size = |text: &str| last_note_in(text).map(|note| note.unverified().size);
        assert_eq!(size(""), None);
        assert_eq!(size(&one), Some(1));
        assert_eq!(size(&format!("{one}{two}")), Some(2));
        assert_eq!(size(&format!("{one}{cut}")), Some(1));
        let cut = &two[..20];
        assert_eq!(size(&format!("{one}{cut}\n{two}")), Some(2));
        assert_eq!(size(cut), None);
    }

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
