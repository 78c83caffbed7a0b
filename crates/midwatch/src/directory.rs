//! The data directory: the paths in it, and which process owns it.
//!
//! One process at a time owns it, by a lock on the directory itself, which the operating system releases when the process
//! ends, however it ends. The file `lock` in it contains the id of that process, for people only: removing it changes nothing.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use api::{Code, Error};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// The longest socket path that every supported system allows.
const SOCKET_PATH_BYTES_MAX: usize = 103;
/// Limit for reading a process id.
const OWNER_BYTES_MAX: u64 = 32;

#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

/// Ownership of a data directory until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _directory: File,
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

    /// Creates the directory for its owner only, unless it exists.
    pub fn create(&self) -> Result<(), Error> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        created.map_err(|error| self.failed("created", error))
    }

    pub fn has_database(&self) -> Result<bool, Error> {
        self.database().try_exists().map_err(|error| self.failed("read", error))
    }

    /// Whether an installation was created here, which has a signing key wherever its data is.
    pub fn has_key(&self) -> Result<bool, Error> {
        let key = self.path.join("signing.key");
        key.try_exists().map_err(|error| self.failed("read", error))
    }

    /// Locks the directory. Returns `None` when another process owns it.
    pub fn try_lock(&self) -> Result<Option<Lock>, Error> {
        let failed = |error| self.failed("locked", error);
        let directory = File::open(&self.path).map_err(failed)?;
        match directory.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // The process id is only for people; the lock works without it, also on a full disk.
        let _ = self.write_owner();
        Ok(Some(Lock { _directory: directory }))
    }

    /// The id of the process that owns the directory, if it could write it.
    pub fn owner(&self) -> Option<u32> {
        let mut text = String::new();
        let file = files::open(&self.lock_path()).ok()?;
        file.take(OWNER_BYTES_MAX).read_to_string(&mut text).ok()?;
        text.trim_end().parse().ok()
    }

    fn write_owner(&self) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(flags);
        writeln!(options.open(self.lock_path())?, "{}", std::process::id())
    }

    fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// The path of the daemon's socket: in the data directory or, when that path is too long for a socket, in a
    /// private temporary directory, under a hash of the path.
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
            .hint("choose another one with `--data DIR` or MIDWATCH_DATA")
    }
}

/// A temporary directory that no other user can write to.
fn private_temporary() -> Result<PathBuf, Error> {
    let uid = rustix::process::getuid().as_raw();
    let path = std::env::temp_dir().join(format!("midwatch-{uid}"));
    let failed = |what: String| Error::new(Code::Failed, what);
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    created.map_err(|error| failed(format!("`{}` cannot be created: {error}", path.display())))?;
    let found = fs::symlink_metadata(&path).map_err(|error| failed(error.to_string()))?;
    match found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0 {
        true => Ok(path),
        false => {
            let what = format!("`{}` is not a private directory of this user", path.display());
            Err(failed(what).hint("remove it, or use a data directory with a shorter path"))
        }
    }
}
