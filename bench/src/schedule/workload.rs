//! A workload: a set of schedules, and when they are due.

use std::sync::Arc;
use std::time::Instant;

use api::{Action, AgentAdd, Handle, ScheduleAdd, ScheduleAddAll, Terms, When, send};
use futures::future::try_join_all;

/// Schedules in one request, the maximum.
const BATCH: usize = 1_000;
/// Concurrent requests.
const CALLERS: usize = 4;

/// Schedules of one kind, spread evenly over their interval.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) schedules: usize,
    pub(crate) agents: usize,
    /// The first slot of the first schedule.
    pub(crate) first_us: i64,
    /// From there to the first slot of the last schedule.
    pub(crate) spread_us: i64,
    pub(crate) every_ms: i64,
    pub(crate) terms: Terms,
}

impl Workload {
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

    /// Adds all schedules, and returns how many per second.
    pub(crate) async fn add<H: Handle + 'static>(&self, handle: &Arc<H>) -> anyhow::Result<f64> {
        self.add_agents(&**handle).await?;
        let started = Instant::now();
        let callers = (0..CALLERS).map(|caller| {
            let (workload, handle) = (self.clone(), Arc::clone(handle));
            tokio::task::spawn(async move {
                let starts = (0..workload.schedules).step_by(BATCH);
                for first in starts.skip(caller).step_by(CALLERS) {
                    let last = workload.schedules.min(first + BATCH);
                    let schedules = (first..last).map(|number| workload.schedule(number)).collect();
                    send(&*handle, ScheduleAddAll { schedules, dry_run: false }).await?;
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
            send(handle, AgentAdd { name, backend, ..AgentAdd::default() }).await?;
        }
        Ok(())
    }
}

/// Terms with which every due slot gets a run, however many are live.
pub(crate) fn run_every_slot() -> Terms {
    Terms {
        overlap: Some("allow:1000".into()),
        missed: Some("all:1000".into()),
        ..Terms::default()
    }
}

fn agent(number: usize) -> String {
    format!("echo-{number:02}")
}
