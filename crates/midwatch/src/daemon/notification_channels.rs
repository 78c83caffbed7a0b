//! The notification channels of the configuration: a command and a url.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agents::{Egress, Hook, HookResult, Http, Outcome, Post, Reason};
use api::{Digest, Error};
use futures::future::{BoxFuture, FutureExt};
use kernel::backend::Url;
use redact::{Redactor, redact};
use runtime::{Channel, DeliveryError};
use tracing::warn;

use crate::config::Config;
use crate::context::Context;
use crate::{environment, secret};

const COMMAND_TIME_MAX: Duration = Duration::from_secs(30);
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct CommandChannel(Hook);

struct UrlChannel {
    http: Http,
    url: Url,
    token: Option<String>,
}

/// Creates the configured channels. A missing secret is an error now rather than at the first notification.
pub(super) fn from_config(
    context: &Context,
    config: &Config,
    redactor: &Redactor,
) -> Result<Vec<Arc<dyn Channel>>, Error> {
    let notice = &config.notice;
    let mut channels: Vec<Arc<dyn Channel>> = Vec::new();
    if !notice.command.is_empty() {
        let hook = Hook::new(notice.command.clone(), &environment::of_process());
        channels.push(Arc::new(CommandChannel(hook)));
    }
    if let Some(url) = notice.url.clone() {
        let read = |reference| secret::read(reference, "notice.token", context);
        let token = notice.token.as_ref().map(read).transpose()?;
        if let Some(token) = &token {
            redactor.add(token);
        }
        channels.push(Arc::new(UrlChannel { http: Http::new(), url, token }));
    }
    Ok(channels)
}

impl Channel for CommandChannel {
    fn name(&self) -> &'static str {
        "command"
    }

    fn deliver<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), DeliveryError>> {
        async move {
            let digest = redacted(digest);
            let document = serde_json::to_string(&digest).map_err(|error| permanent(&error))?;
            let result = self.0.run(&format!("{document}\n"), COMMAND_TIME_MAX).await;
            delivery_of(result)
        }
        .boxed()
    }
}

fn delivery_of(HookResult { outcome, output }: HookResult) -> Result<(), DeliveryError> {
    let failure = match outcome {
        Outcome::Done => return Ok(()),
        Outcome::Cancelled => return Err(transient("the command was stopped")),
        Outcome::Failed(failure) => failure,
    };
    if !output.is_empty() {
        warn!(output, "`notice.command` failed");
    }
    match failure.reason {
        // It exited with code 0, so sending the notification again would only repeat it.
        Reason::LeftoverProcesses => {
            warn!("`notice.command` left processes running, which were killed");
            Ok(())
        }
        _ => Err(transient(&failure.message)),
    }
}

impl Channel for UrlChannel {
    fn name(&self) -> &'static str {
        "url"
    }

    fn deliver<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), DeliveryError>> {
        async move {
            let digest = redacted(digest);
            let post = Post {
                url: &self.url,
                // The operator chose the url, not an agent.
                egress: Egress::Unrestricted,
                token: self.token.as_deref(),
                key: Some(&digest.id),
                body: &digest,
                time_max: REQUEST_TIME_MAX,
            };
            // The body of the response is not read.
            match self.http.post(post).await {
                Ok(response) => delivery_of_status(response.status()),
                Err(error) => Err(transient(&error)),
            }
        }
        .boxed()
    }
}

/// The digest without secrets: the name of a schedule may have one, such as that of an imported command.
fn redacted(digest: &Digest) -> Digest {
    let mut digest = digest.clone();
    digest.text = redact(&digest.text).into_owned();
    for item in &mut digest.items {
        item.text = redact(&item.text).into_owned();
        let name = item.schedule_name.take();
        item.schedule_name = name.map(|name| redact(&name).into_owned());
    }
    digest
}

fn delivery_of_status(status: u16) -> Result<(), DeliveryError> {
    let what = format!("the server responded with {status}");
    match status {
        200..=299 => Ok(()),
        // Timeouts and rate limits.
        408 | 429 => Err(transient(&what)),
        400..=499 => Err(permanent(&what)),
        _ => Err(transient(&what)),
    }
}

fn transient(what: &(impl ToString + ?Sized)) -> DeliveryError {
    DeliveryError { what: what.to_string(), is_permanent: false }
}

fn permanent(what: &(impl ToString + ?Sized)) -> DeliveryError {
    DeliveryError { what: what.to_string(), is_permanent: true }
}

/// Omits the token and the url, whose path may be a secret.
impl fmt::Debug for UrlChannel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("UrlChannel").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_in_the_name_of_a_schedule_is_not_sent() {
        let (id, name) = ("run_0006607e0b8db89c000095398e39bfcf", "sync --password=hunter2-4f1d0c");
        let text = format!("{name}: Run {id} of sch_19f14247 failed (exit).");
        let item = serde_json::json!({
            "seq": 1, "kind": "run_failed", "id": id, "at": "2026-11-18T02:00:00Z", "text": text,
            "command": format!("midwatch run show {id}"), "schedule_id": "sch_19f14247", "schedule_name": name,
        });
        let digest = serde_json::json!({
            "format": 1, "id": "ntc_x_1_2", "instance": "x", "text": text, "items": [item], "more": 0,
        });
        let sent = redacted(&serde_json::from_value(digest).unwrap());
        let sent = serde_json::to_string(&sent).unwrap();
        assert!(!sent.contains("hunter2") && sent.contains("sync --password="), "{sent}");
        assert!(sent.contains(&format!("Run {id} of sch_19f14247 failed (exit).")), "{sent}");
    }

    #[test]
    fn status_decides_whether_delivery_is_retried() {
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
            let found = delivery_of_status(status).map_err(|untold| untold.is_permanent);
            assert_eq!(found, expected, "{status}");
        }
    }
}
