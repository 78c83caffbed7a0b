//! Writes a backup.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use api::{Code, Error, ProgressSink};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use tempfile::NamedTempFile;

use super::{
    FORMAT, HashingReader, MANIFEST_NAME, Manifest, Member, io_code, is_member_name, unwritable,
};

/// What goes into a backup: files below `root`, which do not change while it is written.
#[derive(Debug)]
pub(crate) struct BackupContent<'a> {
    pub(crate) root: &'a Path,
    pub(crate) names: Vec<String>,
    pub(crate) left_out: Vec<String>,
    pub(crate) version: &'a str,
    pub(crate) created_at: String,
}

/// Writes a new file that only its owner can read, and returns its size and manifest. The file appears under its name once it
/// is complete and on the disk; an existing file is not replaced.
pub(crate) fn write(
    content: &BackupContent<'_>,
    file: &Path,
    progress: &ProgressSink,
) -> Result<(u64, Manifest), Error> {
    let parent = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error| unwritable(file, &error);
    let staged = tempfile::Builder::new().prefix(".midwatch-backup-").tempfile_in(parent);
    let staged = staged.map_err(failed)?;
    let manifest = describe(content)?;
    // Written through a second handle, so that the file is removed if anything fails.
    let output = staged.reopen().map_err(failed)?;
    let bytes = write_archive(content, &manifest, output, progress)?;
    publish(staged, file, parent).map_err(failed)?;
    Ok((bytes, manifest))
}

/// Reads every file once, for its size and hash.
fn describe(content: &BackupContent<'_>) -> Result<Manifest, Error> {
    let mut files = Vec::with_capacity(content.names.len());
    for name in &content.names {
        if !is_member_name(name) {
            return Err(Error::new(Code::Failed, format!("`{name}` cannot be in a backup")));
        }
        let path = content.root.join(name);
        let (bytes, sha256) = hash(&path).map_err(|error| unreadable(&path, &error))?;
        files.push(Member { name: name.clone(), bytes, sha256 });
    }
    Ok(Manifest {
        format: FORMAT,
        version: content.version.to_owned(),
        created_at: content.created_at.clone(),
        left_out: content.left_out.clone(),
        files,
    })
}

/// Returns the size of the archive, which is on the disk then.
fn write_archive(
    content: &BackupContent<'_>,
    manifest: &Manifest,
    output: File,
    progress: &ProgressSink,
) -> Result<u64, Error> {
    let archive_failed = |error: io::Error| unwritable(Path::new(MANIFEST_NAME), &error);
    // The ledger's files are compressed already, and outputs compress well at any level.
    let mut archive = Builder::new(GzEncoder::new(BufWriter::new(output), Compression::fast()));
    let text =
        serde_json::to_vec_pretty(manifest).map_err(|error| Error::new(Code::Failed, error))?;
    let header = header(MANIFEST_NAME, text.len() as u64).map_err(archive_failed)?;
    archive.append(&header, text.as_slice()).map_err(archive_failed)?;
    let (mut done, total) = (0, manifest.bytes());
    for member in &manifest.files {
        let path = content.root.join(&member.name);
        append(&mut archive, member, &path).map_err(|error| unreadable(&path, &error))?;
        done += member.bytes;
        progress.show(done, total);
    }
    let finished = archive.into_inner().and_then(GzEncoder::finish);
    let output = finished.and_then(|it| it.into_inner().map_err(io::IntoInnerError::into_error));
    let output = output.map_err(archive_failed)?;
    output.sync_all().and_then(|()| output.metadata()).map(|it| it.len()).map_err(archive_failed)
}

fn hash(path: &Path) -> io::Result<(u64, String)> {
    let mut reader = HashingReader::new(files::open(path)?, u64::MAX);
    io::copy(&mut reader, &mut io::sink())?;
    Ok(reader.finish())
}

/// A file that grew since its hash was taken is cut off where it ended then. One that changed otherwise is an error.
fn append(archive: &mut Builder<impl Write>, member: &Member, path: &Path) -> io::Result<()> {
    let mut reader = HashingReader::new(files::open(path)?, member.bytes);
    archive.append(&header(&member.name, member.bytes)?, &mut reader)?;
    match reader.finish() == (member.bytes, member.sha256.clone()) {
        true => Ok(()),
        false => Err(io::Error::other("it was changed while the backup was written")),
    }
}

fn header(name: &str, bytes: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_path(name)?;
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Gives the complete file its name, unless that is taken.
fn publish(staged: NamedTempFile, file: &Path, parent: &Path) -> io::Result<()> {
    staged.persist_noclobber(file).map_err(|error| error.error)?;
    File::open(parent)?.sync_all()
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let what = format!("`{}` cannot be backed up: {error}", path.display());
    Error::new(io_code(error), what).hint("no backup was written; try again")
}
