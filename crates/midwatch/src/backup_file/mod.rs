//! The format of a backup: a gzip-compressed tar archive of plain files.
//!
//! The first member, [`MANIFEST_NAME`], lists every other member with its size and SHA-256. The others follow in that order,
//! and nothing comes after them. So a reader knows what to expect before it writes anything, and refuses whatever differs.
//! Invariant: a member has one of the names that [`is_member_name`] allows, so none can lead outside the directory that it is
//! unpacked into.

#[cfg(test)]
mod tests;
mod unpack;
mod write;

use std::io::{self, Read};
use std::path::Path;

use api::{Code, Error};
use ledger::Hash;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use unpack::unpack;
pub(crate) use write::{BackupContent, write};

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
const MANIFEST_NAME: &str = "midwatch-backup.json";
/// A manifest of about half a million files.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;
/// The longest name that the header of a tar member holds.
const NAME_BYTES_MAX: usize = 99;

/// The key that signs the ledger, and the key of sensitive texts.
pub(crate) const KEY_FILES: [&str; 2] = ["signing.key", "sealing.key"];
/// Files of the data directory that a backup contains, if they exist.
pub(crate) const PLAIN_FILES: [&str; 4] =
    ["midwatch.toml", "policy.toml", "node", "promptyoself.imported"];
/// The folder of the exported ledger.
pub(crate) const LEDGER_FOLDER: &str = "ledger";
/// Folders of the data directory that a backup contains.
pub(crate) const DATA_FOLDERS: [&str; 3] = ["outputs", "notices", "stop"];

/// What a backup contains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    /// The version of Midwatch that wrote the backup.
    pub(crate) version: String,
    pub(crate) created_at: String,
    /// Key files of the installation that were left out.
    pub(crate) left_out: Vec<String>,
    files: Vec<Member>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Member {
    name: String,
    bytes: u64,
    sha256: String,
}

impl Manifest {
    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|member| member.name == name)
    }

    /// The number of files in a folder.
    pub(crate) fn count_in(&self, folder: &str) -> u64 {
        let is_inside = |member: &&Member| {
            member.name.split_once('/').is_some_and(|(found, _)| found == folder)
        };
        self.files.iter().filter(is_inside).count() as u64
    }

    fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, member| sum.saturating_add(member.bytes))
    }
}

/// Whether a backup may have a member of this name: one of the known files, or a plain name in one of the known folders.
pub(crate) fn is_member_name(name: &str) -> bool {
    let is_known = || PLAIN_FILES.contains(&name) || KEY_FILES.contains(&name);
    let is_in_folder = |(folder, file): (&str, &str)| {
        (folder == LEDGER_FOLDER || DATA_FOLDERS.contains(&folder)) && is_plain(file)
    };
    name.len() <= NAME_BYTES_MAX && (is_known() || name.split_once('/').is_some_and(is_in_folder))
}

/// Whether a name has only letters, digits, `-`, `_` and `.`, and does not start with a dot.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_allowed)
}

/// Reads at most a number of bytes, and takes their SHA-256.
struct HashingReader<R> {
    from: io::Take<R>,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    fn new(from: R, bytes_max: u64) -> HashingReader<R> {
        HashingReader { from: from.take(bytes_max), hash: Sha256::new(), bytes: 0 }
    }

    /// The number and the hash of the bytes that were read.
    fn finish(self) -> (u64, String) {
        (self.bytes, Hash::from_bytes(self.hash.finalize().into()).to_string())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.hash.update(buffer.get(..read).unwrap_or_default());
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The code of a failed read or write.
fn io_code(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::StorageFull => Code::DiskFull,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::AlreadyExists => Code::Exists,
        _ => Code::Failed,
    }
}

/// The error for a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Error {
    let what = format!("`{}` cannot be written: {error}", path.display());
    Error::new(io_code(error), what).hint("check the disk and the permissions, and try again")
}
