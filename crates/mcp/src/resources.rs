//! Resources: runs, schedules, the status and the end of the ledger; and subscriptions to them.
//!
//! A notification only says that a resource has changed; a client that misses one loses no data.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{
    Changes, Code, Error, Handle, LedgerTail, RunEvents, RunShow, ScheduleShow, StatusShow,
    WaitForChanges, send,
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

use crate::completion::ArgumentKind;
use crate::message::abbreviate;
use crate::tool::to_json;

/// Maximum number of resources to which one client or request subscribes.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 32;
/// How long one request waits for changes, in milliseconds.
const CHANGES_WAIT_MS: u32 = 25_000;
/// Delay before a failed request is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const JSON: &str = "application/json";
const SCHEME: &str = "midwatch://";

/// A parsed resource URI.
enum ResourceUri<'a> {
    Run(&'a str),
    RunEvents(&'a str),
    Schedule(&'a str),
    LedgerHead,
    Status,
}

pub(crate) fn fixed() -> Vec<Resource> {
    let head = Resource::new("midwatch://ledger/head", "ledger_head")
        .with_description("The newest entry of the ledger, and its hash");
    let status = Resource::new("midwatch://status", "status")
        .with_description("The status: runs, next schedules, pending approvals");
    vec![head.with_mime_type(JSON), status.with_mime_type(JSON)]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_description(description).with_mime_type(JSON)
    };
    vec![
        template("midwatch://run/{id}", "run", "A run and its output"),
        template("midwatch://run/{id}/events", "run_events", "The ledger entries of a run"),
        template("midwatch://schedule/{id}", "schedule", "A schedule"),
    ]
}

/// What a variable of a URI template holds.
pub(crate) fn argument_kind(template: &str, argument: &str) -> Option<ArgumentKind> {
    match (parse_uri(template)?, argument) {
        (ResourceUri::Run("{id}") | ResourceUri::RunEvents("{id}"), "id") => {
            Some(ArgumentKind::RunId)
        }
        (ResourceUri::Schedule("{id}"), "id") => Some(ArgumentKind::ScheduleId),
        _ => None,
    }
}

pub(crate) fn is_known(uri: &str) -> bool {
    parse_uri(uri).is_some()
}

/// Checks that the caller can read all of these.
pub(crate) async fn check_readable(handle: &dyn Handle, uris: &[String]) -> Result<(), ErrorData> {
    if SUBSCRIPTIONS_MAX < uris.len() {
        return Err(too_many_subscriptions());
    }
    for uri in uris {
        read(handle, uri).await?;
    }
    Ok(())
}

pub(crate) async fn read(handle: &dyn Handle, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let value = match parse_uri(uri).ok_or_else(|| unknown_resource(uri))? {
        ResourceUri::Run(id) => response_json(send(handle, RunShow { id: id.to_owned() }).await),
        ResourceUri::RunEvents(id) => {
            response_json(send(handle, RunEvents { id: id.to_owned() }).await)
        }
        ResourceUri::Schedule(id) => {
            response_json(send(handle, ScheduleShow { id: id.to_owned() }).await)
        }
        ResourceUri::LedgerHead => {
            let last = LedgerTail { limit: Some(1), ..LedgerTail::default() };
            response_json(send(handle, last).await)
        }
        ResourceUri::Status => response_json(send(handle, StatusShow {}).await),
    };
    let value = value.map_err(|error| read_error(uri, &error))?;
    let text = ResourceContents::text(value.to_string(), uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![text]))
}

/// The current position of the change feed.
pub(crate) async fn current_cursor(handle: &dyn Handle) -> Result<u64, Error> {
    Ok(send(handle, WaitForChanges::default()).await?.cursor)
}

