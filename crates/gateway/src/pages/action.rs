//! Submitted forms.

use std::sync::Arc;

use api::wire::Secret;
use api::{Error, Handle};
use axum::body::Body;
use axum::response::Response;
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use web::{Action, Done, act as make};

use super::form::{Form, read_form};
use super::proof::{Signed, check};
use super::{Pages, SessionUse, check_same_origin, response};
use crate::approval::status;
use crate::authenticate::Authenticated;
use crate::connection::RequestConnection;
use crate::origin::check_form;
use crate::rejection::Rejection;

/// The field that carries a token. No script reads it, and no action sees it.
const TOKEN: &str = "token";

/// `POST` of a form. The sender is proven by a signature, or by a token in the form.
pub(super) async fn act(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    body: Body,
) -> Response {
    let wants_json = wants_json(&head.headers);
    match try_act(pages, connection, head, body).await {
        Ok(done) if wants_json => response::done(&done),
        Ok(done) => response::see_other(&done.location),
        Err(Rejection { status, error }) if wants_json => response::error_json(status, &error),
        Err(Rejection { status, error }) => response::error_with(status, &error, None),
    }
}

/// Who sends a form, and a key that makes it safe to send it twice.
struct Sender {
    person: Authenticated,
    key: Option<String>,
}

async fn try_act(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    body: Body,
) -> Result<Done, Rejection> {
    check_same_origin(&head.headers)?;
    check_form(&head.headers)?;
    let mut form = read_form(body).await?;
    let Sender { person, key } =
        sender(pages, connection, head, &mut form).await.map_err(rejection)?;
    let action = Action::parse(head.uri.path(), &form.fields).map_err(rejection)?;
    // A stop must work when the person has all of their requests in use.
    let _permit = match pages.gate.admit(&person, connection) {
        Err(refused) if !action.is_stop() => return Err(refused),
        permit => permit.ok(),
    };
    let handle: Arc<dyn Handle> = person.handle;
    make(&*handle, action, key).await.map_err(rejection)
}

/// The person who sent the form. A cookie alone identifies no sender.
async fn sender(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    form: &mut Form,
) -> Result<Sender, Error> {
    if let Some(token) = take_token(&mut form.fields) {
        let authenticator = &pages.gate.authenticator;
        let person = authenticator.authenticate_person(token, connection.addresses).await?;
        return Ok(Sender { person, key: None });
    }
    let session = pages.session(&head.headers, SessionUse::Form).await;
    let session = session.ok_or_else(not_signed_in)??;
    pages.check_peer(connection).await?;
    let path = head.uri.path_and_query().map_or("", |it| it.as_str());
    let signed = Signed { path, body: &form.body };
    let started_us = pages.devices.started_us();
    let nonce = check(&session, &head.headers, signed, &pages.nonces, started_us)?;
    Ok(Sender { person: session.caller, key: Some(format!("form-{nonce}")) })
}

fn take_token(fields: &mut Vec<(String, String)>) -> Option<Secret> {
    let index = fields.iter().position(|(name, _)| name == TOKEN)?;
    let (_, token) = fields.remove(index);
    let token = token.trim();
    (!token.is_empty()).then(|| Secret(token.to_owned()))
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/json"))
}

fn rejection(error: Error) -> Rejection {
    let status = match error.code {
        api::Code::Busy => StatusCode::CONFLICT,
        code => status(code),
    };
    Rejection { status, error }
}

pub(super) fn not_signed_in() -> Error {
    Error::new(api::Code::TokenInvalid, "this browser is not signed in")
        .hint("`midwatch open` in a terminal makes a link that signs it in")
}
