//! `/enter`: where a link signs a browser in.

use api::Error;
use api::wire::Secret;
use axum::body::Body;
use axum::response::Response;
use http::header::{HeaderValue, REFRESH, SET_COOKIE};
use http::request::Parts;
use http::{HeaderName, StatusCode};

use super::browser::browser_name;
use super::form::read_form;
use super::session::{own_address, signed_in};
use super::{Pages, SessionUse, check_same_origin, response};
use crate::approval::status;
use crate::connection::RequestConnection;
use crate::origin::check_form;
use crate::rejection::Rejection;

/// Marks the address of a page that has reloaded itself.
const AGAIN: &str = "&again=1";

/// `GET`: asks for the code of a link. It shows nothing, so it needs no session. A browser keeps the cookie back when a link
/// of another program leads here, and shows it when the page reloads itself; then the page that was wanted follows.
pub(super) async fn page(pages: &Pages, connection: &RequestConnection, head: &Parts) -> Response {
    let query = head.uri.query().unwrap_or_default();
    let target = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "to");
    if let Some(target) = target.and_then(|(_, target)| own_address(&target))
        && pages.check_peer(connection).await.is_ok()
        && let Some(Ok(_)) = pages.session(&head.headers, SessionUse::ByItself).await
    {
        return response::see_other(&target);
    }
    let mut response = response::html(StatusCode::OK, web::enter_document(None));
    if let Some(again) = again(head) {
        response.headers_mut().insert(REFRESH, again);
    }
    response
}

/// The header that makes the page reload itself, once, if another site led here: the next request is our own.
fn again(head: &Parts) -> Option<HeaderValue> {
    const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let site = head.headers.get(SEC_FETCH_SITE)?.as_bytes();
    let query = head.uri.query().filter(|query| query.starts_with("to="))?;
    let is_from_others = site == b"cross-site" || site == b"same-site";
    let is_first = !query.ends_with(AGAIN);
    let address = || HeaderValue::from_str(&format!("0; url=/enter?{query}{AGAIN}")).ok();
    (is_from_others && is_first).then(address).flatten()
}

/// `POST`: signs a browser in.
pub(super) async fn sign_in(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    body: Body,
) -> Response {
    match try_sign_in(pages, connection, head, body).await {
        Ok(session) => {
            let mut response = response::see_other("/");
            if let Some(cookie) = signed_in(&session) {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
            response
        }
        Err(Rejection { status, error }) => {
            response::html(status, web::enter_document(Some(&error)))
        }
    }
}

async fn try_sign_in(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    body: Body,
) -> Result<Secret, Rejection> {
    check_same_origin(&head.headers)?;
    check_form(&head.headers)?;
    let form = read_form(body).await?;
    let rejection = |error: Error| Rejection { status: status(error.code), error };
    pages.check_peer(connection).await.map_err(rejection)?;
    let code = Secret(form.field("code").unwrap_or_default().trim().to_owned());
    let page_key = form.field("key").filter(|key| !key.is_empty()).map(str::to_owned);
    let browser = browser_name(&head.headers);
    let signed_in = pages.devices.sign_in(code, page_key, browser, connection.addresses);
    signed_in.await.map_err(rejection)
}
