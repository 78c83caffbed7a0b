//! Runs, schedules and the end of the log as resources, and news of them.
//!
//! News only say that there is something to read; whoever misses them loses nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{
    Code, Error, Handle, LedgerTail, RunEvents, RunShow, RunWatch, ScheduleShow, StatusAsk, ask,
};
use futures::future::join_all;
use rmcp::model::{
    ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{Peer, RoleServer};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use crate::completion::Ids;
use crate::tool::shown;

/// Resources of which one request may ask for news.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 32;
/// How long one look for news waits, in milliseconds.
const NEWS_WAIT_MS: u32 = 25_000;
/// Entries of the log that are looked at for news.
const EVENTS_MAX: u32 = 1_000;
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

/// Tells of each of these whenever there is news, for as long as somebody wants to know.
pub(crate) async fn tell<F: Future<Output = bool>>(
    handle: &dyn Handle,
    uris: Vec<String>,
    told: impl Fn(String) -> F,
) {
    join_all(uris.iter().map(|uri| tell_of(handle, uri, &told))).await;
}

async fn tell_of<F: Future<Output = bool>>(
    handle: &dyn Handle,
    uri: &str,
    told: &impl Fn(String) -> F,
) {
    let Some(named) = named(uri) else { return };
    let mut seen = None;
    let mut after = None;
    loop {
        let is_news = match &named {
            Named::Run(id) => {
                let watch =
                    RunWatch { id: (*id).to_owned(), seen: seen.clone(), wait_ms: NEWS_WAIT_MS };
                let Ok(watched) = ask(handle, watch).await else { return };
                let is_news = seen.as_ref().is_some_and(|seen| *seen != watched.seen);
                let is_over = watched.ended && seen.is_some();
                seen = Some(watched.seen);
                if is_over && !is_news {
                    return;
                }
                is_news
            }
            Named::RunEvents(_) | Named::Schedule(_) | Named::LedgerHead | Named::Status => {
                let limit = Some(EVENTS_MAX);
                let wait_ms = if after.is_some() { NEWS_WAIT_MS } else { 0 };
                let Ok(tail) = ask(handle, LedgerTail { after, limit, wait_ms }).await else {
                    return;
                };
                let is_news =
                    after.is_some() && tail.events.iter().any(|it| named.is_about(&it.id));
                after = Some(tail.cursor);
                is_news
            }
        };
        if is_news && !told(uri.to_owned()).await {
            return;
        }
    }
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
            let what = format!("at most {SUBSCRIPTIONS_MAX} resources are followed at once");
            return Err(ErrorData::invalid_params(what, None));
        }
        let uris = vec![uri.clone()];
        let task = tasks.spawn(async move {
            tell(&*handle, uris, |uri| {
                let news = ResourceUpdatedNotificationParam::new(uri);
                let peer = peer.clone();
                async move { peer.notify_resource_updated(news).await.is_ok() }
            })
            .await;
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
    /// Whether an entry about this id is news.
    fn is_about(&self, id: &str) -> bool {
        match self {
            Named::Run(of) | Named::RunEvents(of) | Named::Schedule(of) => *of == id,
            Named::LedgerHead | Named::Status => true,
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
    let data = json!({ "uri": uri });
    ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(data))
}

fn failed(uri: &str, error: &Error) -> ErrorData {
    let data = Some(json!({ "uri": uri, "error": error }));
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(format!("{uri}: {error}"), data),
        _ => ErrorData::invalid_request(format!("{uri}: {error}"), data),
    }
}
