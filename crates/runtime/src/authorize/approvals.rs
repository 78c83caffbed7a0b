//! Pending approvals: the rows that a decision needs, and expiry.

use std::sync::Arc;

use api::Error;
use kernel::agent::Agent;
use kernel::approval::{self, Approval, ApprovalContext, Plan};
use kernel::token::Token;
use kernel::{ApprovalId, Noun, Timestamp};
use store::{BEFORE_ALL_DUE, Due, Item, Store};
use tokio::select;
use tokio::sync::Notify;
use tracing::error;

use crate::clock::Time;
use crate::commit::codec::decode_listed;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::run_context::{definition_rows, run_context, run_rows};
use crate::commit::transaction::Transactions;
use crate::errors::{self, internal};

/// Approvals that expire at a time.
const BATCH: usize = 256;
/// The longest sleep, because another process on the same database may request an approval.
const SLEEP_US_MAX: i64 = 60_000_000;

#[derive(Debug)]
pub(crate) struct Approvals {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    /// Signals every change of an approval.
    pub(crate) changed: Arc<Notify>,
}

impl Approvals {
    /// Expires approvals that were not decided in time, or whose run did not start in time.
    pub(crate) async fn run(&self) {
        loop {
            let now = self.time.now();
            let due = self
                .store
                .list_due(Due {
                    noun: Noun::Approval.name(),
                    after: BEFORE_ALL_DUE,
                    until_us: now.as_micros(),
                    limit: BATCH,
                })
                .await;
            let due = due.unwrap_or_else(|error| {
                error!(%error, "failed to read expired approvals");
                Vec::new()
            });
            for item in due {
                let id = item.id.parse().map_err(internal);
                let expired = async { self.expire(&id?).await };
                if let Err(failed) = expired.await {
                    error!(%failed, approval = item.id, "failed to expire an approval");
                }
            }
            let next = self
                .store
                .list_due(Due {
                    noun: Noun::Approval.name(),
                    after: BEFORE_ALL_DUE,
                    until_us: i64::MAX,
                    limit: 1,
                })
                .await;
            let next = next.ok().and_then(|items| items.first().and_then(|item| item.due_us));
            // An approval that failed to expire is tried again after a second.
            let soonest = now.as_micros().saturating_add(SLEEP_US_MAX / 60);
            let latest = now.as_micros().saturating_add(SLEEP_US_MAX);
            let at = next.unwrap_or(latest).clamp(soonest, latest);
            select! {
                biased;
                () = self.time.wait_until(Timestamp::from_micros(at)) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Expires every open approval that has expired, also one whose deadline lies years ahead because it was set by a clock
    /// that was wrong.
    pub(crate) async fn expire_all(&self) -> Result<(), Error> {
        for (id, _) in self.open().await? {
            self.expire(&id).await?;
        }
        Ok(())
    }

    /// Every open approval, in the order in which they expire.
    pub(crate) async fn open(&self) -> Result<Vec<(ApprovalId, Approval)>, Error> {
        let (noun, limit) = (Noun::Approval.name(), BATCH);
        let mut open = Vec::new();
        let mut last = None::<Item>;
        loop {
            let after = last.as_ref().and_then(|item| Some((item.due_us?, item.id.as_str())));
            let after = after.unwrap_or(BEFORE_ALL_DUE);
            let page = self.store.list_due(Due { noun, after, until_us: i64::MAX, limit }).await;
            let page = page.map_err(errors::store)?;
            for item in &page {
                open.push(decode_listed::<Approval>(item)?);
            }
            last = page.into_iter().next_back();
            if last.is_none() {
                return Ok(open);
            }
        }
    }

    async fn expire(&self, id: &ApprovalId) -> Result<(), Error> {
        let (rows, reads) = self.rows_of(id).await?;
        let decide = |rows: &Rows, now| {
            let approval = find_approval(rows, id)?;
            let Plan { run, schedule, policy, .. } = &*approval.plan;
            let expire = |run_context| {
                approval::expire(ApprovalContext {
                    id,
                    approval,
                    run_context,
                    agent: None,
                    active_policy: policy,
                })
            };
            Ok(run_context(rows, run, schedule, now).map(expire).unwrap_or_default())
        };
        self.transactions.commit_own(rows, reads, decide).await.map(drop)
    }

    /// The rows that a decision about an approval may change, and those that it reads besides.
    pub(crate) async fn rows_of(
        &self,
        id: &ApprovalId,
    ) -> Result<(Vec<RowKey>, Vec<RowKey>), Error> {
        let loaded = self.transactions.load(&[row_key::<Approval>(id)]).await?;
        let Plan { run, schedule, agent, .. } = &*find_approval(&loaded, id)?.plan;
        let mut rows = run_rows(run, schedule);
        rows.push(row_key::<Approval>(id));
        rows.extend(agent.as_ref().map(row_key::<Agent>));
        Ok((rows, definition_rows(schedule, None)))
    }

    /// The tokens of those who signed an approval. They must still be valid when the run starts.
    pub(crate) async fn signer_rows(&self, id: Option<&ApprovalId>) -> Result<Vec<RowKey>, Error> {
        let Some(id) = id else { return Ok(Vec::new()) };
        let rows = self.transactions.load(&[row_key::<Approval>(id)]).await?;
        let decisions =
            rows.get::<Approval>(id).into_iter().flat_map(Approval::approving_decisions);
        let signatures = decisions.filter_map(|decision| decision.signature.as_ref());
        Ok(signatures.map(|signature| row_key::<Token>(&signature.token)).collect())
    }
}

pub(crate) fn find_approval<'a>(rows: &'a Rows, id: &ApprovalId) -> Result<&'a Approval, Error> {
    let unknown = || errors::refused(approval::Refusal::Unknown(id.clone()));
    rows.get::<Approval>(id).ok_or_else(unknown)
}
