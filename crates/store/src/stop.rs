//! Whether a store still writes, and why not.

use futures::future::pending;
use tokio::sync::watch;

use crate::port::Error;

#[derive(Debug)]
pub struct Stop {
    reasons: watch::Sender<Option<Error>>,
}

impl Stop {
    /// With a reason, it never wrote at all.
    pub fn new(reason: Option<Error>) -> Stop {
        Stop { reasons: watch::Sender::new(reason) }
    }

    pub fn reason(&self) -> Option<Error> {
        self.reasons.borrow().clone()
    }

    /// The first reason stays. That a store was opened for reading only is none to keep.
    pub fn set(&self, reason: Error) {
        self.reasons.send_if_modified(|known| {
            let is_first = matches!(known, None | Some(Error::ReadOnly));
            if is_first {
                *known = Some(reason);
            }
            is_first
        });
    }

    /// Waits for a reason; for ever, if nobody is left to set one.
    pub fn until(&self) -> impl Future<Output = Error> + Send + use<> {
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
