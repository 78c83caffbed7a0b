//! A plan: which schedules there are, and when they are due.

use std::sync::Arc;
use std::time::Instant;

use api::{Action, AgentAdd, Handle, ScheduleAdd, ScheduleAddAll, Terms, When, ask};
use futures::future::try_join_all;

/// Schedules in one request, as many as it may have.
const ADDED_AT_ONCE: usize = 1_000;
/// Requests that are under way at a time.
const CALLERS: usize = 4;

/// Schedules of one kind, spread evenly over their interval.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) schedules: usize,
    pub(crate) agents: usize,
    /// The first slot of the first schedule.
    pub(crate) first_us: i64,
    /// From there to the first slot of the last.
    pub(crate) spread_us: i64,
    pub(crate) every_ms: i64,
    pub(crate) terms: Terms,
}

impl Plan {
    pub(crate) fn schedule(&self, number: usize) -> ScheduleAdd {
        let share = number as f64 / self.schedules as f64;
        let anchor_us = self.first_us + (self.spread_us as f64 * share) as i64;
        ScheduleAdd {
            name: format!("{} {number}", self.name),
            when: When {
                every: Some(format!("{}ms", self.every_ms)),
                anchor: Some(calendar::format_instant(anchor_us)),
                ..When::default()
            },
            action: Action {
                agent: Some(agent(number % self.agents)),
                prompt: Some("go on".into()),
                ..Action::default()
            },
            terms: self.terms.clone(),
            ..ScheduleAdd::default()
        }
    }

    /// Adds all of them, and says how many a second.
    pub(crate) async fn add<H: Handle + 'static>(&self, handle: &Arc<H>) -> anyhow::Result<f64> {
        self.add_agents(&**handle).await?;
        let started = Instant::now();
        let callers = (0..CALLERS).map(|caller| {
            let (plan, handle) = (self.clone(), Arc::clone(handle));
            tokio::task::spawn(async move {
                let starts = (0..plan.schedules).step_by(ADDED_AT_ONCE);
                for first in starts.skip(caller).step_by(CALLERS) {
                    let last = plan.schedules.min(first + ADDED_AT_ONCE);
                    let schedules = (first..last).map(|number| plan.schedule(number)).collect();
                    ask(&*handle, ScheduleAddAll { schedules, dry_run: false }).await?;
                }
                Ok::<(), api::Error>(())
            })
        });
        try_join_all(callers).await?.into_iter().collect::<Result<(), _>>()?;
        Ok(self.schedules as f64 / started.elapsed().as_secs_f64())
    }

    pub(crate) async fn add_agents(&self, handle: &dyn Handle) -> anyhow::Result<()> {
        for number in 0..self.agents {
            let (name, backend) = (agent(number), "builtin".into());
            ask(handle, AgentAdd { name, backend, ..AgentAdd::default() }).await?;
        }
        Ok(())
    }
}

/// Terms under which no slot is left out: each that is due gets a run, however many are live.
pub(crate) fn every_slot_runs() -> Terms {
    Terms {
        overlap: Some("allow:1000".into()),
        missed: Some("all:1000".into()),
        ..Terms::default()
    }
}

fn agent(number: usize) -> String {
    format!("echo-{number:02}")
}
