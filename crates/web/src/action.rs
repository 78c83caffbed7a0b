//! Submitted forms: every `POST` address of the dashboard, and the request that it makes.
//!
//! Whether the sender may make it is decided by the handle, and that the person sent it by the caller of this crate.

use api::{
    AgentAdd, AgentTest, ApprovalDecide, Call, Code, ConfigReload, DeviceRevoke, Error, Freeze,
    Handle, LeaseRenew, LedgerCheckpoint, NoticeTest, RunCancel, RunRetry, RunSettle, ScheduleEdit,
    ScheduleFire, SchedulePause, ScheduleRemove, ScheduleResume, ScheduleShow, StatusSeen, Thaw,
    TokenRevoke, send,
};

use crate::form::ScheduleForm;
use crate::view::encode;

/// A submitted form, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Action(Command);

#[derive(Clone, Debug, PartialEq)]
enum Command {
    Seen(StatusSeen),
    Decide(ApprovalDecide),
    AddSchedule(ScheduleForm),
    EditSchedule { id: String, form: ScheduleForm },
    Pause(SchedulePause),
    Resume(ScheduleResume),
    Remove(ScheduleRemove),
    Fire(ScheduleFire),
    Cancel(RunCancel),
    Retry(RunRetry),
    Settle(RunSettle),
    AddAgent(AgentAdd),
    TestAgent(AgentTest),
    Freeze(Freeze),
    Thaw(Thaw),
    RenewLease(LeaseRenew),
    RevokeToken(TokenRevoke),
    RevokeDevice(DeviceRevoke),
    TestNotices,
    ReloadConfig,
    Checkpoint,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The page that shows it.
    pub location: String,
    /// What happened, in one sentence.
    pub message: String,
}

