//! Approval by a token file: an operator puts `SCHEDULE.token` into the data directory, and it approves the pending approval
//! of that schedule.
//!
//! A file is renamed before it is used, so it approves at most once, also across a crash. A refused file stays as
//! `SCHEDULE.token.refused`, and the refusal is recorded in the ledger.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{Code, Error, json};
use calendar::parse_instant;
use kernel::agent::Agent;
use kernel::approval::{self, Approval, ApprovalContext, Command, OPEN, State, TokenFile};
use kernel::authority::Authority;
use kernel::schedule::Schedule;
use kernel::{Actor, ApprovalId, Noun, ScheduleId, Timestamp};
use serde_json::Value;
use store::{Newest, Store};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::authorize::approvals::{Approvals, find_approval};
use crate::authorize::audit::{Audit, AuditedCall};
use crate::authorize::authority::AuthorityControl;
use crate::commit::codec::decode_listed;
use crate::commit::rows::{Rows, row_key};
use crate::commit::run_context::run_context;
use crate::commit::transaction::{Transaction, Transactions};
use crate::config::Config;
use crate::errors::{self, internal};
use crate::installation::Installation;

/// The directory of token files, in the data directory.
const DIRECTORY: &str = "approvals/pending";
const SUFFIX: &str = ".token";
const REFUSED_SUFFIX: &str = ".refused";
const CHECK_EVERY: Duration = Duration::from_secs(1);
const FILE_BYTES_MAX: u64 = 4_096;
/// Open approvals that are searched.
const OPEN_MAX: usize = 10_000;
const CALL: &str = "approval.token_file";
const KEYS: [&str; 5] =
    ["schedule_id", "schedule_name", "approved_by", "approved_at", "expires_at"];

/// Approves runs by files that an operator puts into the data directory.
#[derive(Debug)]
pub(crate) struct ApprovalFiles {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) authority: Arc<AuthorityControl>,
    pub(crate) audit: Arc<Audit>,
}

impl ApprovalFiles {
    /// Checks for token files, for ever.
    pub(crate) async fn run(&self) -> Infallible {
        let directory = self.installation.settings.data.join(DIRECTORY);
        if let Err(error) = create_directories(&directory) {
            warn!(%error, "failed to create the directory of token files");
        }
        loop {
            let found = match self.config.active().trust.token_files {
                true if create_directories(&directory).is_ok() => find_token_files(&directory),
                _ => Vec::new(),
            };
            for (schedule, path) in found {
                if let Err(refused) = self.approve_by(&schedule, &path).await {
                    warn!(%refused, file = %path.display(), "refused a token file");
                    let by = &self.file_owner();
                    self.audit
                        .record_refusal(
                            AuditedCall { by, call: Some(CALL), subject: None },
                            &refused,
                        )
                        .await;
                }
            }
            sleep(CHECK_EVERY).await;
        }
    }

    /// Does nothing while the schedule has no pending approval, or the installation is frozen.
    async fn approve_by(&self, schedule: &ScheduleId, path: &Path) -> Result<(), Error> {
        let Some(id) = self.pending_approval_of(schedule).await? else { return Ok(()) };
        if self.authority.load().await?.frozen.is_some() {
            return Ok(());
        }
        let renamed = rename(path, REFUSED_SUFFIX).map_err(|error| invalid(&error))?;
        let text = read(&renamed).map_err(|error| invalid(&error))?;
        let token = parse(&text)?;
        self.approve(&id, schedule, &token).await?;
        info!(approval = %id, by = token.approved_by, "a token file approved a run");
        fs::remove_file(renamed).map_err(internal)
    }