/// Calls `notify` with the URI of each resource that changes, until `notify` returns false. Without `after` it first
/// notifies of all of them. Fails when the caller may no longer read them.
pub(crate) async fn notify_changes<F: Future<Output = bool>>(
    handle: &dyn Handle,
    uris: &[String],
    mut after: Option<u64>,
    notify: impl Fn(String) -> F,
) -> Result<(), Error> {
    let resources: Vec<(&String, ResourceUri<'_>)> =
        uris.iter().filter_map(|uri| Some((uri, parse_uri(uri)?))).collect();
    let about: Vec<String> =
        resources.iter().filter_map(|(_, resource)| resource.id()).map(str::to_owned).collect();
    let any = resources.iter().any(|(_, resource)| resource.id().is_none());
    if resources.is_empty() {
        return Ok(());
    }
    loop {
        let wait_ms = if after.is_some() { CHANGES_WAIT_MS } else { 0 };
        let changes = match send(
            handle,
            WaitForChanges { after, about: about.clone(), any, wait_ms },
        )
        .await
        {
            Ok(changes) => changes,
            Err(error) if is_final(&error) => return Err(error),
            Err(_) => {
                sleep(RETRY_DELAY).await;
                continue;
            }
        };
        for (uri, resource) in &resources {
            let has_changed = after.is_none_or(|after| resource.is_among(&changes, after));
            if has_changed && !notify((*uri).clone()).await {
                return Ok(());
            }
        }
        after = Some(changes.cursor);
    }
}

/// Whether a retry would fail as well.
fn is_final(error: &Error) -> bool {
    use Code::{Denied, HumanNeeded, InvalidInput, NotFound, RoleTooLow, TokenInvalid};
    matches!(error.code, Denied | HumanNeeded | InvalidInput | NotFound | RoleTooLow | TokenInvalid)
}

/// The subscriptions of a client of the earlier era. They end when it is dropped.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<ActiveSubscriptions>>);

#[derive(Default)]
struct ActiveSubscriptions {
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
        let mut active = self.active();
        let ActiveSubscriptions { by_uri, tasks } = &mut *active;
        // Remove those that have ended.
        by_uri.retain(|_, task| !task.is_finished());
        while tasks.try_join_next().is_some() {}
        if by_uri.contains_key(&uri) {
            return Ok(());
        }
        if by_uri.len() == SUBSCRIPTIONS_MAX {
            return Err(too_many_subscriptions());
        }
        let uris = vec![uri.clone()];
        let task = tasks.spawn(async move {
            let notify = |uri| {
                let update = ResourceUpdatedNotificationParam::new(uri);
                let peer = peer.clone();
                async move { peer.notify_resource_updated(update).await.is_ok() }
            };
            if notify_changes(&*handle, &uris, Some(after), notify).await.is_err() {
                // The client then reads the resource and gets the error.
                for uri in uris {
                    notify(uri).await;
                }
            }
        });
        by_uri.insert(uri, task);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        let mut active = self.active();
        if let Some(task) = active.by_uri.remove(uri) {
            task.abort();
        }
    }

    fn active(&self) -> MutexGuard<'_, ActiveSubscriptions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResourceUri<'_> {
    /// The id of the run or schedule. `None` if every change concerns the resource.
    fn id(&self) -> Option<&str> {
        match self {
            ResourceUri::Run(id) | ResourceUri::RunEvents(id) | ResourceUri::Schedule(id) => {
                Some(id)
            }
            ResourceUri::LedgerHead | ResourceUri::Status => None,
        }
    }

    /// Whether this resource is among the changes.
    fn is_among(&self, changes: &Changes, after: u64) -> bool {
        match self.id() {
            Some(id) => changes.about.iter().any(|it| it == id),
            None => after < changes.cursor,
        }
    }
}

fn parse_uri(uri: &str) -> Option<ResourceUri<'_>> {
    let parts: Vec<&str> = uri.strip_prefix(SCHEME)?.split('/').collect();
    match parts.as_slice() {
        ["run", id] if !id.is_empty() => Some(ResourceUri::Run(id)),
        ["run", id, "events"] if !id.is_empty() => Some(ResourceUri::RunEvents(id)),
        ["schedule", id] if !id.is_empty() => Some(ResourceUri::Schedule(id)),
        ["ledger", "head"] => Some(ResourceUri::LedgerHead),
        ["status"] => Some(ResourceUri::Status),
        _ => None,
    }
}

fn response_json(answer: Result<impl Serialize, Error>) -> Result<Value, Error> {
    to_json(&answer?)
}

fn unknown_resource(uri: &str) -> ErrorData {
    let uri = abbreviate(uri);
    let data = json!({ "uri": uri });
    ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(data))
}

/// The protocol error for a subscription that failed.
pub(crate) fn subscription_error(error: &Error) -> ErrorData {
    ErrorData::invalid_request(error.to_string(), Some(json!({ "error": error })))
}

fn too_many_subscriptions() -> ErrorData {
    let what = format!("the limit of {SUBSCRIPTIONS_MAX} subscriptions is reached");
    ErrorData::invalid_params(what, None)
}

fn read_error(uri: &str, error: &Error) -> ErrorData {
    let uri = abbreviate(uri);
    let data = Some(json!({ "uri": uri, "error": error }));
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(format!("{uri}: {error}"), data),
        _ => ErrorData::invalid_request(format!("{uri}: {error}"), data),
    }
}
