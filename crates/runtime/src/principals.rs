//! Who speaks: each way in yields a named principal, and this is the one place that says which.
//!
//! | way in | principal |
//! |---|---|
//! | a process that a run has started, by its descent or by its own word | that run, a runner, whatever else it shows |
//! | with a token | the person of the token, with its role |
//! | the local socket, or the data directory itself | its user: maintainer, in `strict-prod` operator, once a maintainer has a token |
//! | `/mcp` over HTTP, always with a token | the assistant of its person, a runner; an agent's or observer's own token, themselves |
//! | the page of an approval, always with a token | the person of the token, with its role; no agent and no run |
//! | the same for an MCP client, whose word comes from an agent | the assistant of that person or user, a runner |
//!
//! What is refused is written into the log, once a minute for each who and what.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use api::wire::Secret;
use api::{Code, Error, Request};
use kernel::watch::{Event as WatchEvent, Refused};
use kernel::{Actor, Noun, Role, RunId, Timestamp};
use tracing::warn;

use crate::tokens::has_maintainer;
use crate::watch::Engine;

/// Refusals of one kind are written this often.
const WRITTEN_EVERY_US: i64 = 60_000_000;
/// Somebody on the network who has no token of ours.
const STRANGER: &str = "http:stranger";
/// What was tried by whoever has come to a page for people.
const PAGE: &str = "approval.page";
/// What an attempt was about is written if it is not longer, and printable.
const ABOUT_BYTES_MAX: usize = 128;
/// Kinds of refusals that are told apart.
const KINDS_MAX: usize = 256;

/// Somebody who comes in, as far as the way in tells.
#[derive(Clone, Copy, Debug)]
pub struct Visitor<'a> {
    /// The user of the machine.
    pub uid: u32,
    pub descent: Descent<'a>,
    /// The run to which its process says to belong.
    pub run: Option<&'a str>,
    pub token: Option<&'a Secret>,
    /// Whether it speaks for an agent, whoever has started it.
    pub assistant: bool,
}

/// A user of whom the way in tells nothing.
pub const UNSEEN: u32 = u32::MAX;

impl Visitor<'_> {
    /// One of whom nothing is known yet.
    pub const fn unseen() -> Self {
        let descent = Descent::Stranger;
        Visitor { uid: UNSEEN, descent, run: None, token: None, assistant: false }
    }
}

/// Whose child its process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descent<'a> {
    /// Not one of the watch's own.
    Stranger,
    /// A run's.
    Run(&'a str),
    /// The watch's own, of whichever run; or nobody can tell.
    Unknown,
}

/// Something that somebody has tried.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    pub by: &'a Actor,
    /// What they called, if they got that far.
    pub call: Option<&'static str>,
    /// The plan that they have answered, or the tool that they have called and that is not there.
    pub about: Option<String>,
}

/// When each kind of refusal was last written, and how many have come since.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<RefusalKind, (Timestamp, u64)>>);

