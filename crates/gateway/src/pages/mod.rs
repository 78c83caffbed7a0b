//! The dashboard: pages for people who have signed in, forms that they send, and streams that keep pages up to date.
//!
//! Invariants:
//! - A cookie only looks. The handle of a page refuses every change, and a form needs a signature by the page key of its
//!   device, or a token.
//! - Every request of a page comes from a process of no run.
//! - Who the person is, and whether their device is still valid, is asked for each request and each batch of a stream.

mod action;
mod browser;
mod csp;
mod device;
mod enter;
mod form;
mod live;
mod looking;
mod nonces;
mod proof;
mod response;
mod session;
mod view;

use std::sync::Arc;

use api::{Code, Error};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use web::View;

pub use device::{DeviceAuthenticator, Session, SessionUse};

use crate::approval;
use crate::authenticate::CallerGate;
use crate::concurrency_limit::ConcurrencyLimit;
use crate::connection::RequestConnection;
use crate::origin::single;
use crate::rejection::Rejection;
use csp::CspReports;
use nonces::Nonces;

/// Streams that one device may have open. Browsers open six connections to a host at most, and pages need some.
const STREAMS_PER_DEVICE_MAX: usize = 4;
/// Streams of all devices, so that connections are left for pages.
const STREAMS_MAX: usize = 48;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the handlers of the dashboard share.
pub(crate) struct Pages {
    gate: Arc<CallerGate>,
    devices: Arc<dyn DeviceAuthenticator>,
    /// Becomes true when the daemon stops.
    stopped: Receiver<bool>,
    nonces: Nonces,
    streams_per_device: ConcurrencyLimit,
    streams: Arc<Semaphore>,
    csp_reports: CspReports,
}

impl Pages {
    pub(crate) fn new(
        gate: Arc<CallerGate>,
        devices: Arc<dyn DeviceAuthenticator>,
        stopped: Receiver<bool>,
    ) -> Pages {
        Pages {
            gate,
            devices,
            stopped,
            nonces: Nonces::default(),
            streams_per_device: ConcurrencyLimit::new(STREAMS_PER_DEVICE_MAX),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            csp_reports: CspReports::default(),
        }
    }

    /// Fails unless the process at the other end of the connection belongs to no run.
    async fn check_peer(&self, connection: &RequestConnection) -> Result<(), Error> {
        self.devices.check_peer(connection.peer().await).await
    }
}

/// An address of the dashboard.
#[derive(Debug)]
enum Route {
    Asset(web::Asset),
    Enter,
    SignIn,
    View(Box<View>),
    Live,
    Preferences,
    Action,
    CspReport,
}

/// Where the page of an approval is that also works without a session.
const APPROVAL_PREFIX: &str = approval::PATH_PREFIX;

fn route(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Route> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    if *method == Method::GET || *method == Method::HEAD {
        return match path {
            "/enter" => Some(Route::Enter),
            "/live" => Some(Route::Live),
            _ => match web::asset(path) {
                Some(asset) => Some(Route::Asset(asset)),
                None => View::parse(path, query).ok().map(|view| Route::View(Box::new(view))),
            },
        };
    }
    if *method != Method::POST {
        return None;
    }
    match path {
        "/enter" => Some(Route::SignIn),
        "/csp" => Some(Route::CspReport),
        "/settings/theme" => Some(Route::Preferences),
        // The form of the approval page without a session.
        _ if is_approval_page(path) => None,
        _ => form::is_form(headers).then_some(Route::Action),
    }
}

fn is_approval_page(path: &str) -> bool {
    path.strip_prefix(APPROVAL_PREFIX).is_some_and(|id| !id.ends_with("/decide"))
}

/// Middleware that responds to addresses of the dashboard, and passes on all other requests.
pub(crate) async fn dashboard(
    State(pages): State<Arc<Pages>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(route) = route(request.method(), request.uri(), request.headers()) else {
        return next.run(request).await;
    };
    let Some(connection) = request.extensions().get::<RequestConnection>().cloned() else {
        let error = Error::new(Code::Failed, "the connection of the request is unknown");
        return response::error(&error, None);
    };
    let (head, body) = request.into_parts();
    match route {
        Route::Asset(asset) => response::asset(&asset),
        Route::Enter => enter::page(&pages, &connection, &head).await,
        Route::SignIn => enter::sign_in(&pages, &connection, &head, body).await,
        Route::View(view) => match view::page(&pages, &connection, &head, &view).await {
            Some(response) => response,
            None => next.run(Request::from_parts(head, body)).await,
        },
        Route::Live => live::stream(&pages, &connection, &head).await,
        Route::Preferences => session::set_theme(&head, body).await,
        Route::Action => action::act(&pages, &connection, &head, body).await,
        Route::CspReport => pages.csp_reports.take(body).await,
    }
}

/// Refuses what another page made the browser send, as far as the browser says so. Old browsers do not.
fn check_same_origin(headers: &HeaderMap) -> Result<(), Rejection> {
    const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    match single(headers, &SEC_FETCH_SITE)? {
        None if !headers.contains_key(SEC_FETCH_SITE) => Ok(()),
        Some("same-origin") => Ok(()),
        _ => Err(Rejection {
            status: StatusCode::FORBIDDEN,
            error: Error::new(Code::Denied, "another page made the browser send this")
                .hint("use the pages of this Midwatch"),
        }),
    }
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
