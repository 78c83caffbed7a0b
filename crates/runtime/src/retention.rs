//! How long files of the data directory are kept, and which of them are due for removal.
//!
//! Only files that can be lost are listed here: outputs of ended runs, rotated logs, the lines of exported months (their signed
//! manifests stay), and what an interrupted backup left. The ledger is kept for ever.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ledger::export::Month;

use crate::installation::OUTPUTS_FOLDER;

/// The folder of the exported ledger, within the data directory.
pub(crate) const EXPORTS_FOLDER: &str = "exports";
const LOGS_FOLDER: &str = "logs";
/// The daemon writes to it.
const CURRENT_LOG: &str = "midwatch.log";
/// A temporary folder of `backup create` begins with this.
pub const BACKUP_STAGING_PREFIX: &str = "backup-";
/// No backup takes longer.
const BACKUP_STAGING_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits of age and size. Zero: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub outputs_age: Duration,
    pub outputs_bytes: u64,
    pub logs_age: Duration,
    pub exports_age: Duration,
    pub exports_bytes: u64,
    /// Stored responses to idempotency keys.
    pub responses_age: Duration,
}

impl Default for Retention {
    fn default() -> Retention {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Retention {
            outputs_age: 90 * DAY,
            outputs_bytes: 10 << 30,
            logs_age: 90 * DAY,
            exports_age: Duration::ZERO,
            exports_bytes: 0,
            responses_age: 7 * DAY,
        }
    }
}

impl Retention {
    /// Whether lines of exported months may be removed.
    pub(crate) fn limits_exports(&self) -> bool {
        !self.exports_age.is_zero() || self.exports_bytes != 0
    }
}

/// What a file is, in the order of `cleanup`'s report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileClass {
    Output,
    Log,
    Export,
    Leftover,
}

/// A file or folder that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) class: FileClass,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Of its last change; for an export, of the end of its month.
    pub(crate) since_us: i64,
}

/// The files of a data directory that limits apply to.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredFiles(Vec<StoredFile>);

impl StoredFiles {
    /// Lists outputs of runs that are not live, rotated logs, exported months before `this_month`, and leftovers.
    pub(crate) fn find(
        data: &Path,
        this_month: Month,
        is_live: impl Fn(&str) -> bool,
    ) -> io::Result<StoredFiles> {
        let mut files = Vec::new();
        let mut add = |folder: &str, class, is_listed: &dyn Fn(&str) -> bool| -> io::Result<()> {
            for (name, path, metadata) in list(&data.join(folder))? {
                let is_fitting = metadata.is_dir() == (class == FileClass::Leftover);
                if is_fitting && is_listed(&name) {
                    let (bytes, since_us) = (metadata.len(), modified_us(&metadata));
                    files.push(StoredFile { class, path, bytes, since_us });
                }
            }
            Ok(())
        };
        add(OUTPUTS_FOLDER, FileClass::Output, &|name| !is_live(run_of(name)))?;
        add(LOGS_FOLDER, FileClass::Log, &|name| {
            name != CURRENT_LOG && name.starts_with(CURRENT_LOG)
        })?;
        add(EXPORTS_FOLDER, FileClass::Export, &|name| {
            month_of(name).is_some_and(|month| month < this_month)
        })?;
        add("", FileClass::Leftover, &|name| name.starts_with(BACKUP_STAGING_PREFIX))?;
        for file in files.iter_mut().filter(|file| file.class == FileClass::Export) {
            let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            file.since_us = month_of(name).and_then(end_of).unwrap_or(file.since_us);
        }
        Ok(StoredFiles(files))
    }

    /// The files that are too old, and the oldest of those that take too much space together.
    pub(crate) fn due(&self, retention: &Retention, now_us: i64) -> Vec<StoredFile> {
        let Retention { outputs_age, outputs_bytes, logs_age, exports_age, exports_bytes, .. } =
            *retention;
        let limits = [
            (FileClass::Output, outputs_age, outputs_bytes),
            (FileClass::Log, logs_age, 0),
            (FileClass::Export, exports_age, exports_bytes),
            (FileClass::Leftover, BACKUP_STAGING_AGE, 0),
        ];
        limits.into_iter().flat_map(|limits| self.due_of(limits, now_us)).collect()
    }

    fn due_of(
        &self,
        (class, age_max, bytes_max): (FileClass, Duration, u64),
        now_us: i64,
    ) -> Vec<StoredFile> {
        let mut files: Vec<&StoredFile> = self.0.iter().filter(|it| it.class == class).collect();
        files.sort_by_key(|file| (std::cmp::Reverse(file.since_us), file.path.clone()));
        let age_max_us = i64::try_from(age_max.as_micros()).unwrap_or(i64::MAX);
        let mut bytes: u64 = 0;
        let is_due = |file: &&&StoredFile| {
            bytes = bytes.saturating_add(file.bytes);
            let is_old = !age_max.is_zero() && age_max_us < now_us.saturating_sub(file.since_us);
            is_old || (bytes_max != 0 && bytes_max < bytes)
        };
        files.iter().filter(is_due).map(|file| (**file).clone()).collect()
    }
}

