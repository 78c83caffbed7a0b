//! The signing key's file: made once, readable by its owner only, never replaced in silence.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use api::{Code, Error};
use ledger::SigningKey;
use uuid::Uuid;

use crate::errors::internal;

/// Beside the database, in the data directory.
const FILE_NAME: &str = "signing.key";
const INSTANCE_PREFIX: &str = "midwatch/";

pub(crate) fn path(data: &Path) -> PathBuf {
    data.join(FILE_NAME)
}

/// The key in the data directory, if there is one.
pub(crate) fn read(data: &Path) -> Result<Option<SigningKey>, Error> {
    let path = path(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&path, error)),
    };
    let mode = fs::metadata(&path).map_err(|error| unreadable(&path, error))?.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("others can read the signing key `{}`", path.display());
        return Err(
            Error::new(Code::KeyMissing, what).hint(format!("chmod 600 {}", path.display()))
        );
    }
    SigningKey::from_text(text.trim_end()).map(Some).map_err(|error| unreadable(&path, error))
}

/// A new key for a new log. It is on the disk before this returns, so that no log ever names a key
/// that is not there.
pub(crate) fn create(data: &Path, instance: &str) -> Result<SigningKey, Error> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(internal)?;
    let key = SigningKey::from_seed(&format!("{INSTANCE_PREFIX}{instance}"), seed);
    let key = key.map_err(internal)?;
    write(data, &key).map_err(|error| unwritable(&path(data), error))?;
    Ok(key)
}

/// The installation that a key belongs to.
pub(crate) fn instance(key: &SigningKey) -> Result<String, Error> {
    let name = key.verifying_key().name();
    let instance = name.strip_prefix(INSTANCE_PREFIX);
    instance.map(str::to_owned).ok_or_else(|| {
        Error::new(Code::KeyMissing, format!("the signing key belongs to `{name}`, not to a watch"))
    })
}

pub(crate) fn new_instance() -> String {
    Uuid::new_v4().to_string()
}

/// Written aside and renamed, so that there is never half a key.
fn write(data: &Path, key: &SigningKey) -> io::Result<()> {
    let aside = data.join(".signing.key.new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    writeln!(file, "{}", key.to_text())?;
    file.sync_all()?;
    fs::rename(&aside, path(data))?;
    File::open(data)?.sync_all()
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    let (code, hint) = match error.kind() {
        io::ErrorKind::StorageFull => (Code::DiskFull, "make room and try again"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (Code::ReadOnly, "check the permissions of the data directory and of the files in it")
        }
        _ => (Code::Failed, "check the disk and try again"),
    };
    let what = format!("the signing key `{}` cannot be written: {error}", path.display());
    Error::new(code, what).hint(hint)
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Error {
    let what = format!("the signing key `{}` cannot be read: {error}", path.display());
    Error::new(Code::KeyMissing, what)
        .hint("put back the key file of this data directory, from a copy that you kept")
}
