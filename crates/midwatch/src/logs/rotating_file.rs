//! A file that is rotated by size: `midwatch.log`, then `midwatch.log.1` and so on.
//!
//! Only its owner can read it. It may be removed or moved away at any time; the next line creates a new one.
//! Invariant: it holds whole lines, even after a failed write or a crash during one.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

const FILE_MODE: u32 = 0o600;

#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    bytes_max: u64,
    files_max: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl RotatingFile {
    /// Rotates before the file would exceed `bytes_max`, and keeps `files_max` rotated files.
    /// Nothing is opened before the first line.
    pub fn new(path: PathBuf, bytes_max: u64, files_max: u32) -> RotatingFile {
        RotatingFile { path, bytes_max, files_max, open: None }
    }

    /// Appends a line, which must end with a line break. After an error none of it is in the file, and the next call
    /// opens the file again.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let added = line.len() as u64;
        let mut open = self.take_open()?;
        if 0 < open.bytes && self.bytes_max < open.bytes.saturating_add(added) {
            drop(open);
            self.rotate()?;
            open = self.open_file()?;
        }
        if let Err(error) = open.file.write_all(line) {
            // If this fails as well, the next open ends the incomplete line.
            let _ = open.file.set_len(open.bytes);
            return Err(error);
        }
        open.bytes += added;
        self.open = Some(open);
        Ok(())
    }

    /// Returns the open file, or opens it again if it was removed or moved away.
    fn take_open(&mut self) -> io::Result<Open> {
        let Some(open) = self.open.take() else { return self.open_file() };
        let (Ok(named), Ok(held)) = (fs::symlink_metadata(&self.path), open.file.metadata()) else {
            return self.open_file();
        };
        let is_same = (named.dev(), named.ino()) == (held.dev(), held.ino());
        if is_same { Ok(open) } else { self.open_file() }
    }

    fn open_file(&self) -> io::Result<Open> {
        self.create_dir()?;
        let mut file = files::append(&self.path)?;
        let found = file.metadata()?;
        if found.mode() & 0o777 != FILE_MODE {
            file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        }
        let mut bytes = found.len();
        if is_torn(&mut file, bytes)? {
            file.write_all(b"\n")?;
            bytes += 1;
        }
        Ok(Open { file, bytes })
    }

    /// Creates the file's directory, but none above it: a data directory that was removed must not come back.
    fn create_dir(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), files::create_directory)
    }

    /// Renames every file to the next number, the oldest first; the last one is replaced.
    fn rotate(&self) -> io::Result<()> {
        self.remove_beyond_last();
        for number in (1..self.files_max).rev() {
            self.rename(self.rotated(number), number + 1)?;
        }
        self.rename(self.path.clone(), 1)
    }

    fn rename(&self, from: PathBuf, number: u32) -> io::Result<()> {
        match fs::rename(from, self.rotated(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes files beyond `files_max`, which may have been higher before.
    fn remove_beyond_last(&self) {
        let mut beyond = self.files_max.saturating_add(1)..u32::MAX;
        while beyond.next().is_some_and(|number| fs::remove_file(self.rotated(number)).is_ok()) {}
    }

    fn rotated(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Whether the last line has no line break.
fn is_torn(file: &mut File, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(bytes - 1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;

    const NAME: &str = "logs/midwatch.log";

    fn dir() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    fn file(dir: &TempDir, bytes_max: u64, files_max: u32) -> RotatingFile {
        RotatingFile::new(dir.path().join(NAME), bytes_max, files_max)
    }

    /// Compares the current file, then the rotated ones, newest first.
    fn check(dir: &TempDir, expected: &[&str]) {
        let mut found = Vec::new();
        for number in 0..20 {
            let name = if number == 0 { NAME.to_owned() } else { format!("{NAME}.{number}") };
            found.extend(fs::read_to_string(dir.path().join(name)));
        }
        assert_eq!(found, expected);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn rotates_past_the_limit_and_keeps_files_max_files() {
        let dir = dir();
        let mut file = file(&dir, 4, 2);
        file.append(b"a\n").unwrap();
        file.append(b"b\n").unwrap();
        check(&dir, &["a\nb\n"]);
        file.append(b"c\n").unwrap();
        check(&dir, &["c\n", "a\nb\n"]);
        for line in ["d\n", "e\n", "f\n", "longer\n", "g\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        check(&dir, &["g\n", "longer\n", "e\nf\n"]);
    }

    #[test]
    fn reopened_file_continues_the_rotation() {
        let dir = dir();
        for line in ["a\n", "b\n", "c\n", "d\n", "e\n"] {
            file(&dir, 2, 4).append(line.as_bytes()).unwrap();
        }
        check(&dir, &["e\n", "d\n", "c\n", "b\n", "a\n"]);
        file(&dir, 2, 2).append(b"f\n").unwrap();
        check(&dir, &["f\n", "e\n", "d\n"]);
    }

    #[test]
    fn file_and_directory_are_readable_by_the_owner_only() {
        let dir = dir();
        let path = dir.path().join(NAME);
        file(&dir, 100, 1).append(b"a\n").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        file(&dir, 100, 1).append(b"b\n").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn survives_removal_of_the_file_and_of_its_directory() {
        let dir = dir();
        let path = dir.path().join(NAME);
        let mut file = file(&dir, 100, 1);
        file.append(b"a\n").unwrap();
        fs::remove_file(&path).unwrap();
        file.append(b"b\n").unwrap();
        check(&dir, &["b\n"]);
        fs::rename(&path, dir.path().join("away")).unwrap();
        file.append(b"c\n").unwrap();
        check(&dir, &["c\n"]);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        file.append(b"d\n").unwrap();
        check(&dir, &["d\n"]);
    }

    #[test]
    fn a_removed_data_directory_does_not_come_back() {
        let dir = dir();
        let mut file = file(&dir, 100, 1);
        fs::remove_dir_all(dir.path()).unwrap();
        assert!(file.append(b"a\n").is_err());
        assert!(!dir.path().exists());
    }

    #[test]
    fn append_works_again_when_the_obstacle_is_removed() {
        let dir = dir();
        let path = dir.path().join(NAME);
        let mut file = file(&dir, 2, 1);
        fs::create_dir_all(&path).unwrap();
        assert!(file.append(b"a\n").is_err());
        fs::remove_dir(&path).unwrap();
        file.append(b"b\n").unwrap();
        // A directory that is not empty cannot be replaced, so the rotation fails.
        let first = dir.path().join(format!("{NAME}.1"));
        fs::create_dir_all(first.join("x")).unwrap();
        assert!(file.append(b"c\n").is_err());
        check(&dir, &["b\n"]);
        fs::remove_dir_all(first).unwrap();
        file.append(b"d\n").unwrap();
        check(&dir, &["d\n", "b\n"]);
    }

    #[test]
    fn symlink_is_not_followed() {
        let dir = dir();
        let target = dir.path().join("target");
        fs::write(&target, "").unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join(NAME)).unwrap();
        assert!(file(&dir, 100, 1).append(b"a\n").is_err());
        assert_eq!(fs::read_to_string(target).unwrap(), "");
    }

    #[test]
    fn incomplete_line_is_ended() {
        let dir = dir();
        file(&dir, 100, 1).append(b"half").unwrap();
        file(&dir, 100, 1).append(b"whole\n").unwrap();
        check(&dir, &["half\nwhole\n"]);
    }
}
