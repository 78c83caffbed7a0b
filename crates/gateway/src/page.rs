//! The HTML of the pages. Text from others is escaped, and no page runs a script.

use api::display::{Prompt, plan_and_prompt, utc_time, visible};
use api::wire::Secret;
use api::{Approval, ApprovalState, Code, Error};
use axum::response::{IntoResponse, Response};
use calendar::{format_instant, parse_instant, relative};
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use maud::{DOCTYPE, Markup, html};

pub(crate) const STYLE_PATH: &str = "/page.css";
const STYLE: &str = include_str!("page.css");
/// A page loads only our own style sheet, and no other page may frame it.
const CONTENT: &str = "default-src 'none'; style-src 'self'; form-action 'self'; \
                       frame-ancestors 'none'; base-uri 'none'";

/// Asks for a token before anything is shown.
pub(crate) fn sign_in() -> Markup {
    let body = html! {
        h1 { "A run needs your approval" }
        p { "Enter your token to see the plan. It is sent to this Midwatch only and stored nowhere." }
        form method="post" {
            label { "Token " input type="password" name="token" autocomplete="off" required autofocus; }
            button { "Show the plan" }
        }
        p.hint {
            "No token yet? " code { "midwatch token create --role operator --name NAME" } " creates one. In the terminal, "
            code { "midwatch approval list" } " lists pending approvals."
        }
    };
    document("Approval", &body)
}

/// What would be done and why it asks, the prompt, and while the approval is pending the form to decide it; then the
/// exact plan.
pub(crate) fn plan(approval: &Approval, token: &Secret, now_us: i64) -> Markup {
    let moment = |instant: &str| moment(instant, now_us);
    let is_open = approval.state == ApprovalState::Pending;
    let name = visible(approval.schedule_name.as_deref().unwrap_or_else(|| approval.about()));
    let (plan, prompt) = plan_and_prompt(&approval.plan, approval.unsealed.as_deref());
    let body = html! {
        @if is_open {
            h1 { "A run of " (name) " needs your approval" }
        } @else {
            h1 { "Already decided: a run of " (name) }
        }
        (pairs(&approval.facts(moment)))
        @match prompt {
            Prompt::Absent => {}
            Prompt::Plain(prompt) => (prompt_text(&prompt, approval)),
            Prompt::Unsealed(prompt) => {
                p.hint { "Sealed in the plan; unsealed by Midwatch." }
                (prompt_text(&prompt, approval))
            }
            Prompt::Hidden => p.hint { "The prompt is sensitive; only operators see it." },
        }
        @if is_open { (decision_form(approval, token)) }
        h2 { "The exact plan" }
        pre { (plan) }
        (pairs(&approval.details(moment)))
        p.hint { "Shown at " (utc_time(&format_instant(now_us))) "." }
    };
    document(&name, &body)
}

/// The outcome of a decision.
pub(crate) fn decided(outcome: &str, approval: &Approval, now_us: i64) -> Markup {
    let body = html! {
        h1 { "Your decision" }
        p.outcome { (outcome) }
        (pairs(&approval.facts(|instant| moment(instant, now_us))))
    };
    let name = approval.schedule_name.as_deref().unwrap_or_else(|| approval.about());
    document(&visible(name), &body)
}

/// An error and its hint.
pub(crate) fn error(error: &Error) -> Markup {
    let body = html! {
        h1 { "Not possible" }
        p.outcome { (visible(&error.message)) }
        @if let Some(hint) = hint(error) { p.hint { (visible(hint)) } }
        p { a href="" { "Start again" } }
    };
    document("Not possible", &body)
}

/// The hint of an error. A person enters a token here, and sets no variable.
fn hint(error: &Error) -> Option<&str> {
    match error.code {
        Code::TokenInvalid => Some("`midwatch token create` creates a new one"),
        Code::RoleTooLow => Some("ask a person with that role, or enter a token with that role"),
        _ => error.hint.as_deref(),
    }
}

/// An instant in UTC, and how far it was when the page was made. The reader's zone is not known.
fn moment(instant: &str, now_us: i64) -> String {
    let time = utc_time(instant);
    parse_instant(instant, None)
        .map_or(time.clone(), |at_us| format!("{time} ({})", relative(at_us, now_us)))
}

fn pairs(pairs: &[(&'static str, String)]) -> Markup {
    html! {
        dl {
            @for (name, value) in pairs {
                dt { (name) }
                dd { (visible(value)) }
            }
        }
    }
}

/// Each line of the prompt has a number, so that a wrap can be told from a line break of the text.
fn prompt_text(prompt: &str, approval: &Approval) -> Markup {
    let authors = match approval.authors.is_empty() {
        true => "not written by Midwatch".to_owned(),
        false => format!("written by {}", approval.authors.join(", ")),
    };
    html! {
        h2 { "The prompt (" (authors) ", shown unchanged)" }
        ol.prompt {
            @for line in visible(prompt).split('\n') { li { (line) } }
        }
    }
}

/// The form carries the token, so that it need not be typed twice; the browser does not cache this page.
fn decision_form(approval: &Approval, Secret(token): &Secret) -> Markup {
    html! {
        form method="post" autocomplete="off" {
            input type="hidden" name="token" value=(token);
            input type="hidden" name="plan_hash" value=(approval.plan_hash);
            // Enter in a single-line field would press the first button.
            label { "Reason, for the record " textarea name="reason" rows="2" {} }
            @if approval.needs.signed {
                p.hint {
                    "Approving needs your signature: create it with " code { "midwatch approval sign" } " and submit it with "
                    code { "midwatch approval approve --signature" } "."
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

pub(crate) fn html_response(status: StatusCode, page: Markup) -> Response {
    let mut response = response(status, "text/html; charset=utf-8", page.into_string());
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // With a stricter policy, browsers would send no `Origin` with the form.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// `GET` of the style sheet.
pub(crate) async fn style() -> Response {
    response(StatusCode::OK, "text/css; charset=utf-8", STYLE)
}

fn response(status: StatusCode, kind: &'static str, text: impl IntoResponse) -> Response {
    let headers = [(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_distance_from_the_page() {
        let now_us = parse_instant("2026-11-17T09:00:00Z", None).unwrap();
        for (instant, expected) in [
            ("2026-11-17T08:55:00.123456Z", "2026-11-17 08:55:00 UTC (4m59s ago)"),
            ("2026-11-17T09:00:00Z", "2026-11-17 09:00:00 UTC (now)"),
            ("2026-11-18T08:00:00Z", "2026-11-18 08:00:00 UTC (in 23h)"),
            ("soon", "soon"),
        ] {
            assert_eq!(moment(instant, now_us), expected);
        }
    }
}
