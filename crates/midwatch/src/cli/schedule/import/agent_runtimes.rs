//! Finds and reads the schedules of other agent runtimes: OpenClaw, Hermes and Letta Code. `compat::import` translates
//! them. Nothing is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use api::{Code, Error};
use compat::import::{Entry, Options, hermes, letta_code, list_in, openclaw, parse_json};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::machine_zone::ZoneSource;
use crate::cli::support::input::{open, read_text, unreadable};

const BYTES_MAX: u64 = 64 << 20;
const JOBS_MAX: usize = 100_000;
/// The first bytes of an SQLite database.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";

/// Where to look for the schedules, and what they depend on.
#[derive(Debug)]
pub(super) struct RuntimeSource<'a> {
    /// A file or directory, instead of where the program keeps its own.
    pub path: Option<&'a Path>,
    pub environment: &'a BTreeMap<String, String>,
    pub zone: &'a ZoneSource,
    pub agent: Option<&'a str>,
}

impl RuntimeSource<'_> {
    /// The folder of the program: the value of `variable`, else `folder` in the home directory.
    fn home(&self, variable: Option<&str>, folder: &str) -> Result<PathBuf, Error> {
        let value = |name: &str| self.environment.get(name).filter(|it| !it.is_empty());
        let named = variable.and_then(value).map(PathBuf::from);
        let in_home = || value("HOME").map(|home| Path::new(home).join(folder));
        named.or_else(in_home).ok_or_else(|| {
            Error::new(Code::NotFound, "the home directory is unknown").hint("name the file")
        })
    }

    /// Refuses a file that does not exist, and says where it was looked for.
    fn check_exists(&self, path: &Path, what: &str) -> Result<(), Error> {
        match path.exists() {
            true => Ok(()),
            false => {
                let what = format!("{what} were not found: `{}` does not exist", path.display());
                let hint = "name the file or directory that has them";
                Err(Error::new(Code::NotFound, what).hint(hint))
            }
        }
    }

    /// The file to read: the named one, or the first of `files` that exists in the named or usual directory.
    fn file(&self, home: &Path, files: &[&str]) -> PathBuf {
        let directory = match self.path {
            Some(path) if !path.is_dir() => return path.to_owned(),
            path => path.unwrap_or(home),
        };
        let paths: Vec<PathBuf> = files.iter().map(|file| directory.join(file)).collect();
        let found = paths.iter().find(|path| path.is_file()).or(paths.first());
        found.cloned().unwrap_or_else(|| directory.to_owned())
    }
}

/// Reads the database of OpenClaw, or the JSON of older versions and of `openclaw cron list --all --json`.
pub(super) fn read_openclaw(source: &RuntimeSource<'_>) -> Result<Vec<Entry>, Error> {
    let home = source.home(Some("OPENCLAW_STATE_DIR"), ".openclaw")?;
    let files = ["state/openclaw.sqlite", "cron/jobs.json", "openclaw.sqlite", "jobs.json"];
    let path = source.file(&home, &files);
    source.check_exists(&path, "the schedules of OpenClaw")?;
    let jobs = match is_database(&path)? {
        true => read_database(&path)?,
        false => read_list(&path, "jobs")?,
    };
    let zone = source.zone.or_configured(None)?;
    Ok(openclaw::entries(&jobs, &Options { agent: source.agent, zone: &zone }))
}

pub(super) fn read_hermes(source: &RuntimeSource<'_>) -> Result<Vec<Entry>, Error> {
    let home = source.home(Some("HERMES_HOME"), ".hermes")?;
    let path = source.file(&home, &["cron/jobs.json", "jobs.json"]);
    source.check_exists(&path, "the schedules of Hermes")?;
    let jobs = read_list(&path, "jobs")?;
    // The file is in the folder `cron` of an installation or profile.
    let home = path.parent().and_then(Path::parent).unwrap_or(&home);
    let variable = source.environment.get("HERMES_TIMEZONE").filter(|it| !it.is_empty());
    let configured = || configured_zone(&home.join("config.yaml"));
    let zone = source.zone.or_configured(variable.cloned().or_else(configured))?;
    let scripts = home.join("scripts").display().to_string();
    Ok(hermes::entries(&jobs, &scripts, &Options { agent: source.agent, zone: &zone }))
}

pub(super) fn read_letta_code(source: &RuntimeSource<'_>) -> Result<Vec<Entry>, Error> {
    let home = source.home(None, ".letta")?;
    let path = source.file(&home, &["crons.json"]);
    source.check_exists(&path, "the schedules of Letta Code")?;
    let tasks = read_list(&path, "tasks")?;
    let zone = source.zone.or_configured(None)?;
    Ok(letta_code::entries(&tasks, &Options { agent: source.agent, zone: &zone }))
}

fn is_database(path: &Path) -> Result<bool, Error> {
    let mut header = Vec::new();
    let limit = SQLITE_HEADER.len() as u64;
    let read = open("file", path)?.take(limit).read_to_end(&mut header);
    read.map_err(|error| unreadable("file", path, error))?;
    Ok(header == SQLITE_HEADER)
}

/// Reads the jobs of all stores in the database. The gateway may have it open, so nothing is locked for long.
fn read_database(path: &Path) -> Result<Vec<Value>, Error> {
    let failed = |error: rusqlite::Error| {
        let what = format!("`{}` cannot be read as a database: {error}", path.display());
        Error::new(Code::InvalidInput, what).hint(
            "name the database of OpenClaw, or pass the output of `openclaw cron list --all --json` as a file",
        )
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(path, flags).map_err(failed)?;
    let query = format!(
        "SELECT job_json FROM cron_jobs ORDER BY store_key, sort_order, job_id LIMIT {JOBS_MAX}"
    );
    let mut statement = database.prepare(&query).map_err(failed)?;
    let texts = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let mut jobs = Vec::new();
    for text in texts {
        jobs.push(parse_json("a job in the database", &text.map_err(failed)?)?);
    }
    Ok(jobs)
}

/// Reads a list from a JSON file.
fn read_list(path: &Path, name: &str) -> Result<Vec<Value>, Error> {
    let file: File = open("file", path)?;
    let text = read_text("file", path, file, BYTES_MAX)?;
    let document = parse_json(&format!("`{}`", path.display()), &text)?;
    list_in(document, name).ok_or_else(|| {
        let what = format!("`{}` has no list `{name}`", path.display());
        Error::new(Code::InvalidInput, what).hint("check that it is the right file")
    })
}

/// `timezone` at the top level of a YAML file.
fn configured_zone(path: &Path) -> Option<String> {
    let text = read_text("configuration", path, File::open(path).ok()?, BYTES_MAX).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("timezone:"))?;
    let value = value.split_once(" #").map_or(value, |(value, _)| value);
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}
