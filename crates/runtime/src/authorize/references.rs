//! Completes the references of a request: a unique prefix of an id, or a name, becomes the id. For an unknown name, the
//! error suggests a similar one.
//!
//! An agent refers only to its own objects, so the names and prefixes of others are as unknown to it as those that do not
//! exist. A full id is left as it is, without a look at the store: a stop works even if the store does not answer.

use std::sync::Arc;

use api::{Code, Error, Reference, Referent, Request, nearest};
use kernel::agent::AgentName;
use kernel::approval::Approval;
use kernel::device::Device;
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::token::Token;
use kernel::{Actor, ApprovalId, DeviceId, Noun, RunId, ScheduleId, TokenId};
use store::{Item, Store};

use crate::authorize::scope::{Scope, read_capability};
use crate::commit::codec::decode_item;
use crate::errors;

/// Rows read to find a name, or what begins with a prefix.
const ROWS_READ_MAX: usize = 100_000;
/// Rows read at a time.
const BATCH_ROWS: usize = 256;
/// Matches that an error names.
const MATCHES_SHOWN_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct References {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) scope: Arc<Scope>,
}

/// The agents that a request names, which are not looked up before it is served.
#[derive(Debug)]
pub(crate) struct NamedAgents {
    /// Needed to see agents.
    capability: &'static str,
    names: Vec<String>,
}

/// An object that a text may refer to.
struct Match {
    id: String,
    name: Option<String>,
}

impl References {
    /// Replaces every reference by the id of its object.
    pub(crate) async fn complete(&self, actor: &Actor, request: &mut Request) -> Result<(), Error> {
        if request.references_mut().iter().all(|it| is_id(it.to, it.text)) {
            return Ok(());
        }
        let owner = self.scope.limited_to(actor, read_capability(request)).await?;
        for Reference { to, text } in request.references_mut() {
            if !is_id(to, text) {
                *text = self.find(to, text, owner.as_ref()).await?;
            }
        }
        Ok(())
    }

    pub(crate) fn agents_named_by(request: &mut Request) -> NamedAgents {
        let agents = request.references_mut().into_iter().filter(|it| it.to == Referent::Agent);
        let names = agents.map(|it| it.text.clone()).collect();
        NamedAgents { capability: read_capability(request), names }
    }

    /// The error of a request; if one of its agents does not exist, with the name of a similar one that the caller may see.
    pub(crate) async fn suggest_agent(
        &self,
        actor: &Actor,
        named: &NamedAgents,
        error: Error,
    ) -> Error {
        if error.code != Code::NotFound || named.names.is_empty() {
            return error;
        }
        // A caller that sees only its own agent, or none, gets no names of others.
        let Ok(None) = self.scope.limited_to(actor, named.capability).await else { return error };
        let Ok(registered) = self.agent_names().await else { return error };
        let unknown = named.names.iter().find(|name| !registered.contains(name));
        let similar = unknown.and_then(|name| nearest(name, registered.iter().map(String::as_str)));
        match similar {
            Some(similar) => error.hint(did_you_mean(Noun::Agent, similar)),
            None => error,
        }
    }

    async fn agent_names(&self) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let position = names.last().map_or("", String::as_str);
            let items = self.store.list(Noun::Agent.name(), position, BATCH_ROWS).await;
            let items = items.map_err(errors::store)?;
            names.extend(items.iter().map(|item| item.id.clone()));
            if items.len() < BATCH_ROWS || ROWS_READ_MAX <= names.len() {
                return Ok(names);
            }
        }
    }

    /// The id of the object that `text` refers to, among those of `owner` if there is one.
    async fn find(
        &self,
        to: Referent,
        text: &str,
        owner: Option<&AgentName>,
    ) -> Result<String, Error> {
        let noun = noun_of(to, text);
        let mut found = match is_prefix(noun, text) {
            true => self.with_prefix(noun, text, owner).await?,
            false => Vec::new(),
        };
        let mut similar = None;
        if found.is_empty() && has_names(noun) {
            (found, similar) = self.with_name(noun, text, owner).await?;
        }
        match found.as_slice() {
            [one] => Ok(one.id.clone()),
            [] => Err(unknown(noun, text, similar.as_deref())),
            several => Err(ambiguous(noun, text, several)),
        }
    }

    async fn with_prefix(
        &self,
        noun: Noun,
        prefix: &str,
        owner: Option<&AgentName>,
    ) -> Result<Vec<Match>, Error> {
        self.search(noun, prefix, owner, |it| it.id.starts_with(prefix)).await
    }

    /// The objects with this name, and the most similar name of the others.
    async fn with_name(
        &self,
        noun: Noun,
        name: &str,
        owner: Option<&AgentName>,
    ) -> Result<(Vec<Match>, Option<String>), Error> {
        let mut similar: Option<String> = None;
        let matches = |it: &Match| {
            let Some(candidate) = it.name.as_deref() else { return false };
            let both = similar.as_deref().into_iter().chain([candidate]);
            if nearest(name, both) == Some(candidate) {
                similar = Some(candidate.to_owned());
            }
            candidate == name
        };
        let found = self.search(noun, "", owner, matches).await?;
        Ok((found, similar))
    }

    /// The objects that match, in the order of their ids. With a prefix, those before and after it are not read.
    async fn search(
        &self,
        noun: Noun,
        prefix: &str,
        owner: Option<&AgentName>,
        mut matches: impl FnMut(&Match) -> bool,
    ) -> Result<Vec<Match>, Error> {
        let (mut found, mut position, mut rows_read) = (Vec::new(), prefix.to_owned(), 0);
        loop {
            let items = self.store.list(noun.name(), &position, BATCH_ROWS).await;
            let items = items.map_err(errors::store)?;
            for item in &items {
                if !item.id.starts_with(prefix) {
                    return Ok(found);
                }
                let visible = visible_match(noun, item, owner)?;
                found.extend(visible.filter(|it| matches(it)));
            }
            rows_read += items.len();
            match items.last() {
                Some(last) if items.len() == BATCH_ROWS => position.clone_from(&last.id),
                _ => return Ok(found),
            }
            if MATCHES_SHOWN_MAX < found.len() {
                return Ok(found);
            }
            if ROWS_READ_MAX <= rows_read {
                let what = format!("there are too many {}s to search", noun.name());
                return Err(Error::new(Code::LimitReached, what).hint("use the whole id"));
            }
        }
    }
}

