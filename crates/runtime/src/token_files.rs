//! Approvals by a file: whoever may write into the data directory puts `SCHEDULE.token` there, and the
//! question that its schedule asks is answered with it.
//!
//! A file gets another name before it is obeyed, so it approves once at most, through every crash. What
//! is not obeyed stays behind as `SCHEDULE.token.refused`, and the log says so.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{Code, Error, json};
use calendar::parse_instant;
use kernel::approval::{self, Command, OPEN, Question, State, TokenFile};
use kernel::{Actor, ApprovalId, Noun, ScheduleId, Timestamp};
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::approvals::{approval_in, found, row_of};
use crate::errors::{self, internal};
use crate::principals::Attempt;
use crate::rows::Rows;
use crate::transact::Change;
use crate::watch::Engine;
use crate::work::ground;

/// Where they are put, in the data directory.
const PLACE: &str = "approvals/pending";
const ENDING: &str = ".token";
const REFUSED: &str = ".refused";
const LOOK_EVERY: Duration = Duration::from_secs(1);
const FILE_BYTES_MAX: u64 = 4_096;
/// Questions that are open at a time, as far as they are looked at.
const OPEN_MAX: usize = 10_000;
const CALL: &str = "approval.token_file";
const KEYS: [&str; 5] =
    ["schedule_id", "schedule_name", "approved_by", "approved_at", "expires_at"];

impl Engine {
    /// Answers questions with the files that people put there, and never ends.
    pub async fn take_token_files(&self) -> std::convert::Infallible {
        let place = self.settings().data.join(PLACE);
        if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&place) {
            warn!(%error, "there is no place for token files");
        }
        loop {
            let found = match self.in_force().trust.token_files {
                true => token_files(&place),
                false => Vec::new(),
            };
            for (schedule, path) in found {
                if let Err(refused) = self.take_token_file(&schedule, &path).await {
                    warn!(%refused, file = %path.display(), "a token file is not obeyed");
                    let by = &self.file_owner();
                    self.refused(Attempt { by, call: Some(CALL), about: None }, &refused).await;
                }
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Nothing happens while its schedule asks nothing, or nothing can be approved.
    async fn take_token_file(&self, schedule: &ScheduleId, path: &Path) -> Result<(), Error> {
        let Some(id) = self.asked_by(schedule).await? else { return Ok(()) };
        if self.authority().await?.frozen.is_some() {
            return Ok(());
        }
        let taken = renamed(path, REFUSED).map_err(|error| unfit(&error))?;
        let text = read(&taken).map_err(|error| unfit(&error))?;
        let token = parse(&text)?;
        self.approve_by_file(&id, schedule, &token).await?;
        info!(%id, by = token.approved_by, "a token file has approved a run");
        fs::remove_file(taken).map_err(internal)
    }

    /// The question of a schedule that waits for an answer.
    async fn asked_by(&self, schedule: &ScheduleId) -> Result<Option<ApprovalId>, Error> {
        let open = self.store().newest(Noun::Approval.name(), Some(OPEN), "", OPEN_MAX).await;
        for item in open.map_err(errors::store)? {
            let (id, approval) = approval_in(&item)?;
            let waits = matches!(approval.state, State::Pending { .. });
            if waits && approval.plan.schedule == *schedule {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    async fn approve_by_file(
        &self,
        id: &ApprovalId,
        schedule: &ScheduleId,
        token: &TokenFile,
    ) -> Result<(), Error> {
        let (mut rows, reads) = self.rows_of_approval(id).await?;
        rows.push(self.authority_row());
        let loaded = self.load(&[row_of(id)]).await?;
        let agent = found(&loaded, id)?.plan.agent.clone();
        let actor = self.file_owner();
        let change = Change { rows, reads, ..Change::by(&actor, None) };
        let decide = |rows: &Rows, now: Timestamp| {
            let approval = found(rows, id)?;
            let changed = rows.schedule(schedule).map(|it| it.changed_at);
            let agent = agent.as_ref().and_then(|name| rows.agent(name));
            let changed = changed.max(agent.map(|it| it.changed_at));
            let changed = changed.ok_or_else(|| internal("an approval has no schedule"))?;
            token.fits(schedule, changed, now).map_err(|unfit_for| unfit(&unfit_for))?;
            let ground = ground(rows, &approval.plan.run, schedule, now)
                .ok_or_else(|| internal("an approval has no run"))?;
            let note = Some(format!("token file of {}", token.approved_by));
            let shown = approval.plan_hash.clone();
            let command = Command::Approve { shown, note, signed: None };
            let in_force = self.in_force();
            let rules = in_force.rules.version();
            let question = Question { id, approval, ground, agent, rules };
            approval::decide(question, &self.authority_in(rows), &actor, command)
                .map_err(errors::approval)
        };
        self.act_for(change, decide).await?;
        self.attend(&actor).await;
        Ok(())
    }

    /// Whoever wrote it was the user of this directory; who the file says it was is not known to be so.
    fn file_owner(&self) -> Actor {
        Actor::local_user(rustix::process::geteuid().as_raw())
    }
}

/// Every file that could be one, with its schedule.
fn token_files(place: &Path) -> Vec<(ScheduleId, PathBuf)> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name();
        let schedule = name.to_str()?.strip_suffix(ENDING)?.parse().ok()?;
        Some((schedule, entry.path()))
    });
    found.collect()
}

/// Only what this user alone has written, as an ordinary file and nothing else.
fn read(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let fits = found.is_file() && found.nlink() == 1 && found.len() <= FILE_BYTES_MAX;
    if !fits || !is_own || found.mode() & 0o077 != 0 {
        let what = "a token file is an ordinary, short file of this user, with the mode 0600";
        return Err(io::Error::other(what));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str) -> Result<TokenFile, Error> {
    let document: Value = json::read(text.as_bytes()).map_err(|error| unfit(&error))?;
    let Value::Object(fields) = &document else {
        return Err(unfit(&"it is not a JSON object"));
    };
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(unfit(&format!("there is no key `{key}`")));
    }
    if let Some((key, _)) = fields.iter().find(|(_, value)| !value.is_string()) {
        return Err(unfit(&format!("`{key}` is not a text")));
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let instant = |key: &str| match text(key) {
        Some(at) => parse_instant(at, None).map(Timestamp::from_micros).map(Some),
        None => Ok(None),
    };
    let instant = |key: &str| instant(key).map_err(|error| unfit(&format!("`{key}`: {error}")));
    let schedule = text("schedule_id").map(str::parse).transpose();
    let approved_by = text("approved_by").filter(|by| !by.is_empty());
    Ok(TokenFile {
        schedule: schedule.map_err(|error| unfit(&error))?,
        approved_by: approved_by.ok_or_else(|| unfit(&"it has no `approved_by`"))?.to_owned(),
        approved_at: instant("approved_at")?.ok_or_else(|| unfit(&"it has no `approved_at`"))?,
        expires_at: instant("expires_at")?,
    })
}

/// For good: what is obeyed now must not be there again after a crash. What cannot be renamed is taken
/// away, or it would be looked at every second.
fn renamed(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(ending);
    if let Err(error) = fs::rename(path, &aside) {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(aside.into())
}

fn unfit(what: &dyn std::fmt::Display) -> Error {
    Error::new(Code::TokenInvalid, format!("the token file is not good: {what}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_a_file_may_say() {
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
    fn only_an_ordinary_file_that_is_nobody_elses_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
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
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(read(&path("good")).unwrap(), "{}");
        for name in ["readable", "long", "twice", "link", "directory", "pipe", "missing"] {
            assert!(read(&path(name)).is_err(), "{name}");
        }
    }
}
