//! What is looked at before a human is asked about a run, and again before one begins that was approved:
//! what the run stands on, and whether somebody has the same question before them already.
//!
//! A look takes time, and a decision does not. What was seen is good as long as it is still about the same;
//! otherwise nothing is decided on it.

use agents::AgentBackend;
use api::Error;
use kernel::approval::{Approval, Looked};
use kernel::backend::Backend;
use kernel::run::{Cause, Run, State};
use kernel::{ApprovalId, Noun, RunId};

use crate::approvals::row_of;
use crate::desk::Taken;
use crate::rows::{RowKey, Rows};
use crate::watch::Engine;

#[derive(Debug)]
pub(crate) struct Seen {
    /// Of the agent that was looked at.
    backend: Option<Backend>,
    looked: Looked,
    /// The schedule's progress, its other live runs, and their questions. When something is asked, they
    /// must be what they were: so nobody else has asked the same meanwhile.
    pub(crate) others: Vec<RowKey>,
}

/// What a decision can be made on.
#[derive(Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) looked: &'a Looked,
    pub(crate) questions: Vec<(&'a ApprovalId, &'a Approval)>,
}

impl Engine {
    pub(crate) async fn look_at(&self, taken: &Taken, doer: &dyn AgentBackend) -> Result<Seen, Error> {
        let others = match taken.approval {
            Some(_) => Vec::new(),
            None => self.others_than(taken).await?,
        };
        let own: Vec<RowKey> =
            taken.agent.iter().map(|name| (Noun::Agent, name.to_string())).collect();
        let rows = self.load(&own).await?;
        let Some(agent) = taken.agent.as_ref().and_then(|name| rows.agent(name)) else {
            return Ok(Seen { backend: None, looked: Ok(None), others });
        };
        let looked = doer.footing(agent.clone(), self.instance().to_owned()).await;
        let looked = looked.map_err(|it| Cause::new(it.reason.as_str(), &it.message));
        Ok(Seen { backend: Some(agent.backend.clone()), looked, others })
    }

    async fn others_than(&self, taken: &Taken) -> Result<Vec<RowKey>, Error> {
        let progress = (Noun::Progress, taken.schedule.to_string());
        let rows = self.load(std::slice::from_ref(&progress)).await?;
        let runs: Vec<RunId> = live(taken, &rows).cloned().collect();
        let mut others: Vec<RowKey> = runs.iter().map(|run| (Noun::Run, run.to_string())).collect();
        let rows = self.load(&others).await?;
        let asked = runs.iter().filter_map(|run| rows.run(run)).filter_map(question);
        others.extend(asked.map(row_of));
        others.push(progress);
        Ok(others)
    }
}

impl Seen {
    /// What was seen, if it is still about the same.
    pub(crate) fn on<'a>(&'a self, taken: &Taken, rows: &'a Rows) -> Option<Sight<'a>> {
        let agent = taken.agent.as_ref().and_then(|name| rows.agent(name));
        if agent.map(|agent| &agent.backend) != self.backend.as_ref() {
            return None;
        }
        let mut questions = Vec::new();
        if taken.approval.is_none() {
            for run in live(taken, rows) {
                if let Some(id) = question(rows.run(run)?) {
                    questions.push((id, rows.approval(id)?));
                }
            }
        }
        Some(Sight { looked: &self.looked, questions })
    }
}

/// The other runs of its schedule that have not ended.
fn live<'a>(taken: &Taken, rows: &'a Rows) -> impl Iterator<Item = &'a RunId> {
    let progress = rows.progress(&taken.schedule);
    progress.into_iter().flat_map(|it| &it.live).filter(|run| **run != taken.id)
}

/// What a run waits for.
fn question(run: &Run) -> Option<&ApprovalId> {
    run.approval.as_ref().filter(|_| run.state == State::Parked)
}
