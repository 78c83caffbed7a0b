//! Following a feed: one request after another, each of which waits for changes.

use std::ops::ControlFlow;
use std::time::Duration;

use api::{ApiRequest, Code, Error, send};
use tokio::time::sleep;

use crate::access::{Access, IfMissing};
use crate::context::Context;

/// How long one request waits for changes.
const WAIT_MS: u32 = 20_000;
/// How often to poll without a daemon, or to reconnect to one.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A feed that a command follows to its end.
pub(in crate::cli) trait Feed {
    type Request: ApiRequest;
    /// The result of following it.
    type End;

    /// The next request. It returns changes, or nothing after `wait_ms`.
    fn next(&self, wait_ms: u32) -> Self::Request;

    /// Prints the changes, and returns the result if this is the end.
    fn take(&mut self, answer: <Self::Request as ApiRequest>::Response) -> ControlFlow<Self::End>;

    /// Called after each poll while no daemon runs.
    fn on_no_daemon(&mut self) {}
}

pub(in crate::cli) async fn follow<F: Feed>(
    context: &Context,
    feed: &mut F,
) -> Result<F::End, Error> {
    let mut has_connected = false;
    loop {
        match follow_once(context, feed, &mut has_connected).await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(end)) => return Ok(end),
            // The daemon may be restarting.
            Err(lost) if lost.code == Code::Unreachable && has_connected => {}
            Err(error) => return Err(error),
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Follows the feed for as long as the daemon answers. Without a daemon it asks once and releases the
/// data directory, so that a daemon can start.
async fn follow_once<F: Feed>(
    context: &Context,
    feed: &mut F,
    has_connected: &mut bool,
) -> Result<ControlFlow<F::End>, Error> {
    let access = Access::open(context, IfMissing::Refuse).await?;
    *has_connected = true;
    let has_daemon = matches!(access, Access::Daemon(_));
    loop {
        let request = feed.next(if has_daemon { WAIT_MS } else { 0 });
        let answer = send(access.handle(), request).await?;
        let flow = feed.take(answer);
        if flow.is_continue() && !has_daemon {
            feed.on_no_daemon();
        }
        if flow.is_break() || !has_daemon {
            access.close().await;
            return Ok(flow);
        }
    }
}
