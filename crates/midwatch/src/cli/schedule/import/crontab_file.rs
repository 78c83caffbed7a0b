//! Reads crontabs: files, directories such as `/etc/cron.d`, and the crontab of another user. Finds the name of the user
//! who imports them.

use std::fs;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use rustix::process::getuid;

use super::crontab::Layout;
use super::crontab_entries::Crontab;
use crate::cli::support::input::{read_file_or_stdin, unreadable};
use crate::context::Context;
use crate::user_names;

const CRONTAB_BYTES_MAX: u64 = 1 << 20;
/// The crontab of the system, which has a user column.
const SYSTEM_CRONTAB: &str = "/etc/crontab";
/// The name of directories whose files have a user column.
const SYSTEM_DIRECTORY: &str = "cron.d";
/// Where cron keeps the crontabs of users, by system.
const SPOOLS: [&str; 4] =
    ["/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/cron/tabs", "/var/spool/cron"];

/// Reads the crontabs at these paths, or that of `user` if there are none. `is_system` says that all have a user column.
pub(super) fn read_all(
    paths: &[PathBuf],
    user: Option<&str>,
    is_system: bool,
) -> Result<Vec<Crontab>, Error> {
    let mut files: Vec<(PathBuf, Layout)> = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(files_in(path)?.into_iter().map(|file| (file, Layout::System))),
            false => files.push((path.clone(), layout_of(path, is_system))),
        }
    }
    if paths.is_empty() {
        files.push((spool_file(user)?, Layout::User));
    }
    let is_single = files.len() == 1;
    let crontabs = files.into_iter().map(|(path, layout)| {
        let file = (!is_single).then(|| path.display().to_string());
        Ok(Crontab { file, text: read(&path)?, layout })
    });
    crontabs.collect()
}

fn layout_of(path: &Path, is_system: bool) -> Layout {
    let is_in_directory =
        path.parent().and_then(Path::file_name).is_some_and(|name| name == SYSTEM_DIRECTORY);
    match is_system || is_in_directory || path == Path::new(SYSTEM_CRONTAB) {
        true => Layout::System,
        false => Layout::User,
    }
}

/// The files of a directory that cron reads: not those with a dot or a tilde in their names, which editors and package
/// managers leave there.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| unreadable("directory", directory, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && !name.contains(['.', '~']) {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        false => Ok(files),
        true => {
            let what = format!("the directory `{}` has no crontabs", directory.display());
            Err(Error::new(Code::NotFound, what).hint("check the path"))
        }
    }
}

/// The crontab that cron keeps for a user.
fn spool_file(user: Option<&str>) -> Result<PathBuf, Error> {
    let Some(user) = user.filter(|user| !user.is_empty() && !user.contains(['/', '.'])) else {
        return Err(Error::new(Code::BadUsage, "no crontab is named").hint(
            "pass yours with `crontab -l | midwatch schedule import --from crontab -`, or name files, \
             directories such as /etc/cron.d, or `--user NAME`",
        ));
    };
    let files = SPOOLS.iter().map(|spool| Path::new(spool).join(user));
    let found = files.into_iter().find(|path| fs::File::open(path).is_ok());
    found.ok_or_else(|| {
        let what = format!("the crontab of user `{user}` does not exist, or you may not read it");
        Error::new(Code::NotFound, what).hint(format!(
            "pass it with `sudo crontab -l -u {user} | midwatch schedule import --from crontab - --user {user}`"
        ))
    })
}

fn read(path: &Path) -> Result<String, Error> {
    let text = read_file_or_stdin("crontab", path, CRONTAB_BYTES_MAX)?;
    match text.contains('\0') {
        false => Ok(text),
        true => {
            let what = format!("the crontab `{}` contains a NUL byte", path.display());
            Err(Error::new(Code::InvalidInput, what).hint("save it as UTF-8"))
        }
    }
}

/// The name in `/etc/passwd`, else the one in the environment, else the uid.
pub(super) fn user_name(context: &Context) -> String {
    let uid = getuid().as_raw();
    let in_environment =
        || ["LOGNAME", "USER"].iter().find_map(|name| context.environment.get(*name));
    user_names::user_name(uid).or_else(|| in_environment().cloned()).unwrap_or(uid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crontab_with_nul_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crontab");
        fs::write(&path, "0 3 * * * backup").unwrap();
        assert_eq!(read(&path), Ok("0 3 * * * backup".to_owned()));
        fs::write(&path, "a\0b").unwrap();
        assert_eq!(read(&path).unwrap_err().code, Code::InvalidInput);
    }

    #[test]
    fn directory_is_read_as_cron_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["php", "backup", ".placeholder", "old.dpkg-dist", "php~"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let crontabs = read_all(&[dir.path().to_owned()], None, false).unwrap();
        let names: Vec<_> = crontabs
            .iter()
            .map(|it| {
                let name = it.file.as_deref().unwrap().rsplit_once('/').unwrap().1;
                (name, it.layout)
            })
            .collect();
        assert_eq!(names, [("backup", Layout::System), ("php", Layout::System)]);
    }

    #[test]
    fn user_column_follows_from_the_path() {
        for (path, is_system, expected) in [
            ("/etc/crontab", false, Layout::System),
            ("/etc/cron.d/php", false, Layout::System),
            ("/srv/crontab", false, Layout::User),
            ("/srv/crontab", true, Layout::System),
            ("-", false, Layout::User),
        ] {
            assert_eq!(layout_of(Path::new(path), is_system), expected, "{path}");
        }
    }
}
