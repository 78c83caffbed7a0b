//! Maps failed requests and error responses to failures of the attempt. Users find the table in `docs/agents.md`.
//!
//! | result of the request | kind of failure | reason |
//! |---|---|---|
//! | the address is forbidden, or the request cannot be built | permanent | `not_allowed` |
//! | no connection | transient | `not_reached` |
//! | the connection broke before a response | indeterminate | `connection_lost` |
//! | no response in time, or 504 | indeterminate | `timeout` |
//! | the response is too long | indeterminate | `answer_too_long` |
//! | a redirect | permanent | `redirected` |
//! | 401, 403 | permanent | `credentials_refused` |
//! | 402 | payment required: the schedule is paused | `payment_required` |
//! | 404, 410 | permanent | `not_found` |
//! | 408, 425, 429 | transient, after `Retry-After` | `too_many_requests` |
//! | any other 4xx | permanent | `request_refused` |
//! | any other 5xx | transient, after `Retry-After` | `server_error` |

use std::time::Duration;

use crate::attempt::{Failure, Reason};
use crate::http::{HttpResponse, OPTIONAL_BODY_TIME_MAX, RequestError, RequestErrorKind};
use crate::secrets::Secrets;

/// How much is read of an error response, and how much of that goes into the message.
const ERROR_BYTES_MAX: usize = 4 << 10;
const ERROR_CHARS_MAX: usize = 300;

pub(crate) fn failure_of(error: &RequestError) -> Failure {
    match error.kind {
        RequestErrorKind::Forbidden => {
            Failure::permanent(Reason::NotAllowed, format!("the request was not sent: {error}"))
        }
        RequestErrorKind::NotConnected | RequestErrorKind::ConnectionRefused => {
            Failure::transient(Reason::NotReached, format!("could not connect: {error}"))
        }
        RequestErrorKind::ConnectionLost => Failure::indeterminate(
            Reason::ConnectionLost,
            format!("the request was sent, but the response was lost: {error}"),
        ),
        RequestErrorKind::TimedOut => Failure::indeterminate(
            Reason::Timeout,
            format!("the request was sent, but got no response in time: {error}"),
        ),
        RequestErrorKind::TooLong => Failure::indeterminate(
            Reason::ResponseTooLong,
            format!("the request was sent, but the response cannot be used: {error}"),
        ),
    }
}

/// The failure that an error response means.
pub(crate) async fn failure_of_response(response: HttpResponse, secrets: &dyn Secrets) -> Failure {
    let (status, wait) = (response.status(), response.retry_after().unwrap_or_default());
    let body = response.read_beginning(ERROR_BYTES_MAX, OPTIONAL_BODY_TIME_MAX).await;
    let detail = one_line(&secrets.redact(&String::from_utf8_lossy(&body)));
    let message = match detail.is_empty() {
        true => format!("the server responded with {status}"),
        false => format!("the server responded with {status}: {detail}"),
    };
    failure_of_status(status, wait, message)
}

fn failure_of_status(status: u16, wait: Duration, message: String) -> Failure {
    match status {
        401 | 403 => Failure::permanent(Reason::CredentialsRefused, message),
        402 => Failure::payment_required(Reason::PaymentRequired, message),
        404 | 410 => Failure::permanent(Reason::NotFound, message),
        408 | 425 | 429 => Failure::transient_after(wait, Reason::TooManyRequests, message),
        300..=399 => Failure::permanent(Reason::Redirected, message),
        400..=499 => Failure::permanent(Reason::RequestRefused, message),
        // The gateway in between does not know the outcome either.
        504 => Failure::indeterminate(Reason::Timeout, message),
        500..=599 => Failure::transient_after(wait, Reason::ServerError, message),
        _ => Failure::permanent(Reason::RequestRefused, message),
    }
}

/// Foreign text as one short line without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|it| !it.is_empty())
        .collect();
    words.join(" ").chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use kernel::run::FailureKind;

    use super::*;

    #[test]
    fn status_determines_kind_and_reason() {
        let second = Duration::from_secs(1);
        let transient = FailureKind::Transient { wait_us: 1_000_000 };
        for (status, reason, kind) in [
            (301, "redirected", FailureKind::Permanent),
            (307, "redirected", FailureKind::Permanent),
            (400, "request_refused", FailureKind::Permanent),
            (401, "credentials_refused", FailureKind::Permanent),
            (402, "payment_required", FailureKind::PaymentRequired),
            (403, "credentials_refused", FailureKind::Permanent),
            (404, "not_found", FailureKind::Permanent),
            (408, "too_many_requests", transient),
            (410, "not_found", FailureKind::Permanent),
            (422, "request_refused", FailureKind::Permanent),
            (429, "too_many_requests", transient),
            (500, "server_error", transient),
            (503, "server_error", transient),
            (504, "timeout", FailureKind::Indeterminate),
            (599, "server_error", transient),
            (600, "request_refused", FailureKind::Permanent),
        ] {
            let failure = failure_of_status(status, second, String::new());
            assert_eq!((failure.reason.as_str(), failure.kind), (reason, kind), "{status}");
        }
    }

    #[test]
    fn foreign_text_becomes_one_short_line() {
        assert_eq!(one_line(" a\n\n b\u{1b}[31m\tc "), "a b [31m c");
        assert_eq!(one_line(&"x".repeat(ERROR_CHARS_MAX + 1)).len(), ERROR_CHARS_MAX);
    }
}