/// Whether `text` is a whole id already.
fn is_id(to: Referent, text: &str) -> bool {
    match noun_of(to, text) {
        Noun::Run => text.parse::<RunId>().is_ok(),
        Noun::Approval => text.parse::<ApprovalId>().is_ok(),
        Noun::Token => text.parse::<TokenId>().is_ok(),
        Noun::Device => text.parse::<DeviceId>().is_ok(),
        // The handler looks for it.
        Noun::Agent => true,
        _ => text.parse::<ScheduleId>().is_ok(),
    }
}

fn noun_of(to: Referent, text: &str) -> Noun {
    match to {
        Referent::Schedule => Noun::Schedule,
        Referent::Run => Noun::Run,
        Referent::Approval => Noun::Approval,
        Referent::Token => Noun::Token,
        Referent::Device => Noun::Device,
        Referent::Agent => Noun::Agent,
        Referent::Object if text.starts_with("run_") => Noun::Run,
        Referent::Object => Noun::Schedule,
    }
}

/// Whether `text` could be the beginning of an id: with at least one digit, because all ids begin like an empty one.
fn is_prefix(noun: Noun, text: &str) -> bool {
    let digits = text.split_once('_').filter(|(begin, _)| *begin == id_begin(noun));
    digits.is_some_and(|(_, it)| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn id_begin(noun: Noun) -> &'static str {
    match noun {
        Noun::Run => "run",
        Noun::Approval => "apr",
        Noun::Token => "tok",
        Noun::Device => "dev",
        _ => "sch",
    }
}

fn has_names(noun: Noun) -> bool {
    matches!(noun, Noun::Schedule | Noun::Token)
}

/// The object of a row, unless it was removed or belongs to an agent other than `owner`.
fn visible_match(
    noun: Noun,
    item: &Item,
    owner: Option<&AgentName>,
) -> Result<Option<Match>, Error> {
    let is_visible = |agent: Option<&AgentName>| owner.is_none() || agent == owner;
    let visible = match noun {
        Noun::Run => {
            decode_item::<Run>(item)?.filter(|run| is_visible(run.agent.as_ref())).map(|_| None)
        }
        Noun::Approval => decode_item::<Approval>(item)?
            .filter(|approval| is_visible(approval.plan.agent.as_ref()))
            .map(|_| None),
        // A revoked token is found by its id alone.
        Noun::Token => decode_item::<Token>(item)?
            .filter(|_| owner.is_none())
            .map(|token| token.actor().map(|_| token.name.to_string())),
        Noun::Device => decode_item::<Device>(item)?.filter(|_| owner.is_none()).map(|_| None),
        _ => decode_item::<Schedule>(item)?
            .filter(|schedule| is_visible(schedule.definition.action.agent()))
            .map(|schedule| Some(schedule.definition.name.to_string())),
    };
    Ok(visible.map(|name| Match { id: item.id.clone(), name }))
}

fn unknown(noun: Noun, text: &str, similar: Option<&str>) -> Error {
    let (name, text) = (noun.name(), text.chars().take(80).collect::<String>());
    let error = Error::new(Code::NotFound, format!("{name} `{text}` does not exist"));
    error.hint(match similar {
        Some(similar) => did_you_mean(noun, similar),
        None => format!("`midwatch {name} list` shows the {name}s"),
    })
}

fn did_you_mean(noun: Noun, similar: &str) -> String {
    let noun = noun.name();
    format!("did you mean `{similar}`? `midwatch {noun} list` shows the {noun}s")
}

fn ambiguous(noun: Noun, text: &str, found: &[Match]) -> Error {
    let shown: Vec<String> = found
        .iter()
        .take(MATCHES_SHOWN_MAX)
        .map(|it| match &it.name {
            Some(name) if name != text => format!("`{}` ({name})", it.id),
            Some(_) | None => format!("`{}`", it.id),
        })
        .collect();
    let more = if MATCHES_SHOWN_MAX < found.len() { " and more" } else { "" };
    let what = format!("several {}s match `{text}`: {}{more}", noun.name(), shown.join(", "));
    Error::new(Code::InvalidInput, what).hint("write more of the id")
}
