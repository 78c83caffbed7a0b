//! What begins is what is written at that place of the log: its schedule, its agent, the tier that follows from both,
//! and the words. Whoever was told that one of them is changed sees nothing begin any more by what it was.
//! And what is written can be so.

use anyhow::{Context, Result, ensure};
use kernel::agent::Agent;
use kernel::run::{Run, Started};
use kernel::schedule::{Action, Definition};
use kernel::{Noun, ScheduleId, State, Tables};

/// No schedule follows itself, by whatever way.
pub(super) fn check_chain(tables: &Tables, id: &ScheduleId) -> Result<()> {
    let mut chain = vec![id];
    while let Some((of, _)) = chain
        .last()
        .and_then(|last| definition(tables, last))
        .and_then(|definition| definition.trigger.follows())
    {
        ensure!(!chain.contains(&of), "{of} follows itself: {chain:?}");
        chain.push(of);
    }
    Ok(())
}

fn definition<'a>(tables: &'a Tables, id: &ScheduleId) -> Option<&'a Definition> {
    match state(tables, Noun::Schedule, id.as_str())? {
        State::Schedule(schedule) => Some(&schedule.definition),
        _ => None,
    }
}

fn state<'a>(tables: &'a Tables, noun: Noun, id: &str) -> Option<&'a State> {
    tables.rows.get(&(noun, id.to_owned()))?.state.as_ref()
}

/// What a try is to begin by.
pub(super) struct Written<'a> {
    pub(super) definition: &'a Definition,
    pub(super) agent: &'a Agent,
    pub(super) prompt: &'a str,
}

impl<'a> Written<'a> {
    pub(super) fn of(tables: &'a Tables, run: &Run) -> Result<Written<'a>> {
        let definition = definition(tables, &run.schedule);
        let definition = definition.context("a run begins of a schedule that is not there")?;
        let name = run.agent.as_ref().context("a run begins without an agent")?;
        let agent = match state(tables, Noun::Agent, name.as_str()) {
            Some(State::Agent(agent)) => Some(agent),
            _ => None,
        };
        let agent = agent.with_context(|| format!("a run of {name} begins, who is not there"))?;
        let prompt = match &definition.action {
            Action::Prompt { prompt, .. } => prompt.plain(),
            Action::Tool { .. } => None,
        };
        Ok(Written { definition, agent, prompt: prompt.context("a run begins without words")? })
    }

    pub(super) fn check(&self, started: &Started) -> Result<()> {
        let tier = self.definition.tier.max(Some(self.agent.tier));
        ensure!(Some(started.tier) == tier, "it begins with {:?} under {tier:?}", started.tier);
        ensure!(started.price == self.agent.price, "it begins at another price than the agent's");
        Ok(())
    }
}
