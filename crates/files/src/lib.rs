//! Opens files where another process may have put something else: a pipe, which would make us wait, or a link, which would
//! lead us to another file.
//!
//! Nothing here waits, and nothing is read or written except regular files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Only the owner may read and write.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Only the owner may list, add and remove files.
const PRIVATE_DIRECTORY: u32 = 0o700;

/// Opens a file for reading. Follows no link.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Opens a file for reading that a person has named and that may be a link, such as a mounted secret.
pub fn open_linked(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY)
}

/// Opens a file for appending and reading, and creates it if it is missing. Follows no link.
pub fn append(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW)
}

/// Opens an existing file for appending. Follows no link.
pub fn append_existing(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW)
}

/// Creates a file in place of whatever is there.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    open_with(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
}

/// Creates a directory unless it exists. Fails if something else is there, such as a link to a directory.
pub fn create_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(path)?.is_dir() {
                true => Ok(()),
                false => Err(io::Error::other("it is not a directory")),
            }
        }
        created => created,
    }
}

/// The text of a file. Fails if it is longer than `bytes_max`.
pub fn read_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    read_text_of(open(path)?, bytes_max)
}

/// The text of an open file. Fails if it is longer than `bytes_max`.
pub fn read_text_of(file: File, bytes_max: usize) -> io::Result<String> {
    let mut text = String::new();
    // One more byte shows that the file is too long.
    file.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    match text.len() <= bytes_max {
        true => Ok(text),
        false => Err(io::Error::other(format!("it is longer than {bytes_max} bytes"))),
    }
}

/// Replaces a file at once: a crash leaves the old or the new text. Returns when it is on disk.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = Path::new(&aside);
    let mut file = create(aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(aside, path)?;
    sync_directory_of(path)
}

/// Returns when the names in the directory of a file are on disk.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, PRIVATE)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// A directory with a pipe that has no other end, and a link to the file `target`, which has the text `kept`.
    fn hostile() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        mknodat(CWD, dir.path().join("pipe"), FileType::Fifo, PRIVATE, 0).unwrap();
        fs::write(dir.path().join("target"), "kept").unwrap();
        symlink(dir.path().join("target"), dir.path().join("link")).unwrap();
        dir
    }

    #[test]
    fn pipes_directories_and_links_are_neither_read_nor_appended_to() {
        let dir = hostile();
        for name in ["pipe", "link", ""] {
            let path = dir.path().join(name);
            assert!(open(&path).is_err(), "{name}");
            assert!(append(&path).is_err(), "{name}");
            assert!(append_existing(&path).is_err(), "{name}");
            assert!(read_text(&path, 10).is_err(), "{name}");
        }
        assert!(open_linked(&dir.path().join("pipe")).is_err());
        assert_eq!(
            read_text_of(open_linked(&dir.path().join("link")).unwrap(), 4).unwrap(),
            "kept"
        );
        assert_eq!(text(&dir.path().join("target")), "kept");
    }

    #[test]
    fn file_is_created_and_replaced_in_place_of_pipes_and_links() {
        for name in ["pipe", "link", "missing"] {
            let dir = hostile();
            let path = dir.path().join(name);
            create(&path).unwrap().write_all(b"new").unwrap();
            assert_eq!(
                (text(&path).as_str(), text(&dir.path().join("target")).as_str()),
                ("new", "kept")
            );
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::rename(dir.path().join("link"), dir.path().join(format!("{name}.new"))).ok();
            replace(&path, "newer").unwrap();
            assert_eq!(
                (text(&path).as_str(), text(&dir.path().join("target")).as_str()),
                ("newer", "kept")
            );
        }
    }

    #[test]
    fn directory_is_not_used_if_it_is_a_link() {
        let dir = hostile();
        let [new, link] = ["new", "linked"].map(|name| dir.path().join(name));
        create_directory(&new).unwrap();
        create_directory(&new).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
        symlink(&new, &link).unwrap();
        for path in [link, dir.path().join("pipe"), dir.path().join("target")] {
            let refused = create_directory(&path).unwrap_err().to_string();
            assert_eq!(refused, "it is not a directory", "{path:?}");
        }
        assert!(create_directory(&dir.path().join("none/new")).is_err());
    }

    #[test]
    fn text_longer_than_the_limit_is_refused() {
        let dir = hostile();
        let path = dir.path().join("target");
        assert_eq!(read_text(&path, 4).unwrap(), "kept");
        assert!(read_text(&path, 3).unwrap_err().to_string().contains("longer than 3 bytes"));
        assert_eq!(
            read_text(&dir.path().join("no"), 3).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
