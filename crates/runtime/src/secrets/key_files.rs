//! Key files: created once, readable by their owner only, never replaced silently.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use ledger::SigningKey;
use uuid::Uuid;

use crate::errors::internal;

/// Longer than any key.
const KEY_BYTES_MAX: usize = 4_096;
const FILE_NAME: &str = "signing.key";
const SIGNING: &str = "signing key";
const INSTANCE_PREFIX: &str = "midwatch/";

pub(crate) fn path(data: &Path) -> PathBuf {
    data.join(FILE_NAME)
}

/// The signing key in the data directory, if it exists.
pub(crate) fn read(data: &Path) -> Result<Option<SigningKey>, Error> {
    let path = path(data);
    let Some(text) = read_text(&path, SIGNING)? else { return Ok(None) };
    let key = SigningKey::from_text(text.trim_end());
    key.map(Some).map_err(|error| unreadable(&path, SIGNING, error))
}

/// The text of a key file, if it exists. A file that others can read is refused.
pub(crate) fn read_text(path: &Path, name: &str) -> Result<Option<String>, Error> {
    let text = match files::read_text(path, KEY_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, name, error)),
    };
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, name, error))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        let what = format!("others can read the {name} `{}`", path.display());
        return Err(
            Error::new(Code::KeyMissing, what).hint(format!("chmod 600 {}", path.display()))
        );
    }
    Ok(Some(text))
}

/// Creates a signing key for a new ledger. It is on the disk before this returns, so that no ledger names a missing key.
pub(crate) fn create(data: &Path, instance: &str) -> Result<SigningKey, Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(internal)?;
    let key = SigningKey::from_seed(&format!("{INSTANCE_PREFIX}{instance}"), seed);
    let key = key.map_err(internal)?;
    write_text(data, FILE_NAME, &key.to_text())?;
    Ok(key)
}

/// The installation that a key belongs to.
pub(crate) fn instance(key: &SigningKey) -> Result<String, Error> {
    let name = key.verifying_key().name();
    let instance = name.strip_prefix(INSTANCE_PREFIX);
    instance.map(str::to_owned).ok_or_else(|| {
        Error::new(
            Code::KeyMissing,
            format!("the signing key belongs to `{name}`, which is not an installation"),
        )
    })
}

pub(crate) fn new_instance() -> String {
    Uuid::new_v4().to_string()
}

pub(crate) fn write_text(data: &Path, file_name: &str, text: &str) -> Result<(), Error> {
    let path = data.join(file_name);
    files::replace(&path, &format!("{text}\n")).map_err(|error| unwritable(&path, error))
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    let (code, hint) = match error.kind() {
        io::ErrorKind::StorageFull => (Code::DiskFull, "free some disk space and try again"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (Code::ReadOnly, "check the permissions of the data directory and of the files in it")
        }
        _ => (Code::Failed, "check the disk and try again"),
    };
    let what = format!("the key `{}` cannot be written: {error}", path.display());
    Error::new(code, what).hint(hint)
}

fn unreadable(path: &Path, name: &str, error: impl std::fmt::Display) -> Error {
    let what = format!("the {name} `{}` cannot be read: {error}", path.display());
    Error::new(Code::KeyMissing, what)
        .hint("restore the key file of this data directory from your backup")
}
