//! Unpacks a backup that anyone may have written.
//!
//! Only regular files are written, under names that the manifest lists and [`is_member_name`] allows, and never more bytes
//! than the manifest lists and the disk has. The caller removes the directory if this fails.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use api::{Code, Error, ProgressSink};
use flate2::bufread::GzDecoder;
use tar::{Archive, Entries, Entry, EntryType};

use super::{
    FORMAT, HashingReader, MANIFEST_BYTES_MAX, MANIFEST_NAME, Manifest, Member, is_member_name,
    unwritable,
};

/// What may follow the last member: zeros that fill a block of a tape.
const PADDING_BYTES_MAX: u64 = 1 << 20;

type Backup = GzDecoder<BufReader<File>>;

/// Unpacks a backup into a new, empty directory of this user, and returns its manifest. Everything is on the disk then.
pub(crate) fn unpack(
    backup: &Path,
    into: &Path,
    progress: &ProgressSink,
) -> Result<Manifest, Error> {
    let file = files::open_linked(backup).map_err(|error| unreadable(backup, &error))?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(file)));
    let manifest = unpack_members(&mut archive, backup, into, progress)?;
    // The checksum of the compressed data comes at the end.
    let mut rest = archive.into_inner().take(PADDING_BYTES_MAX + 1);
    match io::copy(&mut rest, &mut io::sink()) {
        Ok(bytes) if bytes <= PADDING_BYTES_MAX => {}
        Ok(_) => return Err(invalid(backup, "something follows its last file")),
        Err(error) => return Err(damaged(backup, &error)),
    }
    sync(into).map_err(|error| unwritable(into, &error))?;
    Ok(manifest)
}

fn unpack_members(
    archive: &mut Archive<Backup>,
    backup: &Path,
    into: &Path,
    progress: &ProgressSink,
) -> Result<Manifest, Error> {
    // Raw: extensions of the format, such as long names and links, are refused like every other type of member.
    let entries = archive.entries().map_err(|error| damaged(backup, &error))?;
    let mut entries = entries.raw(true);
    let manifest = read_manifest(&mut entries, backup)?;
    check_space(&manifest, into)?;
    let (mut done, total) = (0, manifest.bytes());
    for member in &manifest.files {
        let entry = next_entry(&mut entries, backup, &member.name)?;
        if entry.size() != member.bytes {
            let what = format!("`{}` has another size than its manifest lists", member.name);
            return Err(invalid(backup, &what));
        }
        unpack_member(entry, member, backup, into)?;
        done += member.bytes;
        progress.show(done, total);
    }
    match entries.next() {
        None => Ok(manifest),
        Some(Ok(_)) => Err(invalid(backup, "it has a file that its manifest does not list")),
        Some(Err(error)) => Err(damaged(backup, &error)),
    }
}

fn read_manifest(entries: &mut Entries<'_, Backup>, backup: &Path) -> Result<Manifest, Error> {
    let entry = next_entry(entries, backup, MANIFEST_NAME)?;
    if MANIFEST_BYTES_MAX < entry.size() {
        return Err(invalid(backup, "its manifest is too long"));
    }
    let mut text = Vec::new();
    entry
        .take(MANIFEST_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(|error| damaged(backup, &error))?;
    let manifest: Manifest = api::json::read(&text)
        .map_err(|error| invalid(backup, &format!("its manifest is invalid: {error}")))?;
    if manifest.format != FORMAT {
        let what = format!(
            "the backup `{}` has format {}, and this version reads format {FORMAT}",
            backup.display(),
            manifest.format
        );
        return Err(Error::new(Code::DataNewer, what).hint("use a newer version of Midwatch"));
    }
    let mut seen = BTreeSet::new();
    for Member { name, .. } in &manifest.files {
        if !is_member_name(name) || !seen.insert(name) {
            return Err(invalid(
                backup,
                &format!("its manifest lists {name:?}, which is not allowed"),
            ));
        }
    }
    Ok(manifest)
}

/// The next member, which must be a regular file of this name.
fn next_entry<'a>(
    entries: &mut Entries<'a, Backup>,
    backup: &Path,
    name: &str,
) -> Result<Entry<'a, Backup>, Error> {
    let entry = match entries.next() {
        Some(entry) => entry.map_err(|error| damaged(backup, &error))?,
        None => return Err(invalid(backup, &format!("`{name}` is missing"))),
    };
    let is_file = entry.header().entry_type() == EntryType::Regular;
    match is_file && *entry.path_bytes() == *name.as_bytes() {
        true => Ok(entry),
        false => Err(invalid(backup, &format!("it has something else in place of `{name}`"))),
    }
}

/// Refuses to fill the disk.
fn check_space(manifest: &Manifest, into: &Path) -> Result<(), Error> {
    let found = rustix::fs::statvfs(into).map_err(|error| unwritable(into, &error.into()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if manifest.bytes() <= free {
        return Ok(());
    }
    let what = format!(
        "the backup has {} MiB, and the disk of `{}` has {} MiB left",
        manifest.bytes() >> 20,
        into.display(),
        free >> 20
    );
    Err(Error::new(Code::DiskFull, what).hint(
        "free some disk space; `backup verify` unpacks below the directory that TMPDIR names",
    ))
}

fn unpack_member(
    entry: Entry<'_, Backup>,
    member: &Member,
    backup: &Path,
    into: &Path,
) -> Result<(), Error> {
    let path = into.join(&member.name);
    let failed = |error: io::Error| unwritable(&path, &error);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut file = files::create(&path).map_err(failed)?;
    let mut reader = HashingReader::new(entry, member.bytes);
    copy(&mut reader, &mut file).map_err(|error| match error {
        CopyError::Read(error) => damaged(backup, &error),
        CopyError::Write(error) => failed(error),
    })?;
    file.sync_all().map_err(failed)?;
    match reader.finish() == (member.bytes, member.sha256.clone()) {
        true => Ok(()),
        false => {
            let what = format!("`{}` differs from what its manifest lists", member.name);
            Err(invalid(backup, &what))
        }
    }
}

/// Which side of a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

fn copy(from: &mut impl Read, to: &mut impl io::Write) -> Result<(), CopyError> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        to.write_all(buffer.get(..read).unwrap_or_default()).map_err(CopyError::Write)?;
    }
}

/// Puts the names of all files on the disk.
fn sync(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    File::open(directory)?.sync_all()
}

fn unreadable(backup: &Path, error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::Failed,
    };
    Error::new(code, format!("the backup `{}` cannot be read: {error}", backup.display()))
        .hint("check the path and its permissions")
}

fn damaged(backup: &Path, error: &io::Error) -> Error {
    invalid(backup, &format!("it is cut off or damaged ({error})"))
}

fn invalid(backup: &Path, what: &str) -> Error {
    let what = format!("the backup `{}` cannot be used: {what}", backup.display());
    Error::new(Code::BackupInvalid, what).hint("use another copy of it, or an older backup")
}
