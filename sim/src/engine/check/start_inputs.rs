//! An attempt starts with the schedule, agent, tier and prompt that the ledger has at that entry: after an acknowledged
//! change, none starts with the old ones. Also checks that no schedule depends on itself.

use anyhow::{Context, Result, ensure};
use kernel::agent::Agent;
use kernel::run::{Run, Started};
use kernel::schedule::{Action, Definition, Schedule};
use kernel::{ScheduleId, Tables};

pub(super) fn check_no_dependency_cycle(tables: &Tables, id: &ScheduleId) -> Result<()> {
    let mut chain = vec![id];
    while let Some((upstream, _)) = chain
        .last()
        .and_then(|last| definition(tables, last))
        .and_then(|definition| definition.trigger.upstream())
    {
        ensure!(!chain.contains(&upstream), "{upstream} depends on itself: {chain:?}");
        chain.push(upstream);
    }
    Ok(())
}

fn definition<'a>(tables: &'a Tables, id: &ScheduleId) -> Option<&'a Definition> {
    tables.get::<Schedule>(id).map(|schedule| &schedule.definition)
}

/// What an attempt must start with.
pub(super) struct StartInputs<'a> {
    pub(super) definition: &'a Definition,
    pub(super) agent: &'a Agent,
    pub(super) prompt: &'a str,
}

impl<'a> StartInputs<'a> {
    pub(super) fn of(tables: &'a Tables, run: &Run) -> Result<StartInputs<'a>> {
        let definition = definition(tables, &run.schedule);
        let definition = definition.context("a run starts whose schedule does not exist")?;
        let name = run.agent.as_ref().context("a run starts without an agent")?;
        let agent = tables.get::<Agent>(name);
        let agent =
            agent.with_context(|| format!("a run starts whose agent {name} does not exist"))?;
        let prompt = match &definition.action {
            Action::Prompt { prompt, .. } => prompt.plain(),
            Action::Tool { .. } => None,
        };
        Ok(StartInputs {
            definition,
            agent,
            prompt: prompt.context("a run starts without a prompt")?,
        })
    }

    pub(super) fn check(&self, started: &Started) -> Result<()> {
        let tier = self.definition.tier.max(Some(self.agent.tier));
        ensure!(
            Some(started.tier) == tier,
            "it starts in tier {:?} instead of {tier:?}",
            started.tier
        );
        ensure!(started.price == self.agent.price, "it starts at another price than the agent's");
        Ok(())
    }
}
