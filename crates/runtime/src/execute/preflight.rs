//! The preflight check of a run that needs an approval or has one: the fingerprint of its execution environment, and other
//! pending approvals for the same action.
//!
//! The check takes time and the decision does not, so its result is used only if it is still about the same agent and runs.

use api::Error;
use kernel::agent::Agent;
use kernel::approval::{Approval, Preflight};
use kernel::backend::Backend;
use kernel::progress::Progress;
use kernel::run::{Cause, Run, State};
use kernel::{ApprovalId, Noun, RunId};

use crate::commit::rows::{RowKey, Rows, row_key};
use crate::dispatch::dispatcher::Claim;
use crate::execute::executor::Executor;

#[derive(Debug)]
pub(crate) struct PreflightReport {
    /// The backend of the agent that was checked.
    backend: Option<Backend>,
    result: Preflight,
    /// The progress of the schedule, its other live runs, and their approvals. The commit that requests an approval names
    /// their versions, so that no other run has requested the same one meanwhile.
    pub(super) other_rows: Vec<RowKey>,
}

/// A report that still describes the rows of a decision.
#[derive(Debug)]
pub(super) struct ValidPreflight<'a> {
    pub(super) result: &'a Preflight,
    pub(super) approvals: Vec<(&'a ApprovalId, &'a Approval)>,
}

impl Executor {
    pub(super) async fn check_preflight(&self, claim: &Claim) -> Result<PreflightReport, Error> {
        let other_rows = match claim.approval {
            Some(_) => Vec::new(),
            None => self.other_rows(claim).await?,
        };
        let own: Vec<RowKey> = claim.agent.iter().map(row_key::<Agent>).collect();
        let rows = self.transactions.load(&own).await?;
        let Some(agent) = claim.agent.as_ref().and_then(|name| rows.get::<Agent>(name)) else {
            return Ok(PreflightReport { backend: None, result: Ok(None), other_rows });
        };
        let instance = self.installation.instance.clone();
        let result = self.backend.fingerprint(agent.clone(), instance).await;
        let result = result.map_err(|it| Cause::new(it.reason.as_str(), &it.message));
        Ok(PreflightReport { backend: Some(agent.backend.clone()), result, other_rows })
    }

    async fn other_rows(&self, claim: &Claim) -> Result<Vec<RowKey>, Error> {
        let progress = (Noun::Progress, claim.schedule.to_string());
        let rows = self.transactions.load(std::slice::from_ref(&progress)).await?;
        let runs: Vec<RunId> = other_live_runs(claim, &rows).cloned().collect();
        let mut other_rows: Vec<RowKey> = runs.iter().map(row_key::<Run>).collect();
        let rows = self.transactions.load(&other_rows).await?;
        let parked =
            runs.iter().filter_map(|run| rows.get::<Run>(run)).filter_map(pending_approval);
        other_rows.extend(parked.map(row_key::<Approval>));
        other_rows.push(progress);
        Ok(other_rows)
    }
}

impl PreflightReport {
    /// `None` if the agent or the other runs have changed since the check.
    pub(super) fn still_valid<'a>(
        &'a self,
        claim: &Claim,
        rows: &'a Rows,
    ) -> Option<ValidPreflight<'a>> {
        let agent = claim.agent.as_ref().and_then(|name| rows.get::<Agent>(name));
        if agent.map(|agent| &agent.backend) != self.backend.as_ref() {
            return None;
        }
        let mut approvals = Vec::new();
        if claim.approval.is_none() {
            for run in other_live_runs(claim, rows) {
                if let Some(id) = pending_approval(rows.get::<Run>(run)?) {
                    approvals.push((id, rows.get::<Approval>(id)?));
                }
            }
        }
        Some(ValidPreflight { result: &self.result, approvals })
    }
}

/// The other runs of the schedule that have not ended.
fn other_live_runs<'a>(claim: &Claim, rows: &'a Rows) -> impl Iterator<Item = &'a RunId> {
    let progress = rows.get::<Progress>(&claim.schedule);
    progress.into_iter().flat_map(|it| &it.live).filter(|run| **run != claim.id)
}

/// The approval that a run waits for.
fn pending_approval(run: &Run) -> Option<&ApprovalId> {
    run.approval.as_ref().filter(|_| run.state == State::Parked)
}
