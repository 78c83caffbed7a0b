//! `/live`: keeps an open page up to date. It sends state and not changes: each region of the page that is different now,
//! whole, so an interruption loses nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::{Call, Error, WaitForChanges};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::unfold;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep, sleep_until};
use web::{Page, View, Viewer};

use super::device::DeviceAuthenticator;
use super::looking::LookingHandle;
use super::session::{secret, viewer};
use super::{Pages, Session, SessionUse, VERSION, check_same_origin, no_content, response};
use crate::connection::RequestConnection;

/// The shortest time between two batches.
const BATCH_EVERY: Duration = Duration::from_secs(1);
/// How often a page is looked at without a reason, because time passes, and how often a client hears from us at least.
const BEAT_EVERY: Duration = Duration::from_secs(15);
const BEAT_MS: u32 = 15_000;

/// `GET`: the stream of one page.
pub(super) async fn stream(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
) -> Response {
    let headers = &head.headers;
    if let Err(rejection) = check_same_origin(headers) {
        return response::error_json(rejection.status, &rejection.error);
    }
    let refused = |error: &Error| response::error_json(crate::approval::status(error.code), error);
    let (Some(session), Some(secret)) =
        (pages.session(headers, SessionUse::ByItself).await, secret(headers))
    else {
        return refused(&super::action::not_signed_in());
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => return refused(&error),
    };
    if let Err(error) = pages.check_peer(connection).await {
        return refused(&error);
    }
    let (view, after) = match parse(head.uri.query().unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(error) => return refused(&error),
    };
    let slot = pages.streams_per_device.try_acquire(session.device.clone());
    let permits = slot.zip(Arc::clone(&pages.streams).try_acquire_owned().ok());
    let (Some(permits), Ok(permit)) = (permits, pages.gate.admit(&session.caller, connection))
    else {
        return no_content();
    };
    let live = Live {
        devices: Arc::clone(&pages.devices),
        stopped: pages.stopped.clone(),
        secret,
        headers: headers.clone(),
        view,
        session,
        hashes: HashMap::new(),
        seq: after,
        refresh: None,
        last_batch: Instant::now(),
        next_beat: Instant::now(),
        state: State::New,
        _permits: permits,
    };
    let body = Body::from_stream(unfold(live, next_batch));
    let response = response::with_type(StatusCode::OK, "text/event-stream", body);
    permit.hold_during(response::no_store(response))
}

/// The view, and the position at which the page was made.
fn parse(query: &str) -> Result<(View, u64), Error> {
    let (mut address, mut after) = ("/".to_owned(), 0);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "view" => address = value.into_owned(),
            "after" => after = value.parse().unwrap_or_default(),
            _ => {}
        }
    }
    let (path, query) = address.split_once('?').unwrap_or((&address, ""));
    Ok((View::parse(path, query)?, after))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    Ended,
}

/// One open stream.
struct Live<P> {
    devices: Arc<dyn DeviceAuthenticator>,
    stopped: Receiver<bool>,
    secret: api::wire::Secret,
    headers: HeaderMap,
    view: View,
    session: Session,
    /// Of each region as the page has it.
    hashes: HashMap<&'static str, u64>,
    /// The position in the ledger at which the page was made.
    seq: u64,
    /// How often the page changes without a new entry.
    refresh: Option<Duration>,
    last_batch: Instant,
    next_beat: Instant,
    state: State,
    _permits: P,
}

/// The next events, or the end of the stream. A stop of the daemon ends it at once.
async fn next_batch<P>(mut live: Live<P>) -> Option<(Result<Bytes, Error>, Live<P>)> {
    let mut stopped = live.stopped.clone();
    select! {
        _ = stopped.wait_for(|stopped| *stopped) => None,
        batch = live.batch() => batch.map(|batch| (Ok(Bytes::from(batch)), live)),
    }
}

