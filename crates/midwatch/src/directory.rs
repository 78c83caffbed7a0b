//! The data directory: what is where in it, and who owns it.
//!
//! One process at a time owns it, by a lock on a file that the kernel releases when the process ends,
//! however it ends. The file's content only says who that is.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use api::{Code, Error};
use sha2::{Digest, Sha256};

/// A socket's path may have this many bytes on every system that we know.
const SOCKET_PATH_BYTES_MAX: usize = 103;
/// A process id is shorter than this.
const OWNER_BYTES_MAX: u64 = 32;

#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

/// The ownership of a directory; it ends when this is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Directory {
    pub fn at(path: PathBuf) -> Directory {
        Directory { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("midwatch.db")
    }

    pub fn config(&self) -> PathBuf {
        self.path.join("midwatch.toml")
    }

    /// Makes it, for its owner only, unless it is there.
    pub fn create(&self) -> Result<(), Error> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|error| self.failed("made", error))
    }

    pub fn has_database(&self) -> Result<bool, Error> {
        self.database().try_exists().map_err(|error| self.failed("read", error))
    }

    /// Whether a log was begun under a key of this directory.
    pub fn has_key(&self) -> Result<bool, Error> {
        let key = self.path.join("signing.key");
        key.try_exists().map_err(|error| self.failed("read", error))
    }

    /// Takes the directory, or `None` when another process has it.
    pub fn try_lock(&self) -> Result<Option<Lock>, Error> {
        let failed = |error| self.failed("locked", error);
        let mut file = self.open_lock().map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Who it is helps people; the lock holds without it, also on a full disk.
        let _ = write_owner(&mut file);
        Ok(Some(Lock { _file: file }))
    }

    /// The process that has the directory, as far as it said.
    pub fn owner(&self) -> Option<u32> {
        let mut text = String::new();
        File::open(self.lock_path()).ok()?.take(OWNER_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim_end().parse().ok()
    }

    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.lock_path())
    }

    fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Where the daemon listens: in the directory or, when that path is too long for a socket, in a
    /// private directory beside other temporary files, under a name made from the path.
    pub fn socket(&self) -> Result<PathBuf, Error> {
        let inside = self.path.join("midwatch.sock");
        if inside.as_os_str().as_bytes().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(inside);
        }
        let absolute = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let digest = Sha256::digest(absolute.as_os_str().as_bytes());
        let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Ok(private_temporary()?.join(format!("{name}.sock")))
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        let code = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            io::ErrorKind::StorageFull => Code::DiskFull,
            _ => Code::Failed,
        };
        let path = self.path.display();
        Error::new(code, format!("the data directory `{path}` cannot be {what}: {error}"))
            .hint("name another one with `--data DIR` or MIDWATCH_DATA")
    }
}

fn write_owner(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// A directory that nobody else can put anything into.
fn private_temporary() -> Result<PathBuf, Error> {
    let uid = rustix::process::getuid().as_raw();
    let path = std::env::temp_dir().join(format!("midwatch-{uid}"));
    let failed = |what: String| Error::new(Code::Failed, what);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    made.map_err(|error| failed(format!("`{}` cannot be made: {error}", path.display())))?;
    let found = fs::symlink_metadata(&path).map_err(|error| failed(error.to_string()))?;
    match found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        true => Ok(path),
        false => {
            let what = format!("`{}` is not a private directory of this user", path.display());
            Err(failed(what).hint("remove it, or use a data directory with a shorter path"))
        }
    }
}
