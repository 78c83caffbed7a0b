//! Progress notifications during a long call, for clients that sent a progress token.
//!
//! They keep a client from timing out: many restart their timeout with each notification. They contain only the elapsed
//! time; the answer has the result.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use tokio::select;
use tokio::time::sleep;

/// Time between two notifications.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs a call and sends notifications until it ends.
pub(crate) async fn with_progress<T>(
    context: &RequestContext<RoleServer>,
    call: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return call.await };
    let mut call = std::pin::pin!(call);
    let mut elapsed = Duration::ZERO;
    loop {
        select! {
            answer = &mut call => return answer,
            () = sleep(INTERVAL) => {}
        }
        elapsed += INTERVAL;
        let progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64())
            .with_message(format!("{} seconds", elapsed.as_secs()));
        // A client that does not read must not delay the call.
        select! {
            answer = &mut call => return answer,
            _ = context.peer.notify_progress(progress) => {}
        }
    }
}