impl<P> Live<P> {
    async fn batch(&mut self) -> Option<String> {
        if self.state == State::Ended {
            return None;
        }
        loop {
            let is_first = self.state == State::New;
            if !is_first && let Err(error) = self.wait().await {
                return Some(self.end(&error));
            }
            self.last_batch = Instant::now();
            // Role, revocation and expiry may have changed.
            let secret = self.secret.clone();
            match self.devices.authenticate_device(secret, SessionUse::ByItself).await {
                Ok(session) => self.session = session,
                Err(error) => return Some(self.end(&error)),
            }
            let viewer = viewer(&self.session, &self.headers);
            let handle = LookingHandle(Arc::clone(&self.session.caller.handle));
            let page = match web::render(&handle, &self.view, &viewer).await {
                Ok(page) => page,
                Err(error) => return Some(self.end(&error)),
            };
            let mut batch = self.changed_regions(&page);
            if is_first || self.next_beat <= Instant::now() {
                self.next_beat = Instant::now() + BEAT_EVERY;
                batch += &beat(&page, &viewer);
            }
            self.state = State::Open;
            if !batch.is_empty() {
                return Some(batch);
            }
        }
    }

    /// The regions that differ from what the page has. A page that was made at the same position has them all, unless they
    /// change without entries.
    fn changed_regions(&mut self, page: &Page) -> String {
        let has_them =
            self.state == State::New && page.seq <= self.seq && page.refresh_ms.is_none();
        let mut batch = String::new();
        for region in &page.regions {
            let before = self.hashes.insert(region.id, region.hash);
            if !has_them && before != Some(region.hash) {
                batch += &event("region", Some(page.seq), &region.html);
            }
        }
        self.seq = page.seq;
        self.refresh = page.refresh_ms.map(|ms| Duration::from_millis(ms.into()));
        batch
    }

    /// Waits until the page may be different.
    async fn wait(&self) -> Result<(), Error> {
        let until = self.next_beat.min(match self.refresh {
            Some(refresh) => self.last_batch + refresh.max(BATCH_EVERY),
            None => self.next_beat,
        });
        let wait = WaitForChanges {
            after: Some(self.seq),
            any: true,
            wait_ms: BEAT_MS,
            ..WaitForChanges::default()
        };
        let handle = LookingHandle(Arc::clone(&self.session.caller.handle));
        select! {
            () = sleep_until(until) => {}
            changed = Call::new(wait).send::<WaitForChanges>(&handle) => drop(changed?),
        }
        sleep((self.last_batch + BATCH_EVERY).saturating_duration_since(Instant::now())).await;
        Ok(())
    }

    /// Says that the stream is over, and why.
    fn end(&mut self, error: &Error) -> String {
        self.state = State::Ended;
        let hint = error.hint.as_deref().unwrap_or_default();
        event("gone", None, &format!("{}: {hint}", error.message))
    }
}

fn beat(page: &Page, viewer: &Viewer) -> String {
    let data = json!({ "now_us": viewer.now_us, "seq": page.seq, "version": VERSION });
    event("beat", Some(page.seq), &data.to_string())
}

/// A server-sent event. Each line of its data is a line of its own.
fn event(name: &str, seq: Option<u64>, data: &str) -> String {
    let mut text = seq.map(|seq| format!("id: {seq}\n")).unwrap_or_default();
    text += &format!("event: {name}\n");
    for line in data.split(['\n', '\r']) {
        text += &format!("data: {line}\n");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_begin_another_event() {
        let text = event("region", Some(7), "<p>a\n\nevent: gone\r\rb</p>");
        assert_eq!(
            text,
            "id: 7\nevent: region\ndata: <p>a\ndata: \ndata: event: gone\ndata: \ndata: b</p>\n\n"
        );
    }

    #[test]
    fn view_and_position_are_parsed() {
        let (view, after) = parse("view=%2Fruns%3Fstate%3Dfailed&after=12").unwrap();
        assert_eq!((view.address(), after), ("/runs?state=failed", 12));
        assert!(parse("view=%2Fnowhere").is_err());
    }
}
