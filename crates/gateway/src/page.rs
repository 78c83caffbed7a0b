//! The pages as they look. What others wrote is shown as text, and no script runs in any of them.

use api::wire::Secret;
use api::words::{Prompt, visible};
use api::{Approval, Error};
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use maud::{DOCTYPE, Markup, html};

use crate::serve::Answer;

pub(crate) const STYLE_PATH: &str = "/page.css";
const STYLE: &str = include_str!("page.css");
/// Nothing but our own style is loaded, and no other page shows this one.
const CONTENT: &str = "default-src 'none'; style-src 'self'; form-action 'self'; \
                       frame-ancestors 'none'; base-uri 'none'";

/// Asks who is there, before anything is shown.
pub(crate) fn sign_in() -> Markup {
    let body = html! {
        h1 { "Somebody waits for your decision" }
        p { "Show your token to see what it is about. It goes to this watch, and is kept nowhere." }
        form method="post" {
            label { "Token " input type="password" name="token" autocomplete="off" required autofocus; }
            button { "Show the plan" }
        }
        p.hint {
            "None yet? " code { "midwatch token create --role operator --name NAME" } " gives one out. In the terminal, "
            code { "midwatch approval list" } " shows what waits."
        }
    };
    document("Approval", &body)
}

/// The whole plan; while it waits for an answer, with the form to give one.
pub(crate) fn plan(approval: &Approval, token: &Secret) -> Markup {
    let is_open = approval.state == "pending";
    let body = html! {
        h1 { @if is_open { "May this run begin?" } @else { "Nobody is waited for any more" } }
        (facts(approval))
        @if is_open { (answers(approval, token)) }
    };
    document(&approval.id, &body)
}

/// What came of an answer.
pub(crate) fn decided(outcome: &str, approval: &Approval) -> Markup {
    let body = html! {
        h1 { "Your answer" }
        p.outcome { (outcome) }
        (facts(approval))
    };
    document(&approval.id, &body)
}

/// Why there is nothing to see, and what to do about it.
pub(crate) fn refused(error: &Error) -> Markup {
    let body = html! {
        h1 { "Not possible" }
        p.outcome { (visible(&error.message)) }
        @if let Some(hint) = &error.hint { p.hint { (visible(hint)) } }
        p { a href="" { "Begin again" } }
    };
    document("Not possible", &body)
}

/// The facts first, then what an agent or a stranger may have written.
fn facts(approval: &Approval) -> Markup {
    let (plan, prompt) = approval.plan_and_prompt();
    html! {
        dl {
            @for (name, value) in approval.facts() {
                dt { (name) }
                dd { (visible(&value)) }
            }
        }
        h2 { "The plan" }
        pre { (plan) }
        @match prompt {
            Prompt::Absent => {}
            Prompt::Plain(prompt) => (said(&prompt)),
            Prompt::Unsealed(prompt) => {
                p.hint { "Sealed in the plan; opened by the watch." }
                (said(&prompt))
            }
            Prompt::Hidden => p.hint { "The prompt is sensitive, and is shown to operators." },
        }
    }
}

fn said(prompt: &str) -> Markup {
    html! {
        h2 { "The prompt, as it is written (not by Midwatch)" }
        pre.said { (visible(prompt)) }
    }
}

/// The token goes along, so that it need not be typed twice; a browser keeps nothing of this page.
fn answers(approval: &Approval, Secret(token): &Secret) -> Markup {
    html! {
        form method="post" autocomplete="off" {
            input type="hidden" name="token" value=(token);
            input type="hidden" name="plan_hash" value=(approval.plan_hash);
            // Enter in a field of one line would press the first button.
            label { "Why, for whoever looks at it later " textarea name="reason" rows="2" {} }
            @if approval.needs.signed {
                p.hint {
                    "To approve it takes your signature: " code { "midwatch approval sign" } " makes it, and "
                    code { "midwatch approval approve --signature" } " brings it."
                }
            } @else {
                button.approve name="decision" value="approve" { "Approve exactly this" }
            }
            button.deny name="decision" value="deny" { "Deny" }
        }
    }
}

fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Midwatch" }
                link rel="stylesheet" href=(STYLE_PATH);
            }
            body { main { (body) } }
        }
    }
}

pub(crate) fn shown(status: StatusCode, page: Markup) -> Answer {
    let mut answer = of(status, "text/html; charset=utf-8", Bytes::from(page.into_string()));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // With less, a browser would not say from where a form comes.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

pub(crate) fn style() -> Answer {
    of(StatusCode::OK, "text/css; charset=utf-8", Bytes::from_static(STYLE.as_bytes()))
}

pub(crate) fn no_such_method() -> Answer {
    let mut answer = of(StatusCode::METHOD_NOT_ALLOWED, "text/plain", Bytes::new());
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
    answer
}

fn of(status: StatusCode, kind: &'static str, text: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(text).boxed());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
