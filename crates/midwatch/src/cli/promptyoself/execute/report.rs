//! The results that `execute` prints, and which runs it has reported.

use std::collections::BTreeSet;

use api::{Error, Run, RunList, RunShow, RunState};
use compat::promptyoself::agents::Agents;
use compat::promptyoself::view;
use serde::Serialize;

use super::is_ended;
use crate::access::send;
use crate::cli::promptyoself::settings::only_agent;
use crate::cli::promptyoself::{has_no_data, registered_agents, schedules};
use crate::context::Context;

/// The most items of a result, the newest; the others are counted.
const ITEMS_MAX: usize = 1_000;
const PAGE_RUNS: u32 = 100;

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub(in crate::cli::promptyoself) struct ExecuteResult {
    executed: Vec<Item>,
    message: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Item {
    Delivered {
        id: u64,
        agent_id: String,
        delivered: bool,
        next_run: Option<String>,
        repetition_count: u64,
        max_repetitions: Option<u64>,
        completed: bool,
    },
    Failed {
        id: u64,
        agent_id: String,
        delivered: bool,
        error: String,
        next_run: Option<String>,
    },
}

/// The runs that were not reported yet.
#[derive(Debug)]
pub(super) struct Unreported {
    /// Every run up to this one is reported or older than the command, except those in `open`.
    newest: String,
    open: BTreeSet<String>,
}

/// All results so far.
#[derive(Debug, Default)]
pub(super) struct Total {
    items: Vec<Item>,
    count: usize,
}

impl Unreported {
    /// All live runs, and every run from now on.
    pub(super) async fn since_now(context: &Context) -> Result<Unreported, Error> {
        if has_no_data(context)? {
            return Ok(Unreported { newest: String::new(), open: BTreeSet::new() });
        }
        let newest = send(context, RunList { limit: Some(1), ..RunList::default() }).await?;
        let newest = newest.runs.into_iter().next().map(|run| run.id).unwrap_or_default();
        let open = schedules(context).await?.into_iter().flat_map(|schedule| schedule.live);
        Ok(Unreported { newest, open: open.collect() })
    }

    /// Returns the runs that `is_reportable`, oldest first, and marks them as reported.
    pub(super) async fn take(
        &mut self,
        context: &Context,
        is_reportable: fn(&Run) -> bool,
    ) -> Result<Vec<Item>, Error> {
        if has_no_data(context)? {
            return Ok(Vec::new());
        }
        let mut runs = Vec::new();
        for id in &self.open {
            runs.push(send(context, RunShow { id: id.clone() }).await?.run);
        }
        runs.extend(self.newer_runs(context).await?);
        runs.sort_by(|one, other| one.id.cmp(&other.id));
        let (reported, open): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(is_reportable);
        let (schedules, agents) = match reported.is_empty() {
            true => (Vec::new(), Agents::default()),
            false => (schedules(context).await?, registered_agents::load(context).await?),
        };
        // No await from here on: a call that is dropped earlier leaves everything unreported.
        let newest = reported.iter().chain(&open).map(|run| run.id.clone()).max();
        self.newest = newest.unwrap_or_default().max(std::mem::take(&mut self.newest));
        self.open = open.into_iter().map(|run| run.id).collect();
        let only_agent = only_agent(&context.environment)?;
        let items = reported.iter().filter_map(|run| {
            let id = run.schedule_id.as_deref()?;
            let schedule = schedules.iter().find(|schedule| schedule.id == id)?;
            let prompt = view::prompt_item(schedule, &agents)?;
            only_agent.is_none_or(|id| id == prompt.agent_id).then(|| Item::new(run, prompt))
        });
        Ok(items.collect())
    }

    async fn newer_runs(&self, context: &Context) -> Result<Vec<Run>, Error> {
        let (mut runs, mut cursor) = (Vec::new(), None);
        loop {
            let request = RunList { limit: Some(PAGE_RUNS), cursor, ..RunList::default() };
            let page = send(context, request).await?;
            let expected = runs.len() + page.runs.len();
            runs.extend(page.runs.into_iter().take_while(|run| self.newest < run.id));
            cursor = page.cursor;
            if runs.len() < expected || cursor.is_none() {
                return Ok(runs);
            }
        }
    }
}

impl Item {
    fn new(run: &Run, prompt: view::PromptItem) -> Item {
        let view::PromptItem { id, agent_id, next_run, repetition_count, max_repetitions, .. } =
            prompt;
        if run.state == RunState::Done {
            let completed = max_repetitions.is_some_and(|max| max <= repetition_count);
            return Item::Delivered {
                id,
                agent_id,
                delivered: true,
                next_run,
                repetition_count,
                max_repetitions,
                completed,
            };
        }
        let error = match (&run.approval_id, &run.message) {
            (Some(approval), _) if run.state == RunState::WaitingPermission => {
                format!("waiting for approval: `midwatch approval show {approval}`")
            }
            (_, Some(message)) => match run.retry_at.as_ref().filter(|_| !is_ended(run)) {
                Some(at) => format!("{message}; next attempt at {at}"),
                None => message.clone(),
            },
            (_, None) => format!("run {} is {}", run.id, run.state),
        };
        Item::Failed { id, agent_id, delivered: false, error, next_run }
    }
}

impl ExecuteResult {
    fn new(executed: Vec<Item>, count: usize) -> ExecuteResult {
        ExecuteResult { executed, message: format!("{count} prompts executed") }
    }

    pub(super) fn of_all(items: Vec<Item>) -> ExecuteResult {
        let count = items.len();
        ExecuteResult::new(items, count)
    }
}

impl Total {
    /// Adds the items of one interval and returns them as a result.
    pub(super) fn add(&mut self, items: Vec<Item>) -> ExecuteResult {
        self.count += items.len();
        self.items.extend(items.iter().cloned());
        self.items.drain(..self.items.len().saturating_sub(ITEMS_MAX));
        ExecuteResult::of_all(items)
    }

    pub(super) fn into_result(self) -> ExecuteResult {
        ExecuteResult::new(self.items, self.count)
    }
}