/// Who called what.
type RefusalKind = (String, Option<&'static str>);

impl Engine {
    /// Who that is.
    pub async fn admit(&self, visitor: Visitor<'_>) -> Result<Actor, Error> {
        match visitor.descent {
            Descent::Stranger => {}
            Descent::Run(run) => {
                let id = run.parse::<RunId>();
                return Ok(id.map_or_else(|_| Actor::of_some_run(), |id| Actor::of_run(&id)));
            }
            Descent::Unknown => return Ok(Actor::of_some_run()),
        }
        let run = visitor.run.and_then(|run| run.parse::<RunId>().ok());
        if let Some(id) = run
            && self.may_be_run(&id).await
        {
            return Ok(Actor::of_run(&id));
        }
        let person = self.person(visitor).await?;
        Ok(if visitor.assistant { person.assistant() } else { person })
    }

    /// Who that is that comes to a page for people. What an agent or a run has is no credential of a person, whatever it
    /// may do elsewhere.
    pub async fn admit_person(&self, visitor: Visitor<'_>) -> Result<Actor, Error> {
        let actor = self.admit(visitor).await?;
        if actor.role != Role::Runner {
            return Ok(actor);
        }
        let what = format!("this page is for people, and `{}` is an agent or a run", actor.name);
        let refusal = Error::new(Code::HumanNeeded, what)
            .hint("a person shows a token of their own; `midwatch approval list` shows the same in a terminal");
        self.refused(Attempt { by: &actor, call: Some(PAGE), about: None }, &refusal).await;
        Err(refusal)
    }

    /// Who that is that comes over the network, of whom nothing is known but the token. An agent may speak
    /// through it.
    pub async fn admit_token(&self, token: &Secret) -> Result<Actor, Error> {
        Ok(self.known_by(token, &stranger()).await?.assistant())
    }

    /// The one with the token, or the user of the machine.
    async fn person(&self, visitor: Visitor<'_>) -> Result<Actor, Error> {
        let local = match visitor.uid {
            UNSEEN => stranger(),
            uid => Actor { role: self.local_role().await?, ..Actor::local_user(uid) },
        };
        match visitor.token {
            None => Ok(local),
            Some(token) => self.known_by(token, &local).await,
        }
    }

    /// Who has the token; when nobody has, it is written down who came with it.
    async fn known_by(&self, Secret(token): &Secret, with: &Actor) -> Result<Actor, Error> {
        let found = self.holder_of(token).await;
        if let Err(refused) = &found
            && refused.code == Code::TokenInvalid
        {
            self.refused(Attempt { by: with, call: None, about: None }, refused).await;
        }
        found
    }

    /// Whether there is such a run. What cannot be looked up has no more rights than it would have.
    async fn may_be_run(&self, id: &RunId) -> bool {
        let rows = self.load(&[(Noun::Run, id.to_string())]).await;
        rows.is_err() || rows.is_ok_and(|rows| rows.run(id).is_some())
    }

    /// Somebody must give out a maintainer's token, the first and after the last.
    async fn local_role(&self) -> Result<Role, Error> {
        match self.in_force().trust.local_role {
            lower if lower < Role::Maintainer && has_maintainer(self.store()).await? => Ok(lower),
            _ => Ok(Role::Maintainer),
        }
    }

    /// Writes down that somebody was refused for who they are, or has tried to answer for a human.
    pub(crate) async fn refused(&self, attempt: Attempt<'_>, refusal: &Error) {
        if !attempt.is_noted(refusal.code) {
            return;
        }
        let Attempt { by, call, about } = attempt;
        let Some(before) = self.refusals().count(&by.name, call, self.now()) else { return };
        let refused = Refused {
            by: by.name.clone(),
            call: call.map(str::to_owned),
            about,
            code: refusal.code.name().to_owned(),
            before,
        };
        if let Err(failed) = self.note(WatchEvent::Refused(refused)).await {
            warn!(%failed, by = by.name, "a refusal could not be written down");
        }
    }
}

impl<'a> Attempt<'a> {
    pub(crate) fn of(by: &'a Actor, request: &Request) -> Attempt<'a> {
        let about = match request {
            Request::ApprovalDecide(asked) => asked.plan_hash.as_ref(),
            Request::ToolMisuse(misused) => Some(&misused.missing),
            _ => None,
        };
        let is_short = |text: &&String| {
            text.len() <= ABOUT_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        Attempt { by, call: Some(request.name()), about: about.filter(is_short).cloned() }
    }

    fn is_noted(&self, refused: Code) -> bool {
        match self.call {
            // Whatever they are refused for, it is known who has tried.
            Some("approval.decide" | "tool.misuse") => true,
            // What is not an agent's own is not there for it.
            Some("approval.show") if self.by.role == Role::Runner && refused == Code::NotFound => {
                true
            }
            _ => matches!(
                refused,
                Code::RoleTooLow
                    | Code::HumanNeeded
                    | Code::Denied
                    | Code::TokenInvalid
                    | Code::SignatureInvalid
                    | Code::SignatureNeeded
            ),
        }
    }
}

fn stranger() -> Actor {
    Actor { name: STRANGER.to_owned(), role: Role::Observer }
}

/// The least role for what the kernel has no rule about. Whatever else changes something is one of its
/// nouns, whose own rules say who may; and everybody who is let in may read.
pub(crate) fn least_role(request: &Request) -> Role {
    use Request as Is;
    match request {
        Is::LedgerRebuild(_) | Is::ConfigReload(_) => Role::Maintainer,
        Is::LedgerExport(_) | Is::LedgerCheckpoint(_) | Is::TokenList(_) => Role::Operator,
        Is::ConfigAsk(_) => Role::Operator,
        Is::HealthAsk(_) | Is::StatusAsk(_) | Is::CheckAsk(_) => Role::Observer,
        Is::Why(_) | Is::LedgerTail(_) | Is::News(_) => Role::Observer,
        Is::AgentList(_) | Is::AgentShow(_) | Is::BudgetList(_) => Role::Observer,
        Is::ToolList(_) | Is::ToolMisuse(_) | Is::ToolEnd(_) => Role::Observer,
        Is::AgentAdd(_) | Is::AgentEdit(_) | Is::AgentRemove(_) => Role::Observer,
        Is::AgentTest(_) => Role::Observer,
        Is::ScheduleList(_) | Is::ScheduleShow(_) => Role::Observer,
        Is::ScheduleAdd(_) | Is::ScheduleAddAll(_) | Is::ScheduleEdit(_) => Role::Observer,
        Is::SchedulePause(_) | Is::ScheduleResume(_) | Is::ScheduleRemove(_) => Role::Observer,
        Is::ScheduleFire(_) | Is::ScheduleBackfill(_) => Role::Observer,
        Is::ScheduleBackfillEnd(_) | Is::EventTell(_) => Role::Observer,
        Is::RunList(_) | Is::RunShow(_) | Is::RunRead(_) => Role::Observer,
        Is::RunWatch(_) | Is::RunEvents(_) => Role::Observer,
        Is::RunCancel(_) | Is::RunRetry(_) | Is::RunSettle(_) => Role::Observer,
        Is::ApprovalList(_) | Is::ApprovalShow(_) | Is::ApprovalDecide(_) => Role::Observer,
        Is::PolicyDecide(_) | Is::PolicyExplain(_) | Is::PolicyReplay(_) => Role::Observer,
        Is::Freeze(_) | Is::Thaw(_) | Is::LeaseRenew(_) => Role::Observer,
        Is::TokenCreate(_) | Is::TokenRevoke(_) => Role::Observer,
    }
}

impl Refusals {
    /// How many came before this one without being written, if it is to be written.
    fn count(&self, by: &str, call: Option<&'static str>, now: Timestamp) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if KINDS_MAX <= kinds.len() {
            kinds.retain(|_, (at, _)| is_recent(*at, now));
        }
        // So many at once are one kind.
        let by = if kinds.len() < KINDS_MAX { by } else { "others" };
        match kinds.get_mut(&(by.to_owned(), call)) {
            Some((at, since)) if is_recent(*at, now) => {
                *since += 1;
                None
            }
            Some((at, since)) => {
                *at = now;
                Some(std::mem::take(since))
            }
            None => {
                kinds.insert((by.to_owned(), call), (now, 0));
                Some(0)
            }
        }
    }
}

/// Whether it was within the last minute, by a clock that may be set.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.as_micros().abs_diff(at.as_micros()) < WRITTEN_EVERY_US.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_written_once_a_minute() {
        let refusals = Refusals::default();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let mut written = Vec::new();
        for tenth in 0..1_800 {
            let now = at(tenth / 10);
            written.extend(refusals.count("run:1", Some("freeze"), now));
        }
        assert_eq!(written, [0, 599, 599]);
        assert_eq!(refusals.count("run:1", Some("thaw"), at(180)), Some(0));
        // However many names somebody makes up.
        let more = (0..10_000).filter_map(|n| refusals.count(&format!("run:{n}"), None, at(180)));
        assert!(more.count() <= KINDS_MAX);
    }
}
