//! What other rooms do when something is committed.

use std::fmt::Debug;

use api::Error;
use futures::future::BoxFuture;
use kernel::{EventBody, Timestamp};

use crate::commit::rows::Rows;
use crate::commit::transaction::{Committed, Transactions};

/// Adds the events that follow from a decision, so that they are part of the same commit.
pub(crate) trait Consequences: Debug + Send + Sync {
    /// `None` if nothing can follow from these events. The implementation loads the rows it needs into `rows`.
    fn of<'a>(
        &'a self,
        transactions: &'a Transactions,
        rows: &'a mut Rows,
        events: &'a [EventBody],
        now: Timestamp,
    ) -> Option<BoxFuture<'a, Result<Vec<EventBody>, Error>>>;
}

/// Learns of every commit of this process, after it was made.
pub(crate) trait CommitObserver: Debug + Send + Sync {
    fn committed(&self, committed: &Committed);
}
