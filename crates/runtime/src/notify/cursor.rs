//! How far a channel has delivered, in a small file of the data directory.
//!
//! The file is replaced whole. If it cannot be written, the channel continues: a notice that is repeated after a restart is
//! better than none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use tracing::warn;

/// Longer than any cursor.
const CURSOR_BYTES_MAX: usize = 100;
const DIRECTORY: &str = "notices";

/// Invariant: `done <= through`. They differ while a delivery is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Everything up to this entry was delivered.
    pub(super) done: u64,
    /// Everything up to this entry is in the delivery under way.
    pub(super) through: u64,
}

impl Cursor {
    pub(super) fn at(done: u64) -> Cursor {
        Cursor { done, through: done }
    }

    fn parse(text: &str) -> Option<Cursor> {
        let (done, through) = text.trim_end().split_once(' ')?;
        let (done, through) = (done.parse().ok()?, through.parse().ok()?);
        (done <= through).then_some(Cursor { done, through })
    }
}

/// The file of one channel.
#[derive(Debug)]
pub(super) struct CursorFile {
    path: PathBuf,
    /// `done` as the file has it.
    saved: u64,
}

impl CursorFile {
    pub(super) fn new(data: &Path, channel: &str) -> CursorFile {
        CursorFile { path: data.join(DIRECTORY).join(channel), saved: 0 }
    }

    pub(super) fn saved(&self) -> u64 {
        self.saved
    }

    pub(super) fn read(&mut self) -> Option<Cursor> {
        let text = match files::read_text(&self.path, CURSOR_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(%error, path = %self.path.display(), "failed to read a cursor");
                return None;
            }
        };
        let cursor = Cursor::parse(&text);
        if cursor.is_none() {
            warn!(path = %self.path.display(), "a cursor is invalid, starting at the end of the ledger");
        }
        self.saved = cursor.map_or(0, |cursor| cursor.done);
        cursor
    }

    /// Returns once the file is on disk, or could not be written.
    pub(super) async fn save(&mut self, cursor: Cursor) -> Cursor {
        let path = self.path.clone();
        let written = spawn_blocking(move || write(&path, cursor)).await;
        match written.map_err(io::Error::other).flatten() {
            Ok(()) => self.saved = cursor.done,
            Err(error) => {
                warn!(%error, path = %self.path.display(), "failed to save a cursor");
            }
        }
        cursor
    }
}

/// Removes the cursors of channels that are not configured. If one comes back, it starts at the end of the ledger.
pub(super) fn remove_others(data: &Path, channels: &[&str]) {
    let Ok(files) = fs::read_dir(data.join(DIRECTORY)) else { return };
    let is_other = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(|name| channels.contains(&name))
    };
    for path in files.flatten().map(|file| file.path()).filter(is_other) {
        if let Err(error) = fs::remove_file(&path) {
            warn!(%error, path = %path.display(), "failed to remove an old cursor");
        }
    }
}

fn write(path: &Path, cursor: Cursor) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    files::create_directory(directory)?;
    files::replace(path, &format!("{} {}\n", cursor.done, cursor.through))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_cursor_is_parsed() {
        assert_eq!(Cursor::parse("7 9\n"), Some(Cursor { done: 7, through: 9 }));
        assert_eq!(Cursor::parse("7 7"), Some(Cursor::at(7)));
        for text in ["", "7", "7\n", "9 7", "7 9 11", "-1 7", "x y"] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn it_is_found_again_unless_its_channel_is_gone() {
        let data = tempfile::tempdir().unwrap();
        let cursor = Cursor { done: 7, through: 9 };
        let mut place = CursorFile::new(data.path(), "url");
        assert_eq!(place.read(), None);
        assert_eq!((place.save(cursor).await, place.saved()), (cursor, 7));
        let mut again = CursorFile::new(data.path(), "url");
        assert_eq!((again.read(), again.saved()), (Some(cursor), 7));
        remove_others(data.path(), &["command", "url"]);
        assert_eq!(again.read(), Some(cursor));
        remove_others(data.path(), &["command"]);
        assert_eq!(again.read(), None);
    }
}
