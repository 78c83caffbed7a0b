//! How far a channel has come, in a small file of the data directory.
//!
//! It is replaced whole. If it cannot be written the channel goes on all the same: a notice that is
//! repeated after a restart is better than silence.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use tracing::warn;

const DIRECTORY: &str = "notices";

/// Invariant: `done <= through`. They differ while a delivery is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Up to this entry everything was told.
    pub(super) done: u64,
    /// Up to this entry everything is told by the delivery that was begun.
    pub(super) through: u64,
}

impl Position {
    pub(super) fn at(done: u64) -> Position {
        Position { done, through: done }
    }

    fn parse(text: &str) -> Option<Position> {
        let (done, through) = text.trim_end().split_once(' ')?;
        let (done, through) = (done.parse().ok()?, through.parse().ok()?);
        (done <= through).then_some(Position { done, through })
    }
}

/// The file of one channel.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Up to which entry everything was told, as the file says.
    noted: u64,
}

impl Place {
    pub(super) fn new(data: &Path, channel: &str) -> Place {
        Place { path: data.join(DIRECTORY).join(channel), noted: 0 }
    }

    pub(super) fn noted(&self) -> u64 {
        self.noted
    }

    pub(super) fn read(&mut self) -> Option<Position> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(%error, path = %self.path.display(), "a position cannot be read");
                return None;
            }
        };
        let position = Position::parse(&text);
        if position.is_none() {
            warn!(path = %self.path.display(), "a position makes no sense, and is begun anew");
        }
        self.noted = position.map_or(0, |position| position.done);
        position
    }

    /// It is on the disk when this returns, if the disk takes it.
    pub(super) async fn keep(&mut self, position: Position) -> Position {
        let path = self.path.clone();
        let written = spawn_blocking(move || write(&path, position)).await;
        match written.map_err(io::Error::other).flatten() {
            Ok(()) => self.noted = position.done,
            Err(error) => {
                warn!(%error, path = %self.path.display(), "a position could not be kept");
            }
        }
        position
    }
}

/// A channel that is not configured has no position: should it come back, it begins at the end again.
pub(super) fn forget_others(data: &Path, channels: &[&str]) {
    let Ok(files) = fs::read_dir(data.join(DIRECTORY)) else { return };
    let is_other = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(|name| channels.contains(&name))
    };
    for path in files.flatten().map(|file| file.path()).filter(is_other) {
        if let Err(error) = fs::remove_file(&path) {
            warn!(%error, path = %path.display(), "an old position could not be removed");
        }
    }
}

fn write(path: &Path, position: Position) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(directory)?;
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    writeln!(file, "{} {}", position.done, position.through)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_position_is_one() {
        assert_eq!(Position::parse("7 9\n"), Some(Position { done: 7, through: 9 }));
        assert_eq!(Position::parse("7 7"), Some(Position::at(7)));
        for text in ["", "7", "7\n", "9 7", "7 9 11", "-1 7", "x y"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn it_is_found_again_unless_its_channel_is_gone() {
        let data = tempfile::tempdir().unwrap();
        let position = Position { done: 7, through: 9 };
        let mut place = Place::new(data.path(), "url");
        assert_eq!(place.read(), None);
        assert_eq!((place.keep(position).await, place.noted()), (position, 7));
        let mut again = Place::new(data.path(), "url");
        assert_eq!((again.read(), again.noted()), (Some(position), 7));
        forget_others(data.path(), &["command", "url"]);
        assert_eq!(again.read(), Some(position));
        forget_others(data.path(), &["command"]);
        assert_eq!(again.read(), None);
    }
}
