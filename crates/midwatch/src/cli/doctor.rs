//! `midwatch doctor`: what is wrong with this installation, and how to fix it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use api::{CheckAsk, Code, Error, Status, StatusAsk};
use kernel::posture::{self, Consequence, Finding};
use kernel::ruling::Posture;
use runtime::last_note;
use rustix::fs::Access;
use serde::Serialize;
use tokio::time::sleep;

use crate::access::ask;
use crate::checks;
use crate::config::Loaded;
use crate::context::Context;
use crate::output::{counted, entries, table};
use crate::storage::Storage;

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
    if let Ok(loaded) = &loaded {
        let seen = Seen::look(context, loaded).await;
        checks.extend(posture::Check::ALL.into_iter().flat_map(|check| seen.lines(check)));
        checks.extend(seen.kept());
        signed = seen.signed();
    }
    checks.extend(separation(context));
    if let Ok(loaded) = &loaded {
        checks.push(checkpoint_copy(loaded, signed).await);
    }
    let is_wrong = checks.iter().any(|check| check.result == Found::Wrong);
    context.output.show(&Answer { checks }, page);
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What there is to say about the checks that are made before the daemon starts.
struct Seen {
    posture: Posture,
    /// What was found around the watch, and what it found itself.
    found: Vec<Finding>,
    told: Vec<api::Finding>,
    orders: Result<usize, Error>,
    /// How the watch stands, or why it cannot be opened; nothing when there is none yet.
    status: Option<Result<Status, Error>>,
}

impl Seen {
    async fn look(context: &Context, loaded: &Loaded) -> Seen {
        let config = &loaded.config;
        let policy = context.policy();
        let data = context.directory.path();
        let orders = policy.and_then(|own| runtime::rules(config.posture, &own, data));
        let mut seen = Seen {
            posture: config.posture,
            found: checks::around(context, config),
            told: Vec::new(),
            orders: orders.map(|rules| rules.iter().count()),
            status: None,
        };
        let is_missing = match Storage::of(context, config) {
            Ok(storage) => storage.is_missing(&context.directory),
            Err(_) => context.directory.has_database().map(|has| !has),
        };
        if is_missing.is_ok_and(|is_missing| !is_missing) {
            let key = checks::signing_key(context).filter(|it| !seen.found.contains(it));
            seen.found.extend(key);
            seen.status = Some(seen.ask(context).await);
        }
        // With a daemon, the environment here is that of whoever asks.
        if !seen.opened().is_some_and(|status| status.watch.kept) {
            seen.found.extend(checks::environment(context));
        }
        seen
    }

    /// How the watch stands, and what it finds.
    async fn ask(&mut self, context: &Context) -> Result<Status, Error> {
        let status = ask(context, StatusAsk {}).await?;
        self.told = ask(context, CheckAsk {}).await?.findings;
        Ok(status)
    }

    /// All that there is to say about one of them, if it could be looked at.
    fn lines(&self, check: posture::Check) -> Vec<Check> {
        let name = check.name();
        if let (posture::Check::Orders, Err(error)) = (check, &self.orders) {
            return vec![Check::wrong(name, error)];
        }
        if let (posture::Check::Log, Some(status)) = (check, self.opened()) {
            return vec![log(status)];
        }
        let refuses = check.consequence(self.posture) == Consequence::Refuse;
        let around = self.found.iter().filter(|it| it.check == check);
        let around = around.map(|it| Check::found(name, refuses, &it.what, &it.fix));
        let told = self.told.iter().filter(|it| it.check == name);
        let told = told.map(|it| Check::found(name, it.refuses, &it.what, &it.fix));
        let lines: Vec<Check> = around.chain(told).collect();
        match lines.is_empty() {
            true => self.unopened(check).or_else(|| self.fine(check)).into_iter().collect(),
            false => lines,
        }
    }

    /// Why the watch cannot be opened, if it is for this.
    fn unopened(&self, check: posture::Check) -> Option<Check> {
        let error = self.status.as_ref()?.as_ref().err()?;
        (cause(error.code) == Some(check)).then(|| Check::wrong(check.name(), error))
    }

    /// That nothing is wrong, where it could be looked at.
    fn fine(&self, check: posture::Check) -> Option<Check> {
        use posture::Check as Is;
        let opened = self.opened();
        let detail = match check {
            Is::Files => "only their owner can read the data and change the orders".to_owned(),
            Is::StepDown => opened.map(|_| "no laxer than before".to_owned())?,
            Is::Secrets => "none is where agents could take it".to_owned(),
            Is::SharedSecrets => opened.map(|_| "each serves one end".to_owned())?,
            Is::CoreDumps => "the daemon turns them off".to_owned(),
            Is::Orders => {
                let rules = *self.orders.as_ref().ok()? as u64;
                format!("{} in order for {}", counted(rules, "rule", "rules"), self.posture)
            }
            Is::Schema => opened.map(|_| "of this version".to_owned())?,
            Is::Key => self.status.as_ref().map(|_| "only its owner can read it".to_owned())?,
            Is::Log => return None,
            Is::Clock => opened.map(|_| "not behind the log".to_owned())?,
            Is::Approvers => opened.map(|_| "there is somebody who can approve".to_owned())?,
        };
        Some(Check::ok(check.name(), detail))
    }

    /// Whether the watch is kept, or why it cannot be opened if no check is about that.
    fn kept(&self) -> Option<Check> {
        match self.status.as_ref()? {
            Ok(status) => Some(match status.watch.pid {
                Some(pid) => Check::ok("watch", format!("kept by process {pid}")),
                None => Check::warning("watch", "no daemon runs", "`midwatch up` starts one"),
            }),
            Err(error) if cause(error.code).is_some() => None,
            Err(error) => Some(Check::wrong("watch", error)),
        }
    }

    /// How many entries the newest checkpoint vouches for.
    fn signed(&self) -> u64 {
        self.opened().map_or(0, |status| status.log.checkpoint)
    }

    fn opened(&self) -> Option<&Status> {
        self.status.as_ref()?.as_ref().ok()
    }
}

/// The check that is about what a watch cannot be opened for.
fn cause(code: Code) -> Option<posture::Check> {
    match code {
        Code::PolicyInvalid => Some(posture::Check::Orders),
        Code::DataNewer => Some(posture::Check::Schema),
        Code::KeyMissing => Some(posture::Check::Key),
        Code::LogRewound | Code::LogDamaged => Some(posture::Check::Log),
        _ => None,
    }
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

    fn found(name: &'static str, refuses: bool, what: &str, fix: &str) -> Check {
        let result = if refuses { Found::Wrong } else { Found::Warning };
        Check { result, ..Check::warning(name, what, fix) }
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

fn log(status: &Status) -> Check {
    match &status.log.stopped {
        None => Check::ok("log", entries(status.log.entries)),
        Some(reason) => Check::found(
            "log",
            true,
            reason,
            "`midwatch ledger verify` shows where; `midwatch up` writes again once it is sound",
        ),
    }
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
