//! What is looked at before a human is asked about a run, and again before one begins that was approved.
//!
//! A look takes time, and a decision does not: whatever was seen is good for the agent as it was, and
//! nothing is decided on it when that has changed meanwhile.

use agents::Doer;
use api::Error;
use kernel::Noun;
use kernel::approval::Looked;
use kernel::backend::Backend;
use kernel::run::Cause;

use crate::desk::Taken;
use crate::rows::Rows;
use crate::watch::Watch;

#[derive(Debug)]
pub(crate) struct Seen {
    /// Of the agent that was looked at.
    backend: Option<Backend>,
    looked: Looked,
}

impl Watch {
    pub(crate) async fn look_at(&self, taken: &Taken, doer: &dyn Doer) -> Result<Seen, Error> {
        let Some(name) = &taken.agent else { return Ok(Seen { backend: None, looked: Ok(None) }) };
        let rows = self.load(&[(Noun::Agent, name.to_string())]).await?;
        let Some(agent) = rows.agent(name) else {
            return Ok(Seen { backend: None, looked: Ok(None) });
        };
        let looked = doer.footing(agent.clone(), self.instance().to_owned()).await;
        let looked = looked.map_err(|it| Cause::new(it.reason.as_str(), &it.message));
        Ok(Seen { backend: Some(agent.backend.clone()), looked })
    }
}

impl Seen {
    /// What was found, if it is still about the same.
    pub(crate) fn of(&self, taken: &Taken, rows: &Rows) -> Option<&Looked> {
        let agent = taken.agent.as_ref().and_then(|name| rows.agent(name));
        (agent.map(|agent| &agent.backend) == self.backend.as_ref()).then_some(&self.looked)
    }
}
