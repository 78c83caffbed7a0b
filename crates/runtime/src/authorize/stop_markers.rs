//! Marker files: a stop that the ledger does not have yet.
//!
//! `stop/freeze` in the data directory freezes the installation, `stop/run_…` cancels that run. A daemon leaves one when
//! it cannot record a stop, and a command when no daemon answers. The daemon obeys a marker within a second, records the
//! stop as soon as it can, and removes the marker then.
//!
//! A marker can only stop, so every file of that name counts.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kernel::schedule::NOTE_BYTES_MAX;
use kernel::{Actor, RunId};

const DIRECTORY: &str = "stop";
const FREEZE: &str = "freeze";
/// So many characters always fit into a note.
const NOTE_CHARS_MAX: usize = NOTE_BYTES_MAX / 4;

/// The marker files of one data directory.
#[derive(Clone, Debug)]
pub struct StopMarkers {
    directory: PathBuf,
}

/// What a marker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopTarget<'a> {
    Installation,
    Run(&'a RunId),
}

/// A stop that a marker requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// The owner of the file.
    pub by: Actor,
    pub note: Option<String>,
}

impl StopMarkers {
    pub fn new(data: &Path) -> StopMarkers {
        StopMarkers { directory: data.join(DIRECTORY) }
    }

    /// Creates the directory while there is space, because a marker is needed when there is none. A link or another file in
    /// its place is removed.
    pub fn prepare(&self) -> io::Result<()> {
        match files::create_directory(&self.directory) {
            Err(_) if !fs::symlink_metadata(&self.directory)?.is_dir() => {
                fs::remove_file(&self.directory)?;
                files::create_directory(&self.directory)
            }
            prepared => prepared,
        }
    }

    /// Leaves a marker. On a full disk it has no note, because an empty file needs no space.
    pub fn leave(&self, target: StopTarget<'_>, note: Option<&str>) -> io::Result<()> {
        self.prepare()?;
        let created =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(target));
        match created {
            Ok(mut file) => {
                let _ = file.write_all(note.unwrap_or_default().as_bytes());
                let _ = file.sync_all();
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The request of a marker, if there is one.
    pub fn find(&self, target: StopTarget<'_>) -> Option<StopRequest> {
        let path = self.path(target);
        let owner = fs::symlink_metadata(&path).ok()?.uid();
        let note = read_note(&path).ok().filter(|note| !note.is_empty());
        Some(StopRequest { by: Actor::local_user(owner), note })
    }

    /// Removes a marker whose stop the ledger has.
    pub fn remove(&self, target: StopTarget<'_>) -> io::Result<()> {
        match fs::remove_file(self.path(target)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn path(&self, target: StopTarget<'_>) -> PathBuf {
        match target {
            StopTarget::Installation => self.directory.join(FREEZE),
            StopTarget::Run(id) => self.directory.join(id.as_str()),
        }
    }
}

/// The text of a marker, cut to fit into a note.
fn read_note(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    files::open(path)?.take(NOTE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).chars().take(NOTE_CHARS_MAX).collect())
}
