//! The HTTP API, `/api/v1`: one route per row of the table of requests, the feed of the ledger, and the probes.
//!
//! It has no rules: a route turns a request into a call of its caller's handle. Every route but the probes needs a token in
//! the `Authorization` header; cookies are never read.

mod authenticate;
mod events;
mod list;
mod probes;
mod problem;
mod rate_limit;
mod request;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{API_PREFIX, Call, Code, Error, Method, Route};
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, any, get};
use axum::{Extension, Router};
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue};

use crate::authenticate::{Authenticated, CallerGate};
use crate::rejection::Rejection;
use problem::Problem;
pub(crate) use problem::problem_documents;
use rate_limit::RateLimit;
pub use service::{ApiService, LedgerPosition};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The document of all routes, as it is checked in.
const OPENAPI: &str = include_str!("../../../../docs/openapi.json");

/// The feed, and where events are published.
const EVENTS: &str = "/events";

/// What the handlers share.
pub(crate) struct Api {
    service: Arc<dyn ApiService>,
    gate: Arc<CallerGate>,
    rates: RateLimit,
}

/// The routes that need no token.
fn probes(service: Arc<dyn ApiService>) -> Router {
    Router::new()
        .route("/healthz", get(probes::is_alive))
        .route("/readyz", get(probes::is_ready).with_state(service))
}

/// All routes below `/api/v1`, and the probes.
pub(crate) fn routes(service: Arc<dyn ApiService>, gate: Arc<CallerGate>) -> Router {
    let probes = probes(Arc::clone(&service));
    let api = Arc::new(Api { service, gate, rates: RateLimit::default() });
    let mut paths: BTreeMap<&'static str, Vec<&'static Route>> = BTreeMap::new();
    for route in Route::all() {
        paths.entry(route.path).or_default().push(route);
    }
    let mut router = Router::new();
    for (path, routes) in paths {
        let mut methods: Vec<Method> = routes.iter().map(|route| route.method).collect();
        methods.extend((path == EVENTS).then_some(Method::GET));
        let mut at_path = other_methods(methods);
        for route in routes {
            let handle = move |State(api), Extension(caller), headers, request| {
                respond(route, api, caller, headers, request)
            };
            at_path = at_path.on(filter(route.method), handle);
        }
        if path == EVENTS {
            at_path = at_path.get(events::respond);
        }
        router = router.route(path, at_path);
    }
    let router = router
        .route("/openapi.json", other_methods(vec![Method::GET]).get(openapi))
        .fallback(not_found)
        .layer(from_fn_with_state(Arc::clone(&api), authenticate::require_caller))
        .with_state(api);
    probes.nest(API_PREFIX, router)
}

const fn filter(method: Method) -> MethodFilter {
    match method {
        Method::GET => MethodFilter::GET,
        Method::POST => MethodFilter::POST,
        Method::PATCH => MethodFilter::PATCH,
        Method::DELETE => MethodFilter::DELETE,
    }
}

/// Makes the request of a route.
async fn respond(
    route: &'static Route,
    api: Arc<Api>,
    caller: Authenticated,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    request::check_accepts_json(&headers)?;
    let key = request::idempotency_key(route, &headers)?;
    let version = request::version(route, &headers)?;
    let request = request::read(route, &api.gate.bodies, &caller.name, request).await?;
    if !request.stops() {
        api.rates.check(&caller.name, request.changes())?;
    }
    let at = match route.is_list() {
        true => Some(api.service.ledger_position().await?.entries),
        false => None,
    };
    let progress = api::ProgressSink::default();
    let response = caller.handle.call(Call { request, key, version, tool: None, progress }).await?;
    let mut document = response.to_json().map_err(|error| Error::new(Code::Failed, error))?;
    if let Some(at) = at {
        list::add_position(&mut document, at);
    }
    let mut reply = ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response();
    if matches!(response, api::Response::Replayed(_)) {
        reply.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    let tag = response.version().map(|version| HeaderValue::try_from(format!("\"v{version}\"")));
    if let Some(Ok(tag)) = tag {
        reply.headers_mut().insert(ETAG, tag);
    }
    Ok(reply)
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], OPENAPI)
}

async fn not_found() -> Rejection {
    let error = Error::new(Code::NotFound, "there is nothing at this path");
    let hint = "`/api/v1/openapi.json` lists the paths";
    Rejection { status: StatusCode::NOT_FOUND, error: error.hint(hint) }
}

/// Responds to the methods that a path does not have. The router would do that, but it would name the methods of a path also
/// to callers without a token.
fn other_methods(mut methods: Vec<Method>) -> MethodRouter<Arc<Api>> {
    methods.sort();
    let names = methods.iter().map(|method| match method {
        Method::GET => "GET,HEAD",
        other => other.as_str(),
    });
    let allowed = names.collect::<Vec<_>>().join(",");
    any(move || wrong_method(allowed))
}

async fn wrong_method(allowed: String) -> impl IntoResponse {
    let error = Error::new(Code::InvalidInput, "this path does not have this method");
    let error = error.hint(format!("it has {allowed}"));
    ([(ALLOW, allowed)], Rejection { status: StatusCode::METHOD_NOT_ALLOWED, error })
}
