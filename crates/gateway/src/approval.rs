//! The page of an approval, `/approvals/ID`, where a human reads the plan and decides.
//!
//! It has no session and no cookie: a browser sends the cookies of a host to every port of it, so a server that an
//! agent runs on this machine would get them. The human enters a token, and the decision form carries it along.

use api::wire::Secret;
use api::{ApprovalDecide, ApprovalShow, Code, Error, Handle};
use bytes::Bytes;
use http::{Method, StatusCode};
use maud::Markup;

use crate::page;
use crate::serve::HttpResponse;

/// A submitted form: only a token to see the plan, or a decision as well.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) token: Secret,
    decision: Option<String>,
    plan_hash: Option<String>,
    reason: Option<String>,
}

impl Form {
    pub(crate) fn read(body: &Bytes) -> Form {
        let token = Secret(String::new());
        let mut form = Form { token, decision: None, plan_hash: None, reason: None };
        for (name, value) in form_urlencoded::parse(body) {
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
        form
    }
}

/// Responds to a request without a form, and so without a token.
pub(crate) fn respond_without_form(method: &Method) -> HttpResponse {
    match *method {
        Method::GET | Method::HEAD => page::html_response(StatusCode::OK, page::sign_in()),
        _ => page::method_not_allowed(),
    }
}

/// Responds to the form of an authenticated person.
pub(crate) async fn respond(handle: &dyn Handle, id: String, form: Form) -> HttpResponse {
    match form_page(handle, id, form).await {
        Ok(page) => page::html_response(StatusCode::OK, page),
        Err(error) => error_response(&error),
    }
}

pub(crate) fn error_response(error: &Error) -> HttpResponse {
    page::html_response(status(error.code), page::error(error))
}

async fn form_page(handle: &dyn Handle, id: String, form: Form) -> Result<Markup, Error> {
    let Form { token, decision, plan_hash, reason } = form;
    let Some(decision) = decision else {
        let shown = api::send(handle, ApprovalShow { id }).await?;
        return Ok(page::plan(&shown.approval, &token));
    };
    let decision = decision.parse()?;
    let request = ApprovalDecide { plan_hash, note: reason, ..ApprovalDecide::new(id, decision) };
    let decided = api::send(handle, request).await?;
    Ok(page::decided(&decided.outcome("starts now"), &decided.approval))
}

fn status(code: Code) -> StatusCode {
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
