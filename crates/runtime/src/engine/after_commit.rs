//! Tells the parts what a commit means for them.

use std::sync::Arc;

use kernel::EventBody;
use kernel::agent::{Agent, AgentName};
use kernel::approval::{self, Decided, Lapsed};
use kernel::authority::Authority;
use kernel::run::{Event as RunEvent, Run};
use kernel::schedule::Event as ScheduleEvent;
use metrics::Registry;
use tokio::sync::Notify;

use crate::commit::hooks::CommitObserver;
use crate::commit::transaction::Committed;
use crate::dispatch::dispatcher::Dispatcher;
use crate::engine::event_metrics;
use crate::schedule::compiled::ScheduleCache;
use crate::schedule::timer::WakeSignal;

#[derive(Debug)]
pub(crate) struct AfterCommit {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) schedule_cache: Arc<ScheduleCache>,
    pub(crate) wake: Arc<WakeSignal>,
    pub(crate) approvals_changed: Arc<Notify>,
    pub(crate) authority_changed: Arc<Notify>,
    pub(crate) metrics: Arc<Registry>,
}

impl CommitObserver for AfterCommit {
    fn committed(&self, committed: &Committed) {
        let rows = &committed.after;
        let backend_of = |agent: &AgentName| self.dispatcher.backend_of(agent);
        event_metrics::count(&self.metrics, committed, backend_of);
        for event in &committed.events {
            match event {
                EventBody::Run(id, RunEvent::CancelRequested(_)) => self.dispatcher.cancel(id),
                EventBody::Run(id, _) => {
                    rows.get::<Run>(id).into_iter().for_each(|run| self.dispatcher.update(id, run));
                }
                EventBody::Schedule(id, ScheduleEvent::Removed(_) | ScheduleEvent::Changed(_)) => {
                    self.schedule_cache.remove(id)
                }
                EventBody::Approval(_, event) => {
                    self.approvals_changed.notify_one();
                    let (approval::Event::Decided(Decided { run: id, .. })
                    | approval::Event::Lapsed(Lapsed { run: id, .. })) = event
                    else {
                        continue;
                    };
                    let run = rows.get::<Run>(id);
                    run.into_iter().for_each(|it| self.dispatcher.update(id, it));
                }
                EventBody::Authority(instance, _) => {
                    let authority = rows.get::<Authority>(instance);
                    authority.into_iter().for_each(|it| self.dispatcher.apply_freeze(it));
                    self.authority_changed.notify_one();
                }
                EventBody::Agent(name, _) => match rows.get::<Agent>(name) {
                    Some(agent) => self.dispatcher.set_agent(agent),
                    None => self.dispatcher.remove_agent(name),
                },
                _ => {}
            }
        }
        if let Some(due) = rows.earliest_due() {
            self.wake.wake_by(due);
        }
    }
}
