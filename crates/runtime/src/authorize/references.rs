//! Completes the references of a request: a unique prefix of an id, or a name, becomes the id.
//!
//! An agent refers only to its own objects, so the names and prefixes of others are as unknown to it as those that do not
//! exist. A full id is left as it is, without a look at the store: a stop works even if the store does not answer.

use std::sync::Arc;

use api::{Code, Error, Reference, Referent, Request};
use kernel::agent::AgentName;
use kernel::approval::Approval;
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::token::Token;
use kernel::{Actor, ApprovalId, Noun, RunId, ScheduleId, TokenId};
use store::{Item, Store};

use crate::authorize::scope::Scope;
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
        let owner = self.scope.limited_to(actor, request).await?;
        for Reference { to, text } in request.references_mut() {
            if !is_id(to, text) {
                *text = self.find(to, text, owner.as_ref()).await?;
            }
        }
        Ok(())
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
        if found.is_empty() && has_names(noun) {
            found = self.with_name(noun, text, owner).await?;
        }
        match found.as_slice() {
            [one] => Ok(one.id.clone()),
            [] => Err(unknown(noun, text)),
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

    async fn with_name(
        &self,
        noun: Noun,
        name: &str,
        owner: Option<&AgentName>,
    ) -> Result<Vec<Match>, Error> {
        self.search(noun, "", owner, |it| it.name.as_deref() == Some(name)).await
    }

    /// The objects that match, in the order of their ids. With a prefix, those before and after it are not read.
    async fn search(
        &self,
        noun: Noun,
        prefix: &str,
        owner: Option<&AgentName>,
        matches: impl Fn(&Match) -> bool,
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
        _ => text.parse::<ScheduleId>().is_ok(),
    }
}

fn noun_of(to: Referent, text: &str) -> Noun {
    match to {
        Referent::Schedule => Noun::Schedule,
        Referent::Run => Noun::Run,
        Referent::Approval => Noun::Approval,
        Referent::Token => Noun::Token,
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
        _ => decode_item::<Schedule>(item)?
            .filter(|schedule| is_visible(schedule.definition.action.agent()))
            .map(|schedule| Some(schedule.definition.name.to_string())),
    };
    Ok(visible.map(|name| Match { id: item.id.clone(), name }))
}

fn unknown(noun: Noun, text: &str) -> Error {
    let (noun, text) = (noun.name(), text.chars().take(80).collect::<String>());
    Error::new(Code::NotFound, format!("{noun} `{text}` does not exist"))
        .hint(format!("`midwatch {noun} list` shows the {noun}s"))
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
