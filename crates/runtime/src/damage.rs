//! The verdict that a log is damaged, kept in the data directory, so that it outlives the process
//! that came to it.
//!
//! Invariant: while the file is there, nothing is written to the log. Its content only tells why.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE_NAME: &str = "damaged";
const REASON_BYTES_MAX: u64 = 4_096;

/// Why the log is held to be damaged, if it is. A verdict that cannot be read is one all the same.
pub(crate) fn read(data: &Path) -> Option<String> {
    let path = data.join(FILE_NAME);
    let mut reason = Vec::new();
    let opened = File::open(&path);
    match opened.and_then(|file| file.take(REASON_BYTES_MAX).read_to_end(&mut reason)) {
        Ok(_) => Some(String::from_utf8_lossy(&reason).trim_end().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("`{}` cannot be read: {error}", path.display())),
    }
}

/// It is on the disk when this returns.
pub(crate) fn keep(data: &Path, reason: &str) -> io::Result<()> {
    let path = data.join(FILE_NAME);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{reason}")?;
    file.sync_all()?;
    File::open(data)?.sync_all()
}

/// To be called only after every entry was verified.
pub fn forget_damage(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(FILE_NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(data)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_stays_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        assert_eq!(read(data), None);
        keep(data, "entry 2 was changed").unwrap();
        assert_eq!(read(data).as_deref(), Some("entry 2 was changed"));
        keep(data, &"long".repeat(5_000)).unwrap();
        assert_eq!(read(data).map(|reason| reason.len() as u64), Some(REASON_BYTES_MAX));
        forget_damage(data).unwrap();
        assert_eq!(read(data), None);
        forget_damage(data).unwrap();
        fs::create_dir(data.join(FILE_NAME)).unwrap();
        assert!(read(data).unwrap().contains("cannot be read"));
    }
}
