//! The approver: decides the approval requests of the daemon as long as it runs.
//!
//! It records the acknowledged decisions for the comparison at the end.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use api::{Approval, ApprovalDecide, ApprovalList, ApprovalState, Decision, send};
use tokio::time::sleep;
use transport::Socket;

use super::{POLL_INTERVAL, connect_to};
use crate::dice::Dice;

/// One approval request of this many is denied.
const DENIES_ONE_IN: u64 = 5;
/// One decision of this many is sent twice.
const REPEATS_ONE_IN: u64 = 4;

/// Acknowledged decisions: whether each approval request was approved.
pub(super) type Decisions = BTreeMap<String, bool>;

#[derive(Debug)]
pub(super) struct Approver<'a> {
    pub(super) dice: Dice,
    pub(super) decisions: &'a mut Decisions,
}

impl Approver<'_> {
    /// Decides until the daemon is gone.
    pub(super) async fn decide_until_gone(&mut self, socket: &Path) {
        let Ok(daemon) = connect_to(socket).await else { return };
        while self.decide_all(&daemon).await.is_ok() {
            sleep(POLL_INTERVAL).await;
        }
    }

    pub(super) async fn decide_all(&mut self, daemon: &Socket) -> Result<()> {
        let approvals = send(daemon, ApprovalList::default()).await?.approvals;
        for approval in approvals.iter().filter(|it| it.state == ApprovalState::Pending) {
            self.decide(daemon, approval).await?;
        }
        Ok(())
    }

    async fn decide(&mut self, daemon: &Socket, approval: &Approval) -> Result<()> {
        let approves = !self.dice.is_one_in(DENIES_ONE_IN);
        let decision = if approves { Decision::Approve } else { Decision::Deny };
        let plan_hash = Some(approval.plan_hash.clone());
        let decision = ApprovalDecide { plan_hash, ..ApprovalDecide::new(&approval.id, decision) };
        let decided = send(daemon, decision.clone()).await?;
        // A decision that was recorded before a crash stays.
        let was_approved = decided.approval.state != ApprovalState::Denied;
        self.decisions.entry(approval.id.clone()).or_insert(was_approved);
        if self.dice.is_one_in(REPEATS_ONE_IN) {
            send(daemon, decision).await?;
        }
        Ok(())
    }
}
