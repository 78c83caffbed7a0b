//! Writers: they send changes to the daemon over its socket and record the result of each call.
//!
//! A writer first retries the calls that a crash interrupted, with the same keys, then repeats one acknowledged change,
//! then sends new changes until the daemon is gone. Every change has its key in its content too, so that an entry or a
//! response of another call is detected.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use api::wire::Hello;
use api::{
    AgentAdd, AgentEdit, AgentRemove, AgentSettings, Call, Code, Handle, ProgressSink, Request,
    Response,
};
use kernel::EventBody;
use kernel::agent::{Definition, Event};
use transport::{Socket, connect};

use crate::dice::Dice;

/// Agent names: few enough for conflicts, enough that most changes have none.
const NAMES: u64 = 200;

/// A change that a writer requests.
#[derive(Clone, Debug)]
pub(super) struct ChangeCall {
    pub(super) key: String,
    name: String,
    kind: ChangeKind,
    pub(super) earlier: EarlierResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    Add,
    Edit,
    Remove,
}

/// The result of sending the same call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierResult {
    NotSent,
    /// Without a response, and not in the ledger.
    Absent,
    /// Without a response, but in the ledger.
    Recorded,
}

#[derive(Clone, Debug)]
pub(super) enum CallResult {
    Acknowledged(Box<Response>),
    /// The daemon reports that it changed nothing.
    Refused,
    Unanswered,
}

#[derive(Clone, Debug)]
pub(super) struct FinishedCall {
    pub(super) call: ChangeCall,
    pub(super) result: CallResult,
}

/// What one writer does in one cycle.
#[derive(Debug)]
pub(super) struct WriterTask {
    pub(super) retries: Vec<ChangeCall>,
    /// An acknowledged change to repeat, and its first response.
    pub(super) repeat: Option<(ChangeCall, Response)>,
    /// New changes at most.
    pub(super) own_max: u64,
    /// The prefix of their keys.
    pub(super) prefix: String,
    pub(super) dice: Dice,
}

/// What one writer did.
#[derive(Debug, Default)]
pub(super) struct WriterReport {
    pub(super) finished: Vec<FinishedCall>,
    /// Retries that it did not send.
    pub(super) unsent: Vec<ChangeCall>,
    pub(super) repeated: u64,
}

/// Works until the task is done or the daemon is gone. An error is a broken guarantee.
pub(super) async fn write(socket: &Path, task: WriterTask) -> Result<WriterReport> {
    let WriterTask { retries, repeat, own_max, prefix, mut dice } = task;
    let mut report = WriterReport::default();
    let Some(daemon) = connect_to(socket).await? else {
        return Ok(WriterReport { unsent: retries, ..report });
    };
    let mut retries = retries.into_iter();
    for call in retries.by_ref() {
        if !report.send(&daemon, call).await? {
            report.unsent = retries.collect();
            return Ok(report);
        }
    }
    if let Some((call, first)) = repeat {
        match call.send(&daemon).await? {
            CallResult::Unanswered => return Ok(report),
            CallResult::Acknowledged(again) if *again == first => report.repeated += 1,
            other => {
                bail!("`{}` got the response {first:?}, and then {other:?}", call.key)
            }
        }
    }
    for number in 0..own_max {
        if !report.send(&daemon, ChangeCall::new(format!("{prefix}-{number}"), &mut dice)).await? {
            break;
        }
    }
    Ok(report)
}

/// `None` if the daemon is already gone.
async fn connect_to(socket: &Path) -> Result<Option<Socket>> {
    match connect(socket, &Hello::new(env!("CARGO_PKG_VERSION"))).await {
        Err(error) if error.code == Code::Unreachable => Ok(None),
        other => Ok(other?),
    }
}

impl WriterReport {
    /// Returns false if the daemon is gone.
    async fn send(&mut self, daemon: &Socket, call: ChangeCall) -> Result<bool> {
        let result = call.send(daemon).await?;
        let is_answered = !matches!(result, CallResult::Unanswered);
        self.finished.push(FinishedCall { call, result });
        Ok(is_answered)
    }
}

impl ChangeCall {
    fn new(key: String, dice: &mut Dice) -> ChangeCall {
        let name = format!("agent-{:03}", dice.below(NAMES));
        let kind = match dice.below(5) {
            0 | 1 => ChangeKind::Add,
            2 | 3 => ChangeKind::Edit,
            _ => ChangeKind::Remove,
        };
        ChangeCall { key, name, kind, earlier: EarlierResult::NotSent }
    }

    async fn send(&self, daemon: &Socket) -> Result<CallResult> {
        let (request, key) = (self.request(), Some(self.key.clone()));
        let call =
            Call { request, key, version: None, tool: None, progress: ProgressSink::default() };
        match daemon.call(call).await.map(Response::first) {
            Ok(answer) => {
                ensure!(self.matches_response(&answer), "{self:?} got the response {answer:?}");
                Ok(CallResult::Acknowledged(Box::new(answer)))
            }
            Err(error) => match error.code {
                Code::Unreachable => Ok(CallResult::Unanswered),
                Code::Exists | Code::NotFound | Code::Busy => Ok(CallResult::Refused),
                _ => bail!("{self:?} failed with {error:?}"),
            },
        }
    }

    fn request(&self) -> Request {
        let name = self.name.clone();
        let settings = AgentSettings { url: Some(self.url()), ..AgentSettings::default() };
        match self.kind {
            ChangeKind::Add => {
                let backend = "webhook".to_owned();
                Request::AgentAdd(AgentAdd { name, backend, settings, look: false })
            }
            ChangeKind::Edit => {
                Request::AgentEdit(AgentEdit { name, settings, ..AgentEdit::default() })
            }
            ChangeKind::Remove => Request::AgentRemove(AgentRemove { name }),
        }
    }

    /// Unique for each call.
    fn url(&self) -> String {
        format!("http://localhost/{}", self.key)
    }

    /// Whether the response reports exactly this change. "Nothing to change" does not match: no other call requests the
    /// same change.
    fn matches_response(&self, answer: &Response) -> bool {
        let (agent, url) = match (self.kind, answer) {
            (ChangeKind::Add, Response::AgentAdd(it)) if it.created => {
                (&it.agent, Some(self.url()))
            }
            (ChangeKind::Edit, Response::AgentEdit(it)) if it.changed => {
                (&it.agent, Some(self.url()))
            }
            (ChangeKind::Remove, Response::AgentRemove(it)) => {
                (&it.agent, it.agent.settings.url.clone())
            }
            _ => return false,
        };
        agent.name == self.name && agent.settings.url == url
    }

    /// Whether an entry records exactly this change.
    pub(super) fn matches_entry(&self, body: &EventBody) -> bool {
        let EventBody::Agent(name, event) = body else { return false };
        let is_ours = |it: &Definition| it.backend.settings().url == Some(self.url());
        let fits = match (self.kind, event) {
            (ChangeKind::Add, Event::Registered(settled)) => is_ours(settled),
            (ChangeKind::Edit, Event::Changed(settled)) => is_ours(settled),
            (ChangeKind::Remove, Event::Removed(_)) => true,
            _ => false,
        };
        fits && name.as_str() == self.name
    }
}
