//! Runs, schedules and the end of the log as resources, and news of them.
//!
//! News only say that there is something to read; whoever misses them loses nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{
    Code, Error, Handle, Heard, LedgerTail, News, RunEvents, RunShow, ScheduleShow, StatusAsk, ask,
};
use rmcp::model::{
    ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{Peer, RoleServer};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::completion::Ids;
use crate::message::brief;
use crate::tool::shown;

/// Resources of which one request may ask for news.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 32;
/// How long one look for news waits, in milliseconds.
const NEWS_WAIT_MS: u32 = 25_000;
/// After a look that failed and may work the next time.
const NEWS_PAUSE: Duration = Duration::from_secs(1);
const JSON: &str = "application/json";
const SCHEME: &str = "midwatch://";

/// What an address names.
enum Named<'a> {
    Run(&'a str),
    RunEvents(&'a str),
    Schedule(&'a str),
    LedgerHead,
    Status,
}

pub(crate) fn fixed() -> Vec<Resource> {
    let head = Resource::new("midwatch://ledger/head", "ledger_head")
        .with_description("The newest entry of the log, and its hash");
    let status = Resource::new("midwatch://status", "status").with_description("How things stand");
    vec![head.with_mime_type(JSON), status.with_mime_type(JSON)]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(JSON)
    };
    vec![
        template("midwatch://run/{id}", "run", "A run, with what it said"),
        template("midwatch://run/{id}/events", "run_events", "What the log says of a run"),
        template("midwatch://schedule/{id}", "schedule", "A schedule"),
    ]
}

/// What completes a place in an address.
pub(crate) fn ids(template: &str, argument: &str) -> Option<Ids> {
    match (named(template)?, argument) {
        (Named::Run("{id}") | Named::RunEvents("{id}"), "id") => Some(Ids::Runs),
        (Named::Schedule("{id}"), "id") => Some(Ids::Schedules),
        _ => None,
    }
}

pub(crate) fn is_known(uri: &str) -> bool {
    named(uri).is_some()
}

/// Whether all of these can be followed.
pub(crate) async fn check(handle: &dyn Handle, uris: &[String]) -> Result<(), ErrorData> {
    if SUBSCRIPTIONS_MAX < uris.len() {
        return Err(too_many());
    }
    for uri in uris {
        read(handle, uri).await?;
    }
    Ok(())
}

pub(crate) async fn read(handle: &dyn Handle, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let value = match named(uri).ok_or_else(|| unknown(uri))? {
        Named::Run(id) => told(ask(handle, RunShow { id: id.to_owned() }).await),
        Named::RunEvents(id) => told(ask(handle, RunEvents { id: id.to_owned() }).await),
        Named::Schedule(id) => told(ask(handle, ScheduleShow { id: id.to_owned() }).await),
        Named::LedgerHead => {
            let last = LedgerTail { limit: Some(1), ..LedgerTail::default() };
            told(ask(handle, last).await)
        }
        Named::Status => told(ask(handle, StatusAsk {}).await),
    };
    let value = value.map_err(|error| failed(uri, &error))?;
    let text = ResourceContents::text(value.to_string(), uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![text]))
}

/// Where news begin that come from now on.
pub(crate) async fn place(handle: &dyn Handle) -> Result<u64, Error> {
    Ok(ask(handle, News::default()).await?.cursor)
}

/// Tells of each of these whenever there is news, for as long as somebody wants to know. Without a place to
/// begin after, all are news at first. Fails when whoever asks may not know any more.
pub(crate) async fn tell<F: Future<Output = bool>>(
    handle: &dyn Handle,
    uris: &[String],
    mut after: Option<u64>,
    told: impl Fn(String) -> F,
) -> Result<(), Error> {
    let followed: Vec<(&String, Named<'_>)> =
        uris.iter().filter_map(|uri| Some((uri, named(uri)?))).collect();
    let about: Vec<String> =
        followed.iter().filter_map(|(_, named)| named.id()).map(str::to_owned).collect();
    let any = followed.iter().any(|(_, named)| named.id().is_none());
    if followed.is_empty() {
        return Ok(());
    }
    loop {
        let wait_ms = if after.is_some() { NEWS_WAIT_MS } else { 0 };
        let heard = match ask(handle, News { after, about: about.clone(), any, wait_ms }).await {
            Ok(heard) => heard,
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => {
                sleep(NEWS_PAUSE).await;
                continue;
            }
        };
        for (uri, named) in &followed {
            let is_news = after.is_none_or(|after| named.is_among(&heard, after));
            if is_news && !told((*uri).clone()).await {
                return Ok(());
            }
        }
        after = Some(heard.cursor);
    }
}

/// Whether to ask again is of no use.
fn is_final(error: &Error) -> bool {
    use Code::{Denied, HumanNeeded, InvalidInput, NotFound, RoleTooLow, TokenInvalid};
    matches!(error.code, Denied | HumanNeeded | InvalidInput | NotFound | RoleTooLow | TokenInvalid)
}

/// What a client of the earlier era has asked for news of. They end with it.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<Followed>>);

#[derive(Default)]
struct Followed {
    by_uri: HashMap<String, AbortHandle>,
    tasks: JoinSet<()>,
}

impl Subscriptions {
    pub(crate) fn add(
        &self,
        handle: Arc<dyn Handle>,
        uri: String,
        after: u64,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut followed = self.followed();
        let Followed { by_uri, tasks } = &mut *followed;
        // Those that have ended are not kept.
        by_uri.retain(|_, task| !task.is_finished());
        while tasks.try_join_next().is_some() {}
        if by_uri.contains_key(&uri) {
            return Ok(());
        }
        if by_uri.len() == SUBSCRIPTIONS_MAX {
            return Err(too_many());
        }
        let uris = vec![uri.clone()];
        let task = tasks.spawn(async move {
            let told = |uri| {
                let news = ResourceUpdatedNotificationParam::new(uri);
                let peer = peer.clone();
                async move { peer.notify_resource_updated(news).await.is_ok() }
            };
            if tell(&*handle, &uris, Some(after), told).await.is_err() {
                // Whoever reads it then learns why there is no more news of it.
                for uri in uris {
                    told(uri).await;
                }
            }
        });
        by_uri.insert(uri, task);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        let mut followed = self.followed();
        if let Some(task) = followed.by_uri.remove(uri) {
            task.abort();
        }
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Named<'_> {
    /// Of what it tells, unless it is of everything.
    fn id(&self) -> Option<&str> {
        match self {
            Named::Run(id) | Named::RunEvents(id) | Named::Schedule(id) => Some(id),
            Named::LedgerHead | Named::Status => None,
        }
    }

    /// Whether what was heard is news of this.
    fn is_among(&self, heard: &Heard, after: u64) -> bool {
        match self.id() {
            Some(id) => heard.about.iter().any(|it| it == id),
            None => after < heard.cursor,
        }
    }
}

fn named(uri: &str) -> Option<Named<'_>> {
    let parts: Vec<&str> = uri.strip_prefix(SCHEME)?.split('/').collect();
    match parts.as_slice() {
        ["run", id] if !id.is_empty() => Some(Named::Run(id)),
        ["run", id, "events"] if !id.is_empty() => Some(Named::RunEvents(id)),
        ["schedule", id] if !id.is_empty() => Some(Named::Schedule(id)),
        ["ledger", "head"] => Some(Named::LedgerHead),
        ["status"] => Some(Named::Status),
        _ => None,
    }
}

fn told(answer: Result<impl Serialize, Error>) -> Result<Value, Error> {
    shown(&answer?)
}

fn unknown(uri: &str) -> ErrorData {
    let uri = brief(uri);
    let data = json!({ "uri": uri });
    ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(data))
}

/// Why there is no more news.
pub(crate) fn ended(error: &Error) -> ErrorData {
    ErrorData::invalid_request(error.to_string(), Some(json!({ "error": error })))
}

fn too_many() -> ErrorData {
    let what = format!("at most {SUBSCRIPTIONS_MAX} resources are followed at once");
    ErrorData::invalid_params(what, None)
}

fn failed(uri: &str, error: &Error) -> ErrorData {
    let uri = brief(uri);
    let data = Some(json!({ "uri": uri, "error": error }));
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(format!("{uri}: {error}"), data),
        _ => ErrorData::invalid_request(format!("{uri}: {error}"), data),
    }
}