impl StoredFile {
    /// Removes the file. One that is gone already is not an error.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let removed = match self.class {
            FileClass::Leftover => fs::remove_dir_all(&self.path),
            FileClass::Output | FileClass::Log | FileClass::Export => fs::remove_file(&self.path),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Bytes in the folders of a data directory, and those of them that were written since an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderUse {
    pub(crate) outputs: u64,
    pub(crate) logs: u64,
    pub(crate) exports: u64,
    pub(crate) recent: u64,
}

impl FolderUse {
    pub(crate) fn measure(data: &Path, since_us: i64) -> FolderUse {
        let mut found = FolderUse::default();
        let mut sum = |folder: &str| -> u64 {
            let mut bytes: u64 = 0;
            for (_, _, metadata) in list(&data.join(folder)).unwrap_or_default() {
                bytes = bytes.saturating_add(metadata.len());
                // Logs replace each other, so they do not grow.
                if since_us <= modified_us(&metadata) && folder != LOGS_FOLDER {
                    found.recent = found.recent.saturating_add(metadata.len());
                }
            }
            bytes
        };
        let [outputs, logs, exports] = [OUTPUTS_FOLDER, LOGS_FOLDER, EXPORTS_FOLDER].map(&mut sum);
        FolderUse { outputs, logs, exports, ..found }
    }
}

/// The entries of a folder with UTF-8 names; none if it does not exist. Links are not followed.
fn list(folder: &Path) -> io::Result<Vec<(String, PathBuf, fs::Metadata)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        // The file may be gone by now.
        if let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata()) {
            found.push((name, entry.path(), metadata));
        }
    }
    Ok(found)
}

fn modified_us(metadata: &fs::Metadata) -> i64 {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The run that an output file belongs to: `run_…` of `run_…-1.txt`.
fn run_of(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(run, _)| run)
}

/// The month of a file with exported lines.
fn month_of(name: &str) -> Option<Month> {
    let month: Month = name.strip_prefix("ledger-")?.split_once('.')?.0.parse().ok()?;
    (month.lines_file_name() == name).then_some(month)
}

/// The end of a month in microseconds since 1970.
fn end_of(month: Month) -> Option<i64> {
    let first: jiff::civil::Date = format!("{month}-01").parse().ok()?;
    let next = first.checked_add(jiff::Span::new().months(1)).ok()?;
    Some(next.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

    fn file(class: FileClass, name: &str, bytes: u64, days: i64) -> StoredFile {
        StoredFile { class, path: name.into(), bytes, since_us: -days * DAY_US }
    }

    fn check(retention: Retention, files: &[StoredFile], expected: &[&str]) {
        let due = StoredFiles(files.to_vec()).due(&retention, 0);
        let due: Vec<&str> = due.iter().map(|file| file.path.to_str().unwrap()).collect();
        assert_eq!(due, expected, "{retention:?}");
    }

    #[test]
    fn files_past_their_age_are_due_and_one_at_the_limit_is_not() {
        let none = Retention {
            outputs_age: Duration::ZERO,
            outputs_bytes: 0,
            logs_age: Duration::ZERO,
            ..Retention::default()
        };
        let files = [
            file(FileClass::Output, "a", 1, 3),
            file(FileClass::Output, "b", 1, 2),
            file(FileClass::Log, "c", 1, 3),
            file(FileClass::Export, "d", 1, 99),
            file(FileClass::Leftover, "e", 1, 2),
            file(FileClass::Leftover, "f", 1, 1),
        ];
        check(none, &files, &["e"]);
        check(Retention { outputs_age: 2 * DAY, ..none }, &files, &["a", "e"]);
        check(Retention { logs_age: 2 * DAY, ..none }, &files, &["c", "e"]);
        check(Retention { exports_age: DAY, ..none }, &files, &["d", "e"]);
    }

    #[test]
    fn the_oldest_files_beyond_the_size_are_due() {
        let limit = |bytes| Retention { outputs_bytes: bytes, ..Retention::default() };
        let files = [
            file(FileClass::Output, "old", 5, 3),
            file(FileClass::Output, "older", 1, 4),
            file(FileClass::Output, "new", 5, 1),
        ];
        check(limit(11), &files, &[]);
        check(limit(10), &files, &["older"]);
        // A small old file does not stay in place of a large newer one.
        check(limit(9), &files, &["old", "older"]);
        check(limit(5), &files, &["old", "older"]);
        check(limit(4), &files, &["new", "old", "older"]);
    }

    #[test]
    fn an_export_gets_old_from_the_end_of_its_month_on() {
        let month = |text: &str| month_of(text).and_then(end_of);
        assert_eq!(month("ledger-1970-01.ndjson.gz"), Some(31 * DAY_US));
        assert_eq!(month("ledger-1970-12.ndjson.gz"), Some(365 * DAY_US));
        for name in ["ledger-1970-01.manifest", "ledger-1970-13.ndjson.gz", "x-1970-01.ndjson.gz"] {
            assert_eq!(month(name), None, "{name}");
        }
    }

    #[test]
    fn only_files_that_can_be_lost_are_found() {
        let data = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = data.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "12345").unwrap();
        };
        for name in [
            "midwatch.db",
            "signing.key",
            "outputs/run_1-1.txt",
            "outputs/run_2-1.txt",
            "logs/midwatch.log",
            "logs/midwatch.log.1",
            "exports/ledger-2026-09.ndjson.gz",
            "exports/ledger-2026-09.manifest",
            "exports/ledger-2026-10.ndjson.gz",
            "exports/notes.txt",
            "backup-1/signing.key",
        ] {
            write(name);
        }
        std::os::unix::fs::symlink("/etc", data.path().join("backup-2")).unwrap();
        let month = "2026-10".parse().unwrap();
        let found = StoredFiles::find(data.path(), month, |run| run == "run_2").unwrap();
        let mut names: Vec<&str> = found
            .0
            .iter()
            .map(|it| it.path.strip_prefix(data.path()).unwrap().to_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "backup-1",
                "exports/ledger-2026-09.ndjson.gz",
                "logs/midwatch.log.1",
                "outputs/run_1-1.txt",
            ]
        );
        let used = FolderUse::measure(data.path(), 0);
        assert_eq!((used.outputs, used.logs, used.exports, used.recent), (10, 10, 20, 30));
    }
}
