//! `midwatch doctor`: checks this installation and explains how to fix what is wrong.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use api::{Code, Error, SetupCheck, Status, StatusShow};
use kernel::posture::{self, Consequence, Finding, Posture};
use runtime::read_last_note;
use rustix::fs::Access;
use serde::Serialize;
use tokio::time::sleep;

use super::support::render::{count_of, entries};
use crate::access::send;
use crate::config::Loaded;
use crate::context::Context;
use crate::daemon::tcp_sockets::{PortHolder, describe, port_holders};
use crate::local_checks;
use crate::storage::Storage;
use crate::view::View;
use crate::wrap::wrap;

/// Free disk space below which there is a warning.
const FREE_BYTES_MIN: u64 = 500 << 20;
/// How long a new checkpoint may take to reach the copy.
const COPY_WAIT: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize)]
struct Answer {
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    result: CheckResult,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckResult {
    Ok,
    Warning,
    Wrong,
}

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let loaded = context.load_config();
    let mut checks =
        vec![check_config(context, &loaded), check_directory(context), check_disk(context)];
    let (mut signed, mut daemon) = (0, None);
    if let Ok(loaded) = &loaded {
        let startup = StartupChecks::collect(context, loaded).await;
        checks.extend(posture::Check::ALL.into_iter().flat_map(|check| startup.results(check)));
        checks.extend(startup.daemon());
        checks.extend(startup.store(context));
        checks.push(startup.notices(loaded));
        signed = startup.signed_entries();
        daemon = startup.opened().and_then(|status| status.daemon.pid);
    }
    checks.extend(check_separation(context));
    if let Ok(loaded) = &loaded {
        checks.extend(check_port(loaded, daemon));
        checks.push(check_checkpoint_copy(loaded, signed).await);
    }
    let is_wrong = checks.iter().any(|check| check.result == CheckResult::Wrong);
    context.output.show(&Answer { checks }, |answer| render(answer, &context.view));
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The results of the checks that also run before the daemon starts.
struct StartupChecks {
    posture: Posture,
    /// Findings of this process, about files and the environment.
    local: Vec<Finding>,
    /// Findings of the engine.
    engine: Vec<api::Finding>,
    /// The number of rules, or why they cannot be loaded.
    policy: Result<usize, Error>,
    /// The status, or why the data cannot be opened; `None` if there is no data yet.
    status: Option<Result<Status, Error>>,
}

impl StartupChecks {
    async fn collect(context: &Context, loaded: &Loaded) -> StartupChecks {
        let config = &loaded.config;
        let policy = context.policy();
        let data = context.directory.path();
        let policy = policy.and_then(|own| runtime::rules(config.posture, &own, data));
        let mut checks = StartupChecks {
            posture: config.posture,
            local: local_checks::check_files_and_process(context, config),
            engine: Vec::new(),
            policy: policy.map(|rules| rules.iter().count()),
            status: None,
        };
        let is_missing = match Storage::of(context, config) {
            Ok(storage) => storage.is_missing(&context.directory),
            Err(_) => context.directory.has_database().map(|has| !has),
        };
        if is_missing.is_ok_and(|is_missing| !is_missing) {
            let key =
                local_checks::check_signing_key(context).filter(|it| !checks.local.contains(it));
            checks.local.extend(key);
            checks.status = Some(checks.load_from_engine(context).await);
        }
        // If a daemon runs, its environment counts and not that of this command.
        if !checks.opened().is_some_and(|status| status.daemon.running) {
            checks.local.extend(local_checks::check_environment(context));
        }
        checks
    }

    /// Loads the status and the findings of the engine.
    async fn load_from_engine(&mut self, context: &Context) -> Result<Status, Error> {
        let status = send(context, StatusShow {}).await?;
        self.engine = match send(context, SetupCheck {}).await {
            Ok(checked) => checked.findings,
            // An agent may not see them, because they name other agents.
            Err(refused) if refused.code == Code::RoleTooLow => Vec::new(),
            Err(failed) => return Err(failed),
        };
        Ok(status)
    }

