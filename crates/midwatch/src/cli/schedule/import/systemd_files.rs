//! Finds and reads the timers of systemd, with their services and drop-ins. `compat::import::systemd` translates them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use compat::import::systemd::{TimerUnit, UnitFile, service_name};

use crate::cli::support::input::{open, read_text, unreadable};

const UNIT_BYTES_MAX: u64 = 1 << 20;
const TIMER: &str = "timer";
/// Where units of the system are, the most important first. The first has those of the administrator.
const SYSTEM_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Where units of all users are.
const USER_DIRECTORIES: [&str; 2] = ["/etc/systemd/user", "/usr/lib/systemd/user"];
/// The folder, beside units, of links to enabled timers.
const ENABLED: &str = "timers.target.wants";

/// The directories of units. The first of each kind has those that were written on this machine.
struct Directories {
    user: Vec<PathBuf>,
    system: Vec<PathBuf>,
}

/// Reads the timers of these names, files and directories. Without any, reads those that the user and the administrator of
/// this machine wrote.
pub(super) fn read_timers(
    paths: &[PathBuf],
    environment: &BTreeMap<String, String>,
) -> Result<Vec<TimerUnit>, Error> {
    let directories = Directories::new(environment);
    let mut files = Vec::new();
    for path in paths {
        match path {
            path if path.is_dir() => files.extend(timers_in(path)?),
            path if path.components().count() == 1 && !path.exists() => {
                files.push(directories.find_timer(path)?);
            }
            path => files.push(path.clone()),
        }
    }
    if paths.is_empty() {
        let own = [directories.user.first(), directories.system.first()];
        for directory in own.into_iter().flatten().filter(|path| path.is_dir()) {
            files.extend(timers_in(directory)?);
        }
    }
    files.iter().map(|path| directories.read_timer(path)).collect()
}

/// The timers in a directory, by name.
fn timers_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| unreadable("directory", directory, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() && path.extension().is_some_and(|it| it == TIMER) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl Directories {
    fn new(environment: &BTreeMap<String, String>) -> Directories {
        let value =
            |name: &str| environment.get(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let config = value("XDG_CONFIG_HOME").or_else(|| Some(value("HOME")?.join(".config")));
        let own = config.map(|config| config.join("systemd/user"));
        let user = own.into_iter().chain(USER_DIRECTORIES.map(PathBuf::from));
        Directories { user: user.collect(), system: SYSTEM_DIRECTORIES.map(PathBuf::from).to_vec() }
    }

    /// The file of a timer, by name, with or without the suffix.
    fn find_timer(&self, name: &Path) -> Result<PathBuf, Error> {
        let name = name.display().to_string();
        let name = format!("{}.{TIMER}", name.trim_end_matches(&format!(".{TIMER}")));
        let found = find_unit(self.user.iter().chain(&self.system), &name);
        found.ok_or_else(|| {
            let what = format!("the timer `{name}` does not exist");
            Error::new(Code::NotFound, what)
                .hint("`systemctl list-timers` shows timers; name the file if it is elsewhere")
        })
    }

    fn read_timer(&self, path: &Path) -> Result<TimerUnit, Error> {
        let timer = read_unit(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = path.parent().unwrap_or(Path::new("."));
        let is_system = self.system.iter().any(|directory| directory == parent);
        let beside = [parent.to_owned()];
        let elsewhere = match (is_system, self.user.iter().any(|directory| directory == parent)) {
            (true, _) => self.system.as_slice(),
            (false, true) => self.user.as_slice(),
            (false, false) => &[],
        };
        let service_name = service_name(&name, &timer);
        let service = find_unit(beside.iter().chain(elsewhere), &service_name);
        let is_enabled = (!elsewhere.is_empty()).then(|| {
            elsewhere.iter().any(|directory| directory.join(ENABLED).join(&name).exists())
        });
        Ok(TimerUnit {
            service: service.map(|path| read_unit(&path)).transpose()?,
            name,
            timer,
            service_name,
            is_system,
            is_enabled,
        })
    }
}

/// The file of a unit. An instance such as `backup@home.service` may have only a template, `backup@.service`.
fn find_unit<'a>(
    directories: impl Iterator<Item = &'a PathBuf> + Clone,
    name: &str,
) -> Option<PathBuf> {
    let template = name.split_once('@').and_then(|(prefix, rest)| {
        let (_, suffix) = rest.rsplit_once('.')?;
        Some(format!("{prefix}@.{suffix}"))
    });
    [Some(name.to_owned()), template].into_iter().flatten().find_map(|name| {
        directories.clone().map(|directory| directory.join(&name)).find(|path| path.is_file())
    })
}

/// Reads a unit file and its drop-ins.
fn read_unit(path: &Path) -> Result<UnitFile, Error> {
    let read = |path: &Path| read_text("unit", path, open("unit", path)?, UNIT_BYTES_MAX);
    let mut texts = vec![read(path)?];
    let mut folder = path.as_os_str().to_owned();
    folder.push(".d");
    if let Ok(entries) = fs::read_dir(PathBuf::from(folder)) {
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut drop_ins: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|it| it == "conf")).collect();
        drop_ins.sort();
        for path in drop_ins {
            texts.push(read(&path)?);
        }
    }
    Ok(UnitFile::parse(texts.iter().map(String::as_str)))
}
