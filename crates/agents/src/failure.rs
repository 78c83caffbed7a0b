//! What an answer that is none means for the attempt. The table is in `docs/agents.md`.
//!
//! | what came back | the attempt | reason |
//! |---|---|---|
//! | the address is refused, or the request cannot be sent | cannot help | `not_allowed` |
//! | no connection | may help | `not_reached` |
//! | nothing, or a broken connection | in doubt | `connection_lost` |
//! | nothing in time, or 504 | in doubt | `timeout` |
//! | more than may be read | in doubt | `answer_too_long` |
//! | a redirect | cannot help | `redirected` |
//! | 401, 403 | cannot help | `credentials_refused` |
//! | 402 | cannot help, and the schedule is paused | `payment_required` |
//! | 404, 410 | cannot help | `not_found` |
//! | 408, 425, 429 | may help, after the time that it says | `too_many_requests` |
//! | any other 4xx | cannot help | `request_refused` |
//! | any other 5xx | may help, after the time that it says | `server_error` |

use std::time::Duration;

use crate::http::{Answer, BESIDES_TIME_MAX, Unanswered, Why};
use crate::secrets::Secrets;
use crate::work::{Failure, Reason};

/// What is read of an answer that says no, and what is told of it.
const SAID_BYTES_MAX: usize = 4 << 10;
const SAID_CHARS_MAX: usize = 300;

pub(crate) fn unanswered(unanswered: &Unanswered) -> Failure {
    let said = unanswered.to_string();
    match unanswered.why {
        Why::Forbidden => {
            Failure::permanent(Reason::NotAllowed, format!("it was not sent: {said}"))
        }
        Why::NotSent => Failure::passing(Reason::NotReached, format!("nobody was reached: {said}")),
        Why::Lost => Failure::doubtful(
            Reason::ConnectionLost,
            format!("it was sent, and the answer was lost: {said}"),
        ),
        Why::TooLate => {
            Failure::doubtful(Reason::Timeout, format!("it was sent, and not answered: {said}"))
        }
        Why::TooLong => Failure::doubtful(
            Reason::AnswerTooLong,
            format!("it was sent, and the answer cannot be used: {said}"),
        ),
    }
}

/// Of an answer that is not a success.
pub(crate) async fn refused(answer: Answer, secrets: &dyn Secrets) -> Failure {
    let (status, wait) = (answer.status(), answer.retry_after().unwrap_or_default());
    let said = answer.beginning(SAID_BYTES_MAX, BESIDES_TIME_MAX).await;
    let said = plain(&secrets.hide(&String::from_utf8_lossy(&said)));
    let message = match said.is_empty() {
        true => format!("the answer was {status}"),
        false => format!("the answer was {status}: {said}"),
    };
    of_status(status, wait, message)
}

fn of_status(status: u16, wait: Duration, message: String) -> Failure {
    match status {
        401 | 403 => Failure::permanent(Reason::CredentialsRefused, message),
        402 => Failure::unpaid(Reason::PaymentRequired, message),
        404 | 410 => Failure::permanent(Reason::NotFound, message),
        408 | 425 | 429 => Failure::after(wait, Reason::TooManyRequests, message),
        300..=399 => Failure::permanent(Reason::Redirected, message),
        400..=499 => Failure::permanent(Reason::RequestRefused, message),
        // Whoever stands between does not know either.
        504 => Failure::doubtful(Reason::Timeout, message),
        500..=599 => Failure::after(wait, Reason::ServerError, message),
        _ => Failure::permanent(Reason::RequestRefused, message),
    }
}

/// A text of others' on one line, and not more of it than anybody reads.
pub(crate) fn plain(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|it| !it.is_empty())
        .collect();
    words.join(" ").chars().take(SAID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use kernel::run::Kind;

    use super::*;

    #[test]
    fn what_a_status_means() {
        let second = Duration::from_secs(1);
        let passing = Kind::Passing { wait_us: 1_000_000 };
        for (status, reason, kind) in [
            (301, "redirected", Kind::Permanent),
            (307, "redirected", Kind::Permanent),
            (400, "request_refused", Kind::Permanent),
            (401, "credentials_refused", Kind::Permanent),
            (402, "payment_required", Kind::Unpaid),
            (403, "credentials_refused", Kind::Permanent),
            (404, "not_found", Kind::Permanent),
            (408, "too_many_requests", passing),
            (410, "not_found", Kind::Permanent),
            (422, "request_refused", Kind::Permanent),
            (429, "too_many_requests", passing),
            (500, "server_error", passing),
            (503, "server_error", passing),
            (504, "timeout", Kind::Doubtful),
            (599, "server_error", passing),
            (600, "request_refused", Kind::Permanent),
        ] {
            let failure = of_status(status, second, String::new());
            assert_eq!((failure.reason.as_str(), failure.kind), (reason, kind), "{status}");
        }
    }

    #[test]
    fn what_others_say_is_one_line_and_short() {
        assert_eq!(plain(" a\n\n b\u{1b}[31m\tc "), "a b [31m c");
        assert_eq!(plain(&"x".repeat(SAID_CHARS_MAX + 1)).len(), SAID_CHARS_MAX);
    }
}