    /// The results of one check; none if it could not run.
    fn results(&self, check: posture::Check) -> Vec<Check> {
        let name = check.name();
        if let (posture::Check::Policy, Err(error)) = (check, &self.policy) {
            return vec![Check::error(name, error)];
        }
        if let (posture::Check::Ledger, Some(status)) = (check, self.opened()) {
            return vec![check_ledger(status)];
        }
        let refuses = check.consequence(self.posture) == Consequence::Refuse;
        let local = self.local.iter().filter(|it| it.check == check);
        let local = local.map(|it| Check::finding(name, refuses, &it.problem, &it.fix));
        let engine = self.engine.iter().filter(|it| it.check == name);
        let engine = engine.map(|it| Check::finding(name, it.refuses, &it.what, &it.fix));
        let results: Vec<Check> = local.chain(engine).collect();
        match results.is_empty() {
            true => self.unopened(check).or_else(|| self.passed(check)).into_iter().collect(),
            false => results,
        }
    }

    /// The error that kept the data from being opened, if this check is about it.
    fn unopened(&self, check: posture::Check) -> Option<Check> {
        let error = self.status.as_ref()?.as_ref().err()?;
        (check_for(error.code) == Some(check)).then(|| Check::error(check.name(), error))
    }

    /// The result of a check without findings; none if it could not run.
    fn passed(&self, check: posture::Check) -> Option<Check> {
        use posture::Check as Is;
        let opened = self.opened();
        let detail = match check {
            Is::Files => "only their owner can read the data and change the rules".to_owned(),
            Is::PostureDowngrade => opened.map(|_| "not laxer than before".to_owned())?,
            Is::Secrets => "no secret is within reach of agents".to_owned(),
            Is::SharedSecrets => opened.map(|_| "no secret is used twice".to_owned())?,
            Is::CoreDumps => "turned off by the daemon".to_owned(),
            Is::Policy => {
                let rules = *self.policy.as_ref().ok()? as u64;
                let rules = count_of(rules, "rule", "rules");
                format!("{rules}, all valid (posture {})", self.posture)
            }
            Is::Schema => opened.map(|_| "matches this version".to_owned())?,
            Is::Key => self.status.as_ref().map(|_| "only its owner can read it".to_owned())?,
            Is::Ledger => return None,
            Is::Clock => opened.map(|_| "not behind the ledger".to_owned())?,
            Is::ClockAhead => opened.map(|_| "not far ahead of the ledger".to_owned())?,
            Is::WorkingDirectories => {
                opened.map(|_| "agents can write to their working directories".to_owned())?
            }
            Is::Approvers => opened.map(|_| "enough approvers are set up".to_owned())?,
            Is::ScheduleApprovers => {
                opened.map(|_| "enough people besides authors can approve".to_owned())?
            }
        };
        Some(Check::ok(check.name(), detail))
    }

    /// Whether a daemon runs, or why the data cannot be opened if no other check is about that.
    fn daemon(&self) -> Option<Check> {
        match self.status.as_ref()? {
            Ok(status) => Some(match status.daemon.pid {
                Some(pid) => Check::ok("daemon", format!("running, pid {pid}")),
                None => Check::warning(
                    "daemon",
                    "none is running, so nothing fires",
                    "start it with `midwatch up`",
                ),
            }),
            Err(error) if check_for(error.code).is_some() => None,
            Err(error) => Some(Check::error("daemon", error)),
        }
    }

    /// Which store is used, and whether an old one lies beside it.
    fn store(&self, context: &Context) -> Option<Check> {
        let store = &self.opened()?.daemon.store;
        let file = context.directory.database();
        match store.contains("is not used") {
            false => Some(Check::ok("store", store)),
            true => {
                let hint = format!("once you are sure, move `{}` away", file.display());
                Some(Check::warning("store", store, hint))
            }
        }
    }

    /// Whether anyone is notified.
    fn notices(&self, loaded: &Loaded) -> Check {
        let name = "notices";
        if !loaded.config.notice.is_configured() {
            let hint = "set `notice.command` or `notice.url`, then `midwatch notice test`";
            return Check::warning(
                name,
                "none: no one is notified when a run fails or waits",
                hint,
            );
        }
        let channels = self.opened().map(|status| status.notices.as_slice()).unwrap_or_default();
        let failing = channels.iter().find_map(|channel| {
            let what = channel.last_failure.as_ref().map(|it| it.what.as_str()).unwrap_or_default();
            let since = channel.failing_since.as_ref()?;
            Some(format!("`{}` has failed since {since}: {what}", channel.channel))
        });
        match failing {
            Some(found) => Check::warning(name, found, "`midwatch notice test` tries it again"),
            None => {
                let names: Vec<&str> = channels.iter().map(|it| it.channel.as_str()).collect();
                let names = names.join(", ");
                Check::ok(name, if names.is_empty() { "configured".to_owned() } else { names })
            }
        }
    }

