//! The page of an approval, `/approvals/ID`, where a human reads the plan and decides.
//!
//! It has no session and no cookie: a browser sends the cookies of a host to every port of it, so a server that an
//! agent runs on this machine would get them. The human enters a token, and the decision form carries it along. So
//! these handlers authenticate by the form, and not by a header.

use std::collections::HashSet;
use std::sync::Arc;

use api::wire::Secret;
use api::{ApprovalDecide, ApprovalShow, Code, Error};
use axum::Extension;
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, Uri};
use maud::Markup;

use crate::authenticate::{Authenticated, CallerGate};
use crate::body::read_body;
use crate::byte_budget::{ByteBudget, FREE_BYTES_MAX};
use crate::connection::RequestConnection;
use crate::origin::check_form;
use crate::page;
use crate::rejection::Rejection;

/// Where the pages are; the rest of the path is the id of the approval.
pub(crate) const PATH_PREFIX: &str = "/approvals/";
const FORM_BYTES_MAX: usize = FREE_BYTES_MAX;

/// A submitted form: only a token to see the plan, or a decision as well.
#[derive(Debug)]
pub(crate) struct Form {
    token: Secret,
    decision: Option<String>,
    plan_hash: Option<String>,
    reason: Option<String>,
}

impl Form {
    /// Refuses a repeated field: of two decisions, one could be shown and the other used.
    fn parse(body: &Bytes) -> Result<Form, Error> {
        let token = Secret(String::new());
        let mut form = Form { token, decision: None, plan_hash: None, reason: None };
        let mut names = HashSet::new();
        for (name, value) in form_urlencoded::parse(body) {
            if !names.insert(name.clone()) {
                let error = Error::new(Code::InvalidInput, "a field of the form is repeated");
                return Err(error.hint("open the link again and send the form from there"));
            }
            let value = value.trim().to_owned();
            match name.as_ref() {
                "token" => form.token = Secret(value),
                "decision" => form.decision = Some(value),
                "plan_hash" => form.plan_hash = Some(value),
                "reason" => form.reason = Some(value).filter(|reason| !reason.is_empty()),
                // Browsers may add fields; they are ignored.
                _ => {}
            }
        }
        Ok(form)
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &S) -> Result<Form, Rejection> {
        check_form(request.headers())?;
        // A form is so small that it needs no reservation.
        let mut reservation = ByteBudget::new(0, 0).reserve(String::new());
        let body = read_body(request.into_body(), FORM_BYTES_MAX, &mut reservation).await?;
        Form::parse(&body).map_err(rejection)
    }
}

/// `GET`: asks for a token and shows nothing of the approval.
pub(crate) async fn sign_in() -> Response {
    page::html_response(StatusCode::OK, page::sign_in())
}

/// `POST`: authenticates a person by the token in the form, then shows the plan or records the decision.
pub(crate) async fn submit(
    State(gate): State<Arc<CallerGate>>,
    Extension(connection): Extension<RequestConnection>,
    uri: Uri,
    form: Result<Form, Rejection>,
) -> Response {
    let id = uri.path().strip_prefix(PATH_PREFIX).unwrap_or_default().to_owned();
    match form {
        Ok(form) => respond(&gate, &connection, id, form).await.unwrap_or_else(error_response),
        Err(rejection) => error_response(rejection),
    }
}

async fn respond(
    gate: &CallerGate,
    connection: &RequestConnection,
    id: String,
    form: Form,
) -> Result<Response, Rejection> {
    let caller =
        gate.authenticator.authenticate_person(form.token.clone(), connection.addresses).await;
    let caller = caller.map_err(rejection)?;
    let permit = gate.admit(&caller, connection)?;
    let response = match form_page(&caller, id, form).await {
        Ok(page) => page::html_response(StatusCode::OK, page),
        Err(error) => error_response(rejection(error)),
    };
    Ok(permit.hold_during(response))
}

/// A page for people instead of the JSON that programs get.
fn error_response(Rejection { status, error }: Rejection) -> Response {
    page::html_response(status, page::error(&error))
}

fn rejection(error: Error) -> Rejection {
    Rejection { status: status(error.code), error }
}

async fn form_page(caller: &Authenticated, id: String, form: Form) -> Result<Markup, Error> {
    let Authenticated { handle, now_us, .. } = caller;
    let Form { token, decision, plan_hash, reason } = form;
    let Some(decision) = decision else {
        let shown = api::send(&**handle, ApprovalShow { id }).await?;
        return Ok(page::plan(&shown.approval, &token, *now_us));
    };
    let decision = decision.parse()?;
    let request = ApprovalDecide { plan_hash, note: reason, ..ApprovalDecide::new(id, decision) };
    let decided = api::send(&**handle, request).await?;
    Ok(page::decided(&decided.outcome("starts now"), &decided.approval, *now_us))
}

pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::TokenInvalid => StatusCode::UNAUTHORIZED,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidInput | Code::BadUsage => StatusCode::BAD_REQUEST,
        Code::RoleTooLow
        | Code::HumanNeeded
        | Code::Denied
        | Code::SignatureNeeded
        | Code::SignatureInvalid => StatusCode::FORBIDDEN,
        Code::LimitReached => StatusCode::TOO_MANY_REQUESTS,
        Code::NotNow | Code::Stale | Code::KeyTaken | Code::Exists => StatusCode::CONFLICT,
        // Every other error is the daemon's.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
