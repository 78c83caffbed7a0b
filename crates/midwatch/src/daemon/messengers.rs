//! The ways to call a human that the configuration names: a program, and a url.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agents::{Given, Hook, Http, Outcome, Post, Reach, Reason};
use api::{Digest, Error};
use futures::future::{BoxFuture, FutureExt};
use kernel::backend::Url;
use runtime::{Messenger, Untold};
use tracing::warn;

use crate::config::Config;
use crate::context::Context;
use crate::redact::Redactor;
use crate::{environment, secret};

const PROGRAM_TIME_MAX: Duration = Duration::from_secs(30);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Program(Hook);

struct Webhook {
    http: Http,
    url: Url,
    token: Option<String>,
}

/// Those of the configuration. A secret that is not there is found out now, not in the night.
pub(super) fn configured(
    context: &Context,
    config: &Config,
    redactor: &Redactor,
) -> Result<Vec<Arc<dyn Messenger>>, Error> {
    let notice = &config.notice;
    let mut messengers: Vec<Arc<dyn Messenger>> = Vec::new();
    if !notice.command.is_empty() {
        let hook = Hook::new(notice.command.clone(), &environment::of_process());
        messengers.push(Arc::new(Program(hook)));
    }
    if let Some(url) = notice.url.clone() {
        let read = |reference| secret::read(reference, "notice.token", context);
        let token = notice.token.as_ref().map(read).transpose()?;
        if let Some(token) = &token {
            redactor.add(token);
        }
        messengers.push(Arc::new(Webhook { http: Http::new(), url, token }));
    }
    Ok(messengers)
}

impl Messenger for Program {
    fn channel(&self) -> &'static str {
        "command"
    }

    fn tell<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), Untold>> {
        async move {
            let document = serde_json::to_string(digest).map_err(|error| lasting(&error))?;
            let given = self.0.give(&format!("{document}\n"), PROGRAM_TIME_MAX).await;
            told(given)
        }
        .boxed()
    }
}

fn told(Given { outcome, said }: Given) -> Result<(), Untold> {
    let failure = match outcome {
        Outcome::Done => return Ok(()),
        Outcome::Cancelled => return Err(passing("it was told to stop")),
        Outcome::Failed(failure) => failure,
    };
    if !said.is_empty() {
        warn!(said, "the command for notices has failed, and said why");
    }
    match failure.reason {
        // It has ended well by its own account: more of them would be noise.
        Reason::LeftBehind => {
            warn!("the command for notices has left others running, which were killed");
            Ok(())
        }
        _ => Err(passing(&failure.message)),
    }
}

impl Messenger for Webhook {
    fn channel(&self) -> &'static str {
        "url"
    }

    fn tell<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), Untold>> {
        async move {
            let post = Post {
                url: &self.url,
                // No agent has a say in it.
                reach: Reach::Private,
                token: self.token.as_deref(),
                key: Some(&digest.id),
                body: digest,
                time_max: ANSWER_TIME_MAX,
            };
            // What the answer says is nobody's business; it is not even read.
            match self.http.post(post).await {
                Ok(answer) => answered(answer.status()),
                Err(unanswered) => Err(passing(&unanswered)),
            }
        }
        .boxed()
    }
}

fn answered(status: u16) -> Result<(), Untold> {
    let what = format!("the answer was {status}");
    match status {
        200..=299 => Ok(()),
        // Those that ask for patience.
        408 | 429 => Err(passing(&what)),
        400..=499 => Err(lasting(&what)),
        _ => Err(passing(&what)),
    }
}

fn passing(what: &(impl ToString + ?Sized)) -> Untold {
    Untold { what: what.to_string(), is_permanent: false }
}

fn lasting(what: &(impl ToString + ?Sized)) -> Untold {
    Untold { what: what.to_string(), is_permanent: true }
}

/// The token is nobody's business, and the path of a url may be as good as one.
impl fmt::Debug for Webhook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Webhook").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_means() {
        for (status, expected) in [
            (200, Ok(())),
            (204, Ok(())),
            (299, Ok(())),
            (302, Err(false)),
            (400, Err(true)),
            (404, Err(true)),
            (408, Err(false)),
            (429, Err(false)),
            (499, Err(true)),
            (500, Err(false)),
            (503, Err(false)),
        ] {
            let found = answered(status).map_err(|untold| untold.is_permanent);
            assert_eq!(found, expected, "{status}");
        }
    }
}
