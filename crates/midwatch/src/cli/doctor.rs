//! `midwatch doctor`: what is wrong with this installation, and how to fix it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use api::{Code, Error, Status, StatusAsk};
use runtime::last_note;
use rustix::fs::Access;
use serde::Serialize;
use tokio::time::sleep;

use crate::access::ask;
use crate::config::Loaded;
use crate::context::Context;
use crate::output::{entries, table};

/// Less room than this on the disk deserves a warning.
const FREE_BYTES_MIN: u64 = 500 << 20;
/// How long a checkpoint that was just signed may be on its way to the copy.
const COPY_WAIT: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize)]
struct Answer {
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    result: Found,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    Ok,
    Warning,
    Wrong,
}

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let loaded = context.load_config();
    let mut checks = vec![configuration(context, &loaded), directory(context), room(context)];
    let mut signed = 0;
    let is_missing = match context.storage() {
        Ok(storage) => storage.is_missing(&context.directory),
        Err(_) => context.directory.has_database().map(|has| !has),
    };
    if is_missing.is_ok_and(|is_missing| !is_missing) {
        let key = key_file(&context.directory.path().join("signing.key"));
        let is_known = |error: &Error| match error.code {
            Code::ConfigInvalid => loaded.is_err(),
            Code::KeyMissing => key.result == Found::Wrong,
            _ => false,
        };
        let status = ask(context, StatusAsk {}).await;
        // What keeps the watch from being opened is told once.
        let is_told = status.as_ref().is_err_and(is_known);
        checks.push(key);
        if !is_told {
            checks.extend(watch(&status));
        }
        signed = status.map_or(0, |status| status.log.checkpoint);
    }
    checks.extend(separation(context));
    if let Ok(loaded) = &loaded {
        checks.push(checkpoint_copy(loaded, signed).await);
    }
    let is_wrong = checks.iter().any(|check| check.result == Found::Wrong);
    context.output.show(&Answer { checks }, page);
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether agents and the human at the terminal are told apart by more than good manners.
fn separation(context: &Context) -> Option<Check> {
    let owner = fs::metadata(context.directory.path()).ok()?.uid();
    let name = "separation";
    Some(match owner == rustix::process::getuid().as_raw() {
        false => Check::ok(name, "agents run as another user than you"),
        true => Check::warning(
            name,
            "only advisory: agents run as the same user as you",
            "what a run starts is told apart while the daemon lives, but it can read and change your \
             files; let the daemon run as a user of its own, and give commands as that user",
        ),
    })
}

fn page(answer: &Answer) -> String {
    let rows = answer.checks.iter().map(|check| {
        let mark = match check.result {
            Found::Ok => "ok",
            Found::Warning => "WARNING",
            Found::Wrong => "WRONG",
        };
        [mark.to_owned(), check.name.to_owned(), check.detail.clone()]
    });
    let mut text = table(["RESULT", "CHECK", "FOUND"], rows);
    for check in &answer.checks {
        if let Some(hint) = &check.hint {
            text.push_str(&format!("\n{}: {hint}", check.name));
        }
    }
    text
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, result: Found::Ok, detail: detail.into(), hint: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Check {
        Check { result: Found::Warning, hint: Some(hint.into()), ..Check::ok(name, detail) }
    }

    fn wrong(name: &'static str, error: &Error) -> Check {
        let detail = error.message.clone();
        Check { result: Found::Wrong, hint: error.hint.clone(), ..Check::ok(name, detail) }
    }
}

fn configuration(context: &Context, loaded: &Result<Loaded, Error>) -> Check {
    let name = "configuration";
    match loaded {
        Err(error) => Check::wrong(name, error),
        Ok(loaded) => match loaded.warnings.first() {
            None if context.config_path().exists() => {
                Check::ok(name, context.config_path().display().to_string())
            }
            None => Check::ok(name, "no file; the defaults are in effect"),
            Some(warning) => {
                Check::warning(name, warning.to_string(), "`midwatch config check` tells more")
            }
        },
    }
}

