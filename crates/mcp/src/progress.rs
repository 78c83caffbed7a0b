//! Signs of life during a call that takes long, for whoever gave a token for them.
//!
//! A client gives up on what says nothing, and some begin to wait anew with every such sign. They say how long it
//! has been and nothing else: what there is to know is in the answer.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use tokio::select;
use tokio::time::sleep;

/// How often there is one.
const EVERY: Duration = Duration::from_secs(2);

pub(crate) async fn shown<T>(
    context: &RequestContext<RoleServer>,
    call: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return call.await };
    let mut call = std::pin::pin!(call);
    let mut waited = Duration::ZERO;
    loop {
        select! {
            answer = &mut call => return answer,
            () = sleep(EVERY) => {}
        }
        waited += EVERY;
        let sign = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64())
            .with_message(format!("{} seconds", waited.as_secs()));
        // Whoever does not hear it is told by the answer, which does not wait for them to listen.
        select! {
            answer = &mut call => return answer,
            _ = context.peer.notify_progress(sign) => {}
        }
    }
}
