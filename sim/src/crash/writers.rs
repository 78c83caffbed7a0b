//! Writers: what they ask of the daemon over its socket, and how each call ended.
//!
//! A writer first tries again what was cut off in an earlier cycle, with the same keys, then asks for
//! something that was acknowledged once more, then goes on with changes of its own until the daemon
//! is gone. Every change carries its key in its content too, so that an entry or an answer that
//! belongs to another call is noticed.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use api::wire::Hello;
use api::{AgentAdd, AgentEdit, AgentRemove, Answer, Call, Code, Handle, ProgressSink, Request};
use client::{Socket, connect};
use kernel::Body;
use kernel::agent::{Event, Settled};

use crate::dice::Dice;

/// Few enough that writers meet, enough that most of their changes do not.
const NAMES: u64 = 200;

/// A change that a writer asks for.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) key: String,
    name: String,
    change: Change,
    pub(super) history: History,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add,
    Edit,
    Remove,
}

/// What is known of the earlier tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    New,
    /// Tried before, and not in the log.
    Absent,
    /// Tried before, and in the log, but the answer was cut off.
    Landed,
}

#[derive(Clone, Debug)]
pub(super) enum Ending {
    Acknowledged(Box<Answer>),
    /// Nothing was changed, says the daemon.
    Refused,
    Unanswered,
}

/// An attempt and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) attempt: Attempt,
    pub(super) ending: Ending,
}

/// What one writer shall do in one cycle.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) retries: Vec<Attempt>,
    /// An acknowledged change to ask for again, and the answer that it got.
    pub(super) repeat: Option<(Attempt, Answer)>,
    /// Changes of its own, at most.
    pub(super) own_max: u64,
    /// Begins every key of its own.
    pub(super) prefix: String,
    pub(super) dice: Dice,
}

/// What one writer did.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) made: Vec<Made>,
    /// Retries that it did not come to.
    pub(super) unsent: Vec<Attempt>,
    pub(super) repeated: u64,
}

/// Works until there is nothing left to do or the daemon is gone. An error is a broken promise.
pub(super) async fn write(socket: &Path, work: Work) -> Result<Report> {
    let Work { retries, repeat, own_max, prefix, mut dice } = work;
    let mut report = Report::default();
    let Some(daemon) = greet(socket).await? else {
        return Ok(Report { unsent: retries, ..report });
    };
    let mut retries = retries.into_iter();
    for attempt in retries.by_ref() {
        if !report.make(&daemon, attempt).await? {
            report.unsent = retries.collect();
            return Ok(report);
        }
    }
    if let Some((attempt, first)) = repeat {
        match attempt.call(&daemon).await? {
            Ending::Unanswered => return Ok(report),
            Ending::Acknowledged(again) if *again == first => report.repeated += 1,
            other => {
                bail!("`{}` was answered with {first:?}, and then with {other:?}", attempt.key)
            }
        }
    }
    for number in 0..own_max {
        if !report.make(&daemon, Attempt::new(format!("{prefix}-{number}"), &mut dice)).await? {
            break;
        }
    }
    Ok(report)
}

/// `None` when the daemon is gone already.
async fn greet(socket: &Path) -> Result<Option<Socket>> {
    match connect(socket, &Hello::new(env!("CARGO_PKG_VERSION"))).await {
        Err(error) if error.code == Code::Unreachable => Ok(None),
        other => Ok(other?),
    }
}

impl Report {
    /// False when the daemon is gone.
    async fn make(&mut self, daemon: &Socket, attempt: Attempt) -> Result<bool> {
        let ending = attempt.call(daemon).await?;
        let is_answered = !matches!(ending, Ending::Unanswered);
        self.made.push(Made { attempt, ending });
        Ok(is_answered)
    }
}

impl Attempt {
    fn new(key: String, dice: &mut Dice) -> Attempt {
        let name = format!("agent-{:03}", dice.below(NAMES));
        let change = match dice.below(5) {
            0 | 1 => Change::Add,
            2 | 3 => Change::Edit,
            _ => Change::Remove,
        };
        Attempt { key, name, change, history: History::New }
    }

    async fn call(&self, daemon: &Socket) -> Result<Ending> {
        let (request, key) = (self.request(), Some(self.key.clone()));
        let call = Call { request, key, tool: None, progress: ProgressSink::default() };
        match daemon.call(call).await.map(Answer::first) {
            Ok(answer) => {
                ensure!(self.fits_answer(&answer), "{self:?} was answered with {answer:?}");
                Ok(Ending::Acknowledged(Box::new(answer)))
            }
            Err(error) => match error.code {
                Code::Unreachable => Ok(Ending::Unanswered),
                Code::Exists | Code::NotFound | Code::Busy => Ok(Ending::Refused),
                _ => bail!("{self:?} was answered with {error:?}"),
            },
        }
    }

    fn request(&self) -> Request {
        let (name, url) = (self.name.clone(), Some(self.url()));
        match self.change {
            Change::Add => {
                let backend = "webhook".to_owned();
                Request::AgentAdd(AgentAdd { name, backend, url, ..AgentAdd::default() })
            }
            Change::Edit => Request::AgentEdit(AgentEdit { name, url, ..AgentEdit::default() }),
            Change::Remove => Request::AgentRemove(AgentRemove { name }),
        }
    }

    /// No two attempts have the same one.
    fn url(&self) -> String {
        format!("http://localhost/{}", self.key)
    }

    /// Whether the answer says that exactly this was done. "It is so already" does not fit: nobody
    /// else asks for the same.
    fn fits_answer(&self, answer: &Answer) -> bool {
        let (agent, url) = match (self.change, answer) {
            (Change::Add, Answer::AgentAdd(it)) if it.created => (&it.agent, Some(self.url())),
            (Change::Edit, Answer::AgentEdit(it)) if it.changed => (&it.agent, Some(self.url())),
            (Change::Remove, Answer::AgentRemove(it)) => (&it.agent, it.agent.url.clone()),
            _ => return false,
        };
        agent.name == self.name && agent.url == url
    }

    /// Whether an entry says exactly this.
    pub(super) fn fits_entry(&self, body: &Body) -> bool {
        let Body::Agent(name, event) = body else { return false };
        let is_ours = |it: &Settled| it.backend.settings().url == Some(self.url());
        let fits = match (self.change, event) {
            (Change::Add, Event::Registered(settled)) => is_ours(settled),
            (Change::Edit, Event::Changed(settled)) => is_ours(settled),
            (Change::Remove, Event::Removed(_)) => true,
            _ => false,
        };
        fits && name.as_str() == self.name
    }
}