    /// The pending approval of a schedule.
    async fn pending_approval_of(
        &self,
        schedule: &ScheduleId,
    ) -> Result<Option<ApprovalId>, Error> {
        let open = self
            .store
            .list_newest(Newest {
                noun: Noun::Approval.name(),
                index_key: Some(OPEN),
                before: "",
                limit: OPEN_MAX,
            })
            .await;
        for item in open.map_err(errors::store)? {
            let (id, approval) = decode_listed::<Approval>(&item)?;
            let is_pending = matches!(approval.state, State::Pending { .. });
            if is_pending && approval.plan.schedule == *schedule {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    async fn approve(
        &self,
        id: &ApprovalId,
        schedule: &ScheduleId,
        token: &TokenFile,
    ) -> Result<(), Error> {
        let (mut rows, reads) = self.approvals.rows_of(id).await?;
        rows.push(row_key::<Authority>(&self.installation.instance));
        let loaded = self.transactions.load(&[row_key::<Approval>(id)]).await?;
        let agent = find_approval(&loaded, id)?.plan.agent.clone();
        let actor = self.file_owner();
        let transaction = Transaction { rows, reads, ..Transaction::by(&actor) };
        let decide = |rows: &Rows, now: Timestamp| {
            let approval = find_approval(rows, id)?;
            let agent = agent.as_ref().and_then(|name| rows.get::<Agent>(name));
            let changed_at = rows.get::<Schedule>(schedule).map(|it| it.changed_at);
            let changed_at = changed_at.max(agent.map(|it| it.changed_at));
            let changed_at = changed_at.ok_or_else(|| internal("an approval has no schedule"))?;
            token.check_applies(schedule, changed_at, now).map_err(|error| invalid(&error))?;
            let run_context = run_context(rows, &approval.plan.run, schedule, now)
                .ok_or_else(|| internal("an approval has no run"))?;
            let note = Some(format!("token file of {}", token.approved_by));
            let shown = approval.plan_hash.clone();
            let command = Command::Approve { shown, note, signed: None };
            let config = self.config.active();
            let active_policy = config.rules.version();
            let context = ApprovalContext { id, approval, run_context, agent, active_policy };
            approval::decide(
                context,
                &rows.authority_of(&self.installation.instance),
                &actor,
                command,
            )
            .map_err(errors::refused)
        };
        self.transactions.commit(transaction, decide).await?;
        self.authority.renew_lease_on_activity(&actor).await;
        Ok(())
    }

    /// The user that owns the directory and so wrote the file. The name in the file is not verified.
    fn file_owner(&self) -> Actor {
        Actor::local_user(rustix::process::geteuid().as_raw())
    }
}

/// Creates the directory of token files and the one above it. Fails if one of them is a link.
fn create_directories(directory: &Path) -> io::Result<()> {
    directory.parent().map_or(Ok(()), files::create_directory)?;
    files::create_directory(directory)
}

/// Every file with the name of a token file, and its schedule.
fn find_token_files(directory: &Path) -> Vec<(ScheduleId, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name();
        let schedule = name.to_str()?.strip_suffix(SUFFIX)?.parse().ok()?;
        Some((schedule, entry.path()))
    });
    found.collect()
}

/// Reads a regular file that only this user can read and write.
fn read(path: &Path) -> io::Result<String> {
    let file = files::open(path)?;
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    let fits = metadata.nlink() == 1 && metadata.len() <= FILE_BYTES_MAX;
    if !fits || !is_own || metadata.mode() & 0o077 != 0 {
        let what = "it must be a regular file of this user with mode 0600, of at most 4096 bytes";
        return Err(io::Error::other(what));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Result<TokenFile, Error> {
    let document: Value = json::read(text.as_bytes()).map_err(|error| invalid(&error))?;
    let Value::Object(fields) = &document else {
        return Err(invalid(&"not a JSON object"));
    };
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(invalid(&format!("unknown key `{key}`")));
    }
    if let Some((key, _)) = fields.iter().find(|(_, value)| !value.is_string()) {
        return Err(invalid(&format!("`{key}` is not a string")));
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let instant = |key: &str| match text(key) {
        Some(at) => parse_instant(at, None).map(Timestamp::from_micros).map(Some),
        None => Ok(None),
    };
    let instant = |key: &str| instant(key).map_err(|error| invalid(&format!("`{key}`: {error}")));
    let schedule = text("schedule_id").map(str::parse).transpose();
    let approved_by = text("approved_by").filter(|by| !by.is_empty());
    Ok(TokenFile {
        schedule: schedule.map_err(|error| invalid(&error))?,
        approved_by: approved_by.ok_or_else(|| invalid(&"`approved_by` is missing"))?.to_owned(),
        approved_at: instant("approved_at")?.ok_or_else(|| invalid(&"`approved_at` is missing"))?,
        expires_at: instant("expires_at")?,
    })
}

/// Renames a file and syncs its directory, so that it is not used again after a crash. A file that cannot be renamed is
/// removed, or it would be read every second.
fn rename(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let mut renamed = path.as_os_str().to_owned();
    renamed.push(suffix);
    if let Err(error) = fs::rename(path, &renamed) {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(renamed.into())
}

fn invalid(what: &dyn std::fmt::Display) -> Error {
    Error::new(Code::TokenInvalid, format!("invalid token file: {what}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn parses_valid_token_files_and_refuses_others() {
        let good = [
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z"}"#,
            r#"{"schedule_id": "sch_0a1b2c3d", "schedule_name": "inbox", "approved_by": "ada",
                "approved_at": "2026-11-16T10:00:00+01:00", "expires_at": "2026-11-16T10:00:00Z"}"#,
        ];
        for text in good {
            let token = parse(text).unwrap();
            assert_eq!(
                (token.approved_by.as_str(), token.approved_at.as_micros()),
                ("ada", 1_794_819_600_000_000)
            );
        }
        let bad = [
            "",
            "[]",
            r#"{"approved_at": "2026-11-16T09:00:00Z"}"#,
            r#"{"approved_by": "", "approved_at": "2026-11-16T09:00:00Z"}"#,
            r#"{"approved_by": "ada"}"#,
            r#"{"approved_by": "ada", "approved_at": "yesterday"}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00"}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z", "role": "maintainer"}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z", "schedule_id": "all"}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z", "schedule_id": 1}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z", "schedule_name": null}"#,
            r#"{"approved_by": "ada", "approved_at": "2026-11-16T09:00:00Z", "expires_at": 1}"#,
            r#"{"approved_by": "ada", "approved_by": "eve", "approved_at": "2026-11-16T09:00:00Z"}"#,
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_only_a_private_regular_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, text: &str, mode: u32| {
            fs::write(path(name), text).unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        write("good", "{}", 0o600);
        write("readable", "{}", 0o640);
        write("long", &" ".repeat(4_097), 0o600);
        write("twice", "{}", 0o600);
        fs::hard_link(path("twice"), path("other")).unwrap();
        std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read(&path("good")).unwrap(), "{}");
        for name in ["readable", "long", "twice", "link", "directory", "pipe", "missing"] {
            assert!(read(&path(name)).is_err(), "{name}");
        }
    }
}