impl Action {
    /// The action at a path, from the fields of its form. `not_found` if there is none.
    pub fn parse(path: &str, fields: &[(String, String)]) -> Result<Action, Error> {
        let field = |name: &str| {
            let found = fields.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let needed = |name: &str| {
            let missing =
                || Error::new(Code::InvalidInput, format!("the field `{name}` is missing"));
            field(name).ok_or_else(missing)
        };
        let note = field("reason");
        let segments: Vec<String> =
            path.trim_matches('/').split('/').map(crate::view::decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let command = match *segments.as_slice() {
            ["status", "seen"] => Command::Seen(StatusSeen { until: needed("until")? }),
            ["approvals", id, "decide"] => {
                let decision = needed("decision")?.parse()?;
                let plan_hash = field("plan_hash");
                Command::Decide(ApprovalDecide {
                    plan_hash,
                    note,
                    ..ApprovalDecide::new(id, decision)
                })
            }
            ["schedules", "add"] => Command::AddSchedule(ScheduleForm::from_fields(fields)),
            ["schedules", id, "edit"] => {
                Command::EditSchedule { id: id.to_owned(), form: ScheduleForm::from_fields(fields) }
            }
            ["schedules", id, "pause"] => Command::Pause(SchedulePause { id: id.to_owned(), note }),
            ["schedules", id, "resume"] => Command::Resume(ScheduleResume { id: id.to_owned() }),
            ["schedules", id, "remove"] => Command::Remove(ScheduleRemove { id: id.to_owned() }),
            ["schedules", id, "fire"] => Command::Fire(ScheduleFire { id: id.to_owned() }),
            ["runs", id, "cancel"] => Command::Cancel(RunCancel { id: id.to_owned(), note }),
            ["runs", id, "retry"] => Command::Retry(RunRetry { id: id.to_owned() }),
            ["runs", id, "settle"] => {
                let state = needed("state")?.parse()?;
                Command::Settle(RunSettle { id: id.to_owned(), state, note })
            }
            ["agents", "add"] => Command::AddAgent(AgentAdd {
                name: needed("name")?,
                backend: needed("backend")?,
                ..AgentAdd::default()
            }),
            ["agents", name, "test"] => {
                Command::TestAgent(AgentTest { name: name.to_owned(), prompt: field("prompt") })
            }
            ["freeze"] => Command::Freeze(Freeze { note }),
            ["thaw"] => Command::Thaw(Thaw { note: Some(needed("reason")?) }),
            ["lease"] => Command::RenewLease(LeaseRenew { note }),
            ["tokens", id, "revoke"] => {
                Command::RevokeToken(TokenRevoke { id: id.to_owned(), note })
            }
            ["devices", id, "revoke"] => Command::RevokeDevice(DeviceRevoke { id: id.to_owned() }),
            ["notices", "test"] => Command::TestNotices,
            ["config", "reload"] => Command::ReloadConfig,
            ["ledger", "checkpoint"] => Command::Checkpoint,
            _ => {
                return Err(Error::new(Code::NotFound, "there is no form at this address")
                    .hint("go to `/`"));
            }
        };
        Ok(Action(command))
    }

    /// Whether it stops something, which must work even when little else does.
    pub fn is_stop(&self) -> bool {
        matches!(self.0, Command::Freeze(_) | Command::Cancel(_))
    }
}

/// Makes the request of an action. `key` makes it safe to send the same form twice.
pub async fn act(handle: &dyn Handle, action: Action, key: Option<String>) -> Result<Done, Error> {
    let done = |location: String, message: String| Ok(Done { location, message });
    macro_rules! make {
        ($request:expr) => {
            Call { key, ..Call::new($request) }
        };
    }
    match action.0 {
        Command::Seen(seen) => {
            make!(seen).send::<StatusSeen>(handle).await?;
            done("/".to_owned(), "marked as seen".to_owned())
        }
        Command::Decide(decide) => {
            let location = format!("/approvals/{}", encode(&decide.id));
            let decided = make!(decide).send::<ApprovalDecide>(handle).await?;
            done(location, decided.outcome("starts now"))
        }
        Command::AddSchedule(form) => {
            let added = make!(form.add(false)?).send::<api::ScheduleAdd>(handle).await?;
            let name = &added.schedule.name;
            let message = match added.created {
                true => format!("schedule `{name}` added"),
                false => format!("schedule `{name}` exists already; nothing changed"),
            };
            done(format!("/schedules/{}", encode(&added.schedule.id)), message)
        }
        Command::EditSchedule { id, form } => {
            let shown = send(handle, ScheduleShow { id: id.clone() }).await?;
            let request = form.edit(id, &ScheduleForm::of(&shown.schedule))?;
            let edited = make!(request).send::<ScheduleEdit>(handle).await?;
            let message = if edited.changed { "changed" } else { "nothing changed" };
            done(format!("/schedules/{}", encode(&edited.schedule.id)), message.to_owned())
        }
        Command::Pause(pause) => {
            let paused = make!(pause).send::<SchedulePause>(handle).await?;
            done(format!("/schedules/{}", encode(&paused.schedule.id)), "paused".to_owned())
        }
        Command::Resume(resume) => {
            let resumed = make!(resume).send::<ScheduleResume>(handle).await?;
            let message = format!("resumed; {} slots of the pause are skipped", resumed.skipped);
            done(format!("/schedules/{}", encode(&resumed.schedule.id)), message)
        }
        Command::Remove(remove) => {
            let removed = make!(remove).send::<ScheduleRemove>(handle).await?;
            done("/schedules".to_owned(), format!("schedule `{}` removed", removed.schedule.name))
        }
        Command::Fire(fire) => {
            let fired = make!(fire).send::<ScheduleFire>(handle).await?;
            done(format!("/runs/{}", encode(&fired.run.id)), "a run was started".to_owned())
        }
        Command::Cancel(cancel) => {
            let location = format!("/runs/{}", encode(&cancel.id));
            let cancelled = make!(cancel).send::<RunCancel>(handle).await?;
            let message = match (cancelled.changed, cancelled.recorded) {
                (true, true) => "the run is being cancelled",
                (true, false) => "the run is being cancelled; the ledger records it later",
                (false, _) => "the run was cancelled before",
            };
            done(location, message.to_owned())
        }
        Command::Retry(retry) => {
            let changed = make!(retry).send::<RunRetry>(handle).await?;
            done(format!("/runs/{}", encode(&changed.run.id)), "one more attempt".to_owned())
        }
        Command::Settle(settle) => {
            let changed = make!(settle).send::<RunSettle>(handle).await?;
            let message = format!("settled as {}", changed.run.state);
            done(format!("/runs/{}", encode(&changed.run.id)), message)
        }
        Command::AddAgent(add) => {
            let added = make!(add).send::<AgentAdd>(handle).await?;
            let name = &added.agent.name;
            let message = format!("agent `{name}` registered");
            done(format!("/schedules/new?agent={}", encode(name)), message)
        }
        Command::TestAgent(test) => {
            let location = format!("/agents/{}", encode(&test.name));
            let test = make!(test).send::<AgentTest>(handle).await?.test;
            let message = match (test.passed, test.message) {
                (true, _) => format!("it works: answered in {} ms", test.took_ms),
                (false, message) => format!("it failed: {}", message.unwrap_or_default()),
            };
            done(location, message)
        }
        Command::Freeze(freeze) => {
            let changed = make!(freeze).send::<Freeze>(handle).await?;
            let message = match changed.recorded {
                true => "frozen: nothing starts until somebody thaws it",
                false => "frozen; the ledger records it later",
            };
            done("/freeze".to_owned(), message.to_owned())
        }
        Command::Thaw(thaw) => {
            make!(thaw).send::<Thaw>(handle).await?;
            done("/".to_owned(), "thawed: runs start again".to_owned())
        }
        Command::RenewLease(renew) => {
            let changed = make!(renew).send::<LeaseRenew>(handle).await?;
            let message = match changed.released.len() {
                0 => "the lease is renewed".to_owned(),
                runs => format!("the lease is renewed; {runs} runs that waited only for it start"),
            };
            done("/lease".to_owned(), message)
        }
        Command::RevokeToken(revoke) => {
            let revoked = make!(revoke).send::<TokenRevoke>(handle).await?;
            let message = format!("a token of {} is revoked", revoked.token.name);
            done("/settings/tokens".to_owned(), message)
        }
        Command::RevokeDevice(revoke) => {
            let revoked = make!(revoke).send::<DeviceRevoke>(handle).await?;
            let message = format!("{} is signed out", revoked.device.browser);
            done("/settings/devices".to_owned(), message)
        }
        Command::TestNotices => {
            let tested = make!(NoticeTest {}).send::<NoticeTest>(handle).await?;
            let failed = tested.results.iter().find_map(|it| it.failure.as_ref());
            let message = match (tested.results.len(), failed) {
                (0, _) => "there is no notice channel".to_owned(),
                (channels, None) => format!("sent through {channels} channels"),
                (_, Some(failure)) => format!("not delivered: {failure}"),
            };
            done("/settings/notices".to_owned(), message)
        }
        Command::ReloadConfig => {
            let reloaded = make!(ConfigReload {}).send::<ConfigReload>(handle).await?.reloaded;
            let message = match reloaded.changed.is_empty() {
                true => "nothing changed".to_owned(),
                false => format!("active now: {}", reloaded.changed.join(", ")),
            };
            done("/settings/config".to_owned(), message)
        }
        Command::Checkpoint => {
            let made = make!(LedgerCheckpoint {}).send::<LedgerCheckpoint>(handle).await?;
            done("/ledger".to_owned(), format!("signed up to entry {}", made.checkpoint.size))
        }
    }
}

#[cfg(test)]
mod tests {
    use api::Decision;

    use super::*;

    fn parse(path: &str, fields: &[(&str, &str)]) -> Result<Command, Code> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Action::parse(path, &fields).map(|action| action.0).map_err(|error| error.code)
    }

    #[test]
    fn forms_are_parsed() {
        let fields = [("decision", "approve"), ("plan_hash", "ab"), ("reason", " fine ")];
        let decide = ApprovalDecide {
            plan_hash: Some("ab".to_owned()),
            note: Some("fine".to_owned()),
            ..ApprovalDecide::new("apr_1", Decision::Approve)
        };
        assert_eq!(parse("/approvals/apr_1/decide", &fields), Ok(Command::Decide(decide)));
        assert_eq!(parse("/freeze", &[]), Ok(Command::Freeze(Freeze { note: None })));
        for (path, fields) in [
            ("/approvals/apr_1/decide", [("decision", "perhaps")]),
            ("/approvals/apr_1/decide", [("reason", "x")]),
            ("/runs/run_1/settle", [("state", "cancelled")]),
            ("/thaw", [("reason", " ")]),
            ("/status/seen", [("reason", "x")]),
        ] {
            assert_eq!(parse(path, &fields), Err(Code::InvalidInput), "{path} {fields:?}");
        }
        for path in ["/", "/approvals/apr_1", "/runs/run_1/start", "/schedules"] {
            assert_eq!(parse(path, &[]), Err(Code::NotFound), "{path}");
        }
    }

    #[test]
    fn only_freeze_and_cancel_are_stops() {
        let is_stop =
            |path, fields: &[(&str, &str)]| Action(parse(path, fields).unwrap()).is_stop();
        assert!(is_stop("/freeze", &[]) && is_stop("/runs/run_1/cancel", &[]));
        assert!(!is_stop("/thaw", &[("reason", "x")]) && !is_stop("/runs/run_1/retry", &[]));
    }
}
