//! Following something as it goes on: one request after the other, each of which waits for news.

use std::ops::ControlFlow;
use std::time::Duration;

use api::{Ask, Code, Error, ask};
use tokio::time::sleep;

use crate::access::{Absent, Access};
use crate::context::Context;

/// How long one request waits for news.
const WAIT_MS: u32 = 20_000;
/// How often a follower looks that has no daemon, or has lost it.
const PAUSE: Duration = Duration::from_millis(250);

/// What somebody follows.
pub(super) trait Feed {
    type Request: Ask;
    /// What it comes to.
    type End;

    /// What to ask next; there is news within so much time, or none.
    fn next(&self, wait_ms: u32) -> Self::Request;

    /// Shows the news, and says whether that is the end.
    fn take(&mut self, answer: <Self::Request as Ask>::Answer) -> ControlFlow<Self::End>;

    /// Nobody keeps the watch, so that there may be no news for long.
    fn alone(&mut self) {}
}

pub(super) async fn follow<F: Feed>(context: &Context, feed: &mut F) -> Result<F::End, Error> {
    let mut has_reached = false;
    loop {
        match follow_once(context, feed, &mut has_reached).await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(end)) => return Ok(end),
            // A daemon that stopped may come again, and then it goes on.
            Err(lost) if lost.code == Code::Unreachable && has_reached => {}
            Err(error) => return Err(error),
        }
        sleep(PAUSE).await;
    }
}

/// With a daemon, goes on as long as it answers; without one, lets go of the directory, to be called
/// again a little later.
async fn follow_once<F: Feed>(
    context: &Context,
    feed: &mut F,
    has_reached: &mut bool,
) -> Result<ControlFlow<F::End>, Error> {
    let access = Access::open(context, Absent::Refuse).await?;
    *has_reached = true;
    let has_daemon = matches!(access, Access::Daemon(_));
    loop {
        let asked = feed.next(if has_daemon { WAIT_MS } else { 0 });
        let answer = ask(access.handle(), asked).await?;
        let flow = feed.take(answer);
        if flow.is_continue() && !has_daemon {
            feed.alone();
        }
        if flow.is_break() || !has_daemon {
            access.close().await;
            return Ok(flow);
        }
    }
}
