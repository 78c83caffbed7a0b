//! The page of an approval, where a human looks at the plan and decides: `/approvals/ID`.
//!
//! It has no session and no cookie: a browser sends the cookies of this machine to every port of it, and so to whatever
//! an agent serves there. The token is asked for, and goes along in the form below the plan.

use api::wire::Secret;
use api::{ApprovalDecide, ApprovalShow, Code, Error, Handle};
use bytes::Bytes;
use http::{Method, StatusCode};
use maud::Markup;

use crate::page;
use crate::serve::Answer;

/// A form that was sent.
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
                // Whatever else a browser adds is nobody's.
                _ => {}
            }
        }
        form
    }
}

/// To whoever has not said who they are; a form says it.
pub(crate) fn without_form(method: &Method) -> Answer {
    match *method {
        Method::GET | Method::HEAD => page::shown(StatusCode::OK, page::sign_in()),
        _ => page::no_such_method(),
    }
}

/// To whoever is let in.
pub(crate) async fn answer(handle: &dyn Handle, id: String, form: Form) -> Answer {
    match answered(handle, id, form).await {
        Ok(page) => page::shown(StatusCode::OK, page),
        Err(error) => refused(&error),
    }
}

pub(crate) fn refused(error: &Error) -> Answer {
    page::shown(status(error.code), page::refused(error))
}

async fn answered(handle: &dyn Handle, id: String, form: Form) -> Result<Markup, Error> {
    let Form { token, decision, plan_hash, reason } = form;
    let Some(decision) = decision else {
        let shown = api::ask(handle, ApprovalShow { id }).await?;
        return Ok(page::plan(&shown.approval, &token));
    };
    let said =
        ApprovalDecide { id, decision, plan_hash, note: reason, ..ApprovalDecide::default() };
    let decided = api::ask(handle, said).await?;
    Ok(page::decided(&decided.outcome("begins now"), &decided.approval))
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
        // Whatever else it is, it is the watch that cannot.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