fn directory(context: &Context) -> Check {
    let (name, path) = ("data directory", context.directory.path());
    let shown = path.display();
    let Ok(found) = fs::metadata(path) else {
        let detail = format!("`{shown}` does not exist yet");
        return Check::warning(name, detail, "`midwatch up` makes it");
    };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let detail = format!("others can look into `{shown}` (mode {mode:o})");
        return Check::warning(name, detail, format!("chmod 700 {shown}"));
    }
    let uid = rustix::process::getuid().as_raw();
    if found.uid() != uid {
        let detail = format!("`{shown}` belongs to user {}, you are {uid}", found.uid());
        return Check::warning(name, detail, "run as its owner, or use another one with `--data`");
    }
    Check::ok(name, shown.to_string())
}

fn room(context: &Context) -> Check {
    let name = "room on the disk";
    let path = context.directory.path();
    let Ok(found) = rustix::fs::statvfs(path) else {
        return Check::ok(name, "not known before the directory exists");
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let detail = format!("{} MiB free", free >> 20);
    match free < FREE_BYTES_MIN {
        true => Check::warning(name, detail, "a full disk stops all changes until there is room"),
        false => Check::ok(name, detail),
    }
}

fn key_file(path: &Path) -> Check {
    let name = "signing key";
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) => Check {
            result: Found::Wrong,
            ..Check::warning(name, format!("`{shown}`: {error}"), "put back your copy of it")
        },
        Ok(found) if found.permissions().mode() & 0o077 != 0 => Check {
            result: Found::Wrong,
            ..Check::warning(
                name,
                format!("others can read `{shown}`"),
                format!("chmod 600 {shown}"),
            )
        },
        Ok(_) => Check::ok(name, "only its owner can read it"),
    }
}

fn watch(status: &Result<Status, Error>) -> Vec<Check> {
    let status = match status {
        Ok(status) => status,
        Err(error) => return vec![Check::wrong("watch", error)],
    };
    let kept = match status.watch.pid {
        Some(pid) => Check::ok("watch", format!("kept by process {pid}")),
        None => Check::warning("watch", "no daemon runs", "`midwatch up` starts one"),
    };
    let log = match &status.log.stopped {
        Some(reason) => Check {
            result: Found::Wrong,
            ..Check::warning(
                "log",
                reason,
                "`midwatch ledger verify` shows where; `midwatch up` writes again once it is sound",
            )
        },
        None => Check::ok("log", entries(status.log.entries)),
    };
    let clock = status.log.clock.as_ref().map(|what| {
        let hint =
            "set the clock right; until it has caught up with the log no budget of a day is new";
        Check::warning("clock", what, hint)
    });
    [kept, log].into_iter().chain(clock).collect()
}

/// The copy must have the newest checkpoint, that of the first `signed` entries, and take more.
async fn checkpoint_copy(loaded: &Loaded, signed: u64) -> Check {
    let name = "checkpoint copy";
    let Some(path) = &loaded.config.ledger.checkpoint_copy else {
        return Check::warning(
            name,
            "none: whoever can change all of the data directory can change the log unseen",
            "set `checkpoint_copy` under `[ledger]` to a file on another disk or machine",
        );
    };
    let shown = path.display();
    let detail = match (can_append(path), copied(path, signed).await) {
        (Err(error), _) => format!("`{shown}` cannot be written: {error}"),
        (_, Err(error)) => format!("`{shown}` cannot be read: {error}"),
        (_, Ok(0)) if 0 < signed => {
            format!("`{shown}` has no checkpoint, the log is signed up to {signed}")
        }
        (_, Ok(copied)) if copied < signed => {
            format!("`{shown}` ends at {copied} entries, the log is signed up to {signed}")
        }
        (Ok(()), Ok(_)) => return Check::ok(name, shown.to_string()),
    };
    let hint = "see that its folder is there and that the daemon may write to it, as a service by \
                `ReadWritePaths=`; the next checkpoint is appended then";
    Check { result: Found::Wrong, ..Check::warning(name, detail, hint) }
}

/// Whether a note could be appended. Looking makes no file.
fn can_append(path: &Path) -> io::Result<()> {
    match OpenOptions::new().append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        opened => opened.map(drop),
    }
}

/// How many entries the newest note in the copy vouches for.
async fn copied(path: &Path, signed: u64) -> io::Result<u64> {
    let look = || last_note(path).map(|note| note.map_or(0, |note| note.unverified().size));
    match look()? {
        copied if copied < signed => {
            sleep(COPY_WAIT).await;
            look()
        }
        copied => Ok(copied),
    }
}