    /// The number of entries that the newest checkpoint covers.
    fn signed_entries(&self) -> u64 {
        self.opened().map_or(0, |status| status.ledger.checkpoint)
    }

    fn opened(&self) -> Option<&Status> {
        self.status.as_ref()?.as_ref().ok()
    }
}

/// The check that an error on opening the data belongs to.
fn check_for(code: Code) -> Option<posture::Check> {
    match code {
        Code::PolicyInvalid => Some(posture::Check::Policy),
        Code::DataNewer => Some(posture::Check::Schema),
        Code::KeyMissing => Some(posture::Check::Key),
        Code::LogRewound | Code::LogDamaged => Some(posture::Check::Ledger),
        _ => None,
    }
}

/// Whether agents run as another user than the person at the terminal.
fn check_separation(context: &Context) -> Option<Check> {
    let owner = fs::metadata(context.directory.path()).ok()?.uid();
    let name = "separation";
    Some(match owner == rustix::process::getuid().as_raw() {
        false => Check::ok(name, "agents run as another user than you"),
        true => Check::warning(
            name,
            "`command` agents run as your user and can read and change your files and this data",
            "rules are only advisory for them; run the daemon as a separate user, and give commands as that user",
        ),
    })
}

/// Whether another process than the daemon answers at its port of either loopback address. A process of this user counts if
/// it is known not to be the daemon.
fn check_port(loaded: &Loaded, daemon: Option<u32>) -> Option<Check> {
    let port = loaded.config.http.listen.filter(|address| address.port() != 0)?.port();
    let own = rustix::process::getuid().as_raw();
    let is_daemon = |pid: i32| u32::try_from(pid).ok() == daemon;
    let is_foreign = |holder: &PortHolder| match holder.processes.is_empty() {
        true => holder.uid != own,
        false => !holder.processes.iter().any(|(pid, _)| is_daemon(*pid)),
    };
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    loopback.into_iter().find_map(|ip| {
        let address = SocketAddr::new(ip, port);
        let foreign: Vec<PortHolder> =
            port_holders(address).into_iter().filter(is_foreign).collect();
        let found = format!("{} listens on {address}", describe(&foreign)?);
        let hint =
            "enter no token on its pages; end that process, or set another port with `http.listen`";
        Some(Check::warning("port", found, hint))
    })
}

/// The columns of the results before the checks.
const RESULT_COLUMNS: usize = 9;

/// One line per check, with what to do about it below.
fn render(answer: &Answer, view: &View) -> String {
    let indent = " ".repeat(RESULT_COLUMNS);
    let width = view.width.saturating_sub(RESULT_COLUMNS);
    let lines = answer.checks.iter().map(|check| {
        let result = match check.result {
            CheckResult::Ok => "ok",
            CheckResult::Warning => "WARNING",
            CheckResult::Wrong => "WRONG",
        };
        // Below the first line there may be an excerpt of a file, which stays as it is.
        let (found, excerpt) = check.detail.split_once('\n').unwrap_or((&check.detail, ""));
        let found = wrap(&format!("{}: {}", check.name, view.localize(found)), width, "");
        let hint = check.hint.as_ref().map(|hint| wrap(&format!("→ {hint}"), width, "  "));
        let below = excerpt.lines().map(str::to_owned).chain(hint);
        let text = std::iter::once(found).chain(below).collect::<Vec<_>>().join("\n");
        format!("{result:<RESULT_COLUMNS$}{}", text.replace('\n', &format!("\n{indent}")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Check {
        Check { name, result: CheckResult::Ok, detail: detail.into(), hint: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Check {
        Check { result: CheckResult::Warning, hint: Some(hint.into()), ..Check::ok(name, detail) }
    }

    fn finding(name: &'static str, refuses: bool, problem: &str, fix: &str) -> Check {
        let result = if refuses { CheckResult::Wrong } else { CheckResult::Warning };
        Check { result, ..Check::warning(name, problem, fix) }
    }

    fn error(name: &'static str, error: &Error) -> Check {
        let detail = error.message.clone();
        Check { result: CheckResult::Wrong, hint: error.hint.clone(), ..Check::ok(name, detail) }
    }
}

fn check_config(context: &Context, loaded: &Result<Loaded, Error>) -> Check {
    let name = "configuration";
    match loaded {
        Err(error) => Check::error(name, error),
        Ok(loaded) => match loaded.warnings.first() {
            None if context.config_path().exists() => {
                Check::ok(name, context.config_path().display().to_string())
            }
            None => Check::ok(name, "no file; the defaults are active"),
            Some(warning) => {
                Check::warning(name, warning.to_string(), "see `midwatch config check`")
            }
        },
    }
}

fn check_directory(context: &Context) -> Check {
    let (name, path) = ("data directory", context.directory.path());
    let shown = path.display();
    let Ok(found) = fs::metadata(path) else {
        let detail = format!("`{shown}` does not exist yet");
        return Check::warning(name, detail, "`midwatch up` creates it");
    };
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let detail = format!("other users can read `{shown}` (mode {mode:o})");
        return Check::warning(name, detail, format!("chmod 700 {shown}"));
    }
    let uid = rustix::process::getuid().as_raw();
    if found.uid() != uid {
        let detail = format!("`{shown}` belongs to user {}, you are {uid}", found.uid());
        return Check::warning(name, detail, "run as its owner, or name another with `--data`");
    }
    Check::ok(name, shown.to_string())
}

fn check_disk(context: &Context) -> Check {
    let name = "disk space";
    let path = context.directory.path();
    let Ok(found) = rustix::fs::statvfs(path) else {
        return Check::ok(name, "unknown until the data directory exists");
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let detail = format!("{} MiB free", free >> 20);
    match free < FREE_BYTES_MIN {
        true => Check::warning(name, detail, "free some space: a full disk stops all changes"),
        false => Check::ok(name, detail),
    }
}

fn check_ledger(status: &Status) -> Check {
    match &status.ledger.stopped {
        None => Check::ok("ledger", entries(status.ledger.entries)),
        Some(reason) => Check::finding(
            "ledger",
            true,
            reason,
            "`midwatch ledger verify` shows where; `midwatch up` writes again once it is sound",
        ),
    }
}

/// The copy must be writable and have the newest checkpoint, which covers the first `signed` entries.
async fn check_checkpoint_copy(loaded: &Loaded, signed: u64) -> Check {
    let name = "checkpoint copy";
    let Some(path) = &loaded.config.ledger.checkpoint_copy else {
        return Check::warning(
            name,
            "none: replacing the whole data directory would go unnoticed",
            "set `checkpoint_copy` under `[ledger]` to a file on another disk or machine",
        );
    };
    let shown = path.display();
    let detail = match (can_append(path), copied_entries(path, signed).await) {
        (Err(error), _) => format!("`{shown}` cannot be written: {error}"),
        (_, Err(error)) => format!("`{shown}` cannot be read: {error}"),
        (_, Ok(0)) if 0 < signed => {
            format!("`{shown}` has no checkpoint, but the ledger is signed up to entry {signed}")
        }
        (_, Ok(copied)) if copied < signed => {
            format!(
                "`{shown}` ends at entry {copied}, but the ledger is signed up to entry {signed}"
            )
        }
        (Ok(()), Ok(_)) => return Check::ok(name, shown.to_string()),
    };
    let hint = "check that its folder exists and that the daemon may write to it (in a systemd unit: \
                `ReadWritePaths=`); the next checkpoint is appended then";
    Check { result: CheckResult::Wrong, ..Check::warning(name, detail, hint) }
}

/// Whether a note could be appended. Creates no file.
fn can_append(path: &Path) -> io::Result<()> {
    match files::append_existing(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        opened => opened.map(drop),
    }
}

/// The number of entries that the newest note in the copy covers.
async fn copied_entries(path: &Path, signed: u64) -> io::Result<u64> {
    let read = || read_last_note(path).map(|note| note.map_or(0, |note| note.unverified().size));
    match read()? {
        copied if copied < signed => {
            sleep(COPY_WAIT).await;
            read()
        }
        copied => Ok(copied),
    }
}
