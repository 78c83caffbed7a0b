//! `GET /api/v1/events`: the entries of the ledger after any position, as one page or as a stream.
//!
//! A reader has a cursor and no queue: the next entries are read when the last ones have been written. A reader that is too
//! slow loses its connection by the write timeout, and resumes where it was. Each batch is a request of the reader, so what it
//! may not see ends the stream.

use std::sync::Arc;

use api::{
    Code, Error, Events, Fields, Handle, LIST_ITEMS_MAX, LedgerTail, Request as ApiRequest, Route,
    send,
};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, Stream};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use serde_json::json;
use std::convert::Infallible;
use std::fmt::Write;

use crate::authenticate::Authenticated;
use crate::rest::Api;
use crate::rest::problem::{Problem, status};
use crate::rest::request::{accepted, header, not_acceptable, query_parameters};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const SERVER_SENT: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The longest wait for one page.
const WAIT_SECONDS_MAX: u32 = 25;
/// After this time without an entry, a stream says where it is.
const BOOKMARK_AFTER_MS: u32 = 15_000;
/// When a browser connects again.
const RETRY_MS: u32 = 3_000;

/// How a stream writes what it has.
#[derive(Clone, Copy, Debug)]
enum Format {
    Lines,
    ServerSent,
}

pub(super) async fn respond(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Authenticated>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let kind = accepted(&headers, &[JSON, LINES, SERVER_SENT]).ok_or_else(|| {
        not_acceptable("`application/json`, `application/x-ndjson` or `text/event-stream`")
    })?;
    let mut tail = parse(query_parameters(&request))?;
    if let Some(id) = header(&headers, &LAST_EVENT_ID)? {
        let id = id.parse().map_err(|_| {
            Error::new(Code::InvalidInput, format!("`{LAST_EVENT_ID}` is no position"))
        })?;
        tail.after = tail.after.max(Some(id));
    }
    api.rates.check(&caller.name, false)?;
    let end = api.service.ledger_position().await?;
    if tail.log.as_ref().is_none_or(|log| *log == end.log) && tail.after > Some(end.entries) {
        let what = format!("the ledger has {} entries, none of them after that", end.entries);
        let hint = "leave out `after` to follow it from its end";
        return Err(Error::new(Code::InvalidInput, what).hint(hint).into());
    }
    tail.after = tail.after.or(Some(end.entries));
    let is_page = kind == JSON;
    if !is_page {
        tail.wait_ms = 0;
    }
    // The first batch of a stream, too, so that a refusal has its status.
    let first = send(&*caller.handle, tail.clone()).await?;
    let format = match kind {
        LINES => Format::Lines,
        SERVER_SENT => Format::ServerSent,
        _ => {
            let page = serde_json::to_string(&first).map_err(|e| Error::new(Code::Failed, e))?;
            return Ok(([(CONTENT_TYPE, JSON)], page).into_response());
        }
    };
    let tail = LedgerTail { wait_ms: BOOKMARK_AFTER_MS, limit: Some(LIST_ITEMS_MAX), ..tail };
    let body = Body::from_stream(batches(caller.handle, tail, format, first));
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], body).into_response())
}

/// The request of a query. Its parameters are the fields of `ledger.tail`, but the wait is in seconds.
fn parse(mut query: Vec<(String, String)>) -> Result<LedgerTail, Error> {
    let invalid = |what: &str| Error::new(Code::InvalidInput, what);
    let waits: Vec<String> =
        query.extract_if(.., |(name, _)| name == "wait").map(|(_, value)| value).collect();
    if query.iter().any(|(name, _)| name == "wait_ms") {
        return Err(invalid("unknown field `wait_ms`").hint("`wait` is the time in seconds"));
    }
    let wait = match &*waits {
        [] => 0,
        [wait] => wait.parse().ok().filter(|wait| *wait <= WAIT_SECONDS_MAX).ok_or_else(|| {
            invalid("invalid `wait`")
                .hint(format!("it is a number of seconds, at most {WAIT_SECONDS_MAX}"))
        })?,
        _ => return Err(invalid("duplicate field `wait`")),
    };
    let route = Route::all().find(|route| route.name == "ledger.tail");
    let route = route.ok_or_else(|| Error::new(Code::Failed, "there is no route to the ledger"))?;
    match route.request(Fields { query, ..Fields::default() })? {
        ApiRequest::LedgerTail(tail) => Ok(LedgerTail { wait_ms: wait * 1_000, ..tail }),
        _ => Err(Error::new(Code::Failed, "the route to the ledger has another request")),
    }
}

/// The rest of a stream.
enum Next {
    /// This batch, and then others.
    Batch(Events),
    After(u64),
    End,
}

fn batches(
    handle: Arc<dyn Handle>,
    tail: LedgerTail,
    format: Format,
    first: Events,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold((Next::Batch(first), true), move |(next, is_first)| {
        let (handle, tail) = (Arc::clone(&handle), tail.clone());
        async move {
            let (text, next) = match next {
                Next::End => return None,
                Next::Batch(events) => {
                    (format.batch(&events, is_first), Next::After(events.cursor))
                }
                Next::After(cursor) => {
                    let request = LedgerTail { after: Some(cursor), ..tail };
                    match send(&*handle, request).await {
                        Ok(events) => (format.batch(&events, is_first), Next::After(events.cursor)),
                        Err(error) => (format.gone(&error, cursor), Next::End),
                    }
                }
            };
            Some((Ok(text.into()), (next, false)))
        }
    })
}

impl Format {
    /// The entries of a batch, and behind them a bookmark if it ends later than they do: a reader that filters need not begin
    /// again where the last entry was.
    fn batch(self, events: &Events, is_first: bool) -> String {
        let mut text = String::new();
        if let (true, Format::ServerSent) = (is_first, self) {
            let _ = write!(text, "retry: {RETRY_MS}\n\n");
        }
        for event in &events.events {
            let data = serde_json::to_string(event).unwrap_or_default();
            let _ = match self {
                Format::Lines => writeln!(text, "{data}"),
                Format::ServerSent => write!(text, "id: {}\ndata: {data}\n\n", event.seq),
            };
        }
        if events.events.last().is_none_or(|last| last.seq < events.cursor) {
            let bookmark = json!({"bookmark": events.cursor, "log": events.log});
            self.write_named(&mut text, "bookmark", events.cursor, &bookmark);
        }
        text
    }

    /// Why the stream ends, and where to resume.
    fn gone(self, error: &Error, resume: u64) -> String {
        let mut text = String::new();
        let reason =
            json!({"status": status(error.code).as_u16(), "error": error, "resume": resume});
        self.write_named(&mut text, "gone", resume, &json!({"gone": reason}));
        text
    }

    fn write_named(self, text: &mut String, name: &str, id: u64, data: &serde_json::Value) {
        let _ = match self {
            Format::Lines => writeln!(text, "{data}"),
            Format::ServerSent => write!(text, "id: {id}\nevent: {name}\ndata: {data}\n\n"),
        };
    }
}
