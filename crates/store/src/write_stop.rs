//! Whether a store has stopped writing, and why.

use futures::future::pending;
use tokio::sync::watch;

use crate::port::Error;

/// The reason why a store refuses commits, if it does.
#[derive(Debug)]
pub struct WriteStop {
    reasons: watch::Sender<Option<Error>>,
}

impl WriteStop {
    /// With a reason, the store never writes.
    pub fn new(reason: Option<Error>) -> WriteStop {
        WriteStop { reasons: watch::Sender::new(reason) }
    }

    pub fn reason(&self) -> Option<Error> {
        self.reasons.borrow().clone()
    }

    /// Sets the reason unless there is one. Any reason replaces [`Error::ReadOnly`].
    pub fn set(&self, reason: Error) {
        self.reasons.send_if_modified(|current| {
            let is_first = matches!(current, None | Some(Error::ReadOnly));
            if is_first {
                *current = Some(reason);
            }
            is_first
        });
    }

    /// Waits for a reason. Never returns if the store is dropped without one.
    pub fn wait(&self) -> impl Future<Output = Error> + Send + use<> {
        let mut reasons = self.reasons.subscribe();
        async move {
            let reason = reasons.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            match reason {
                Some(reason) => reason,
                None => pending().await,
            }
        }
    }
}
