//! A run that begins in the commit that queues it, where nobody waits before it: one flush less between a
//! slot and its work. Whatever does not begin there is queued, and goes the way of all others.

use api::{Code, Error};
use kernel::run::{self, Event};
use kernel::schedule::Action;
use kernel::{Actor, Body, Counter, Noun, ScheduleId, Timestamp};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::desk::Taken;
use crate::holder::Holder;
use crate::rows::Rows;
use crate::timer::Ready;
use crate::transact::{Change, Done};
use crate::watch::Engine;
use crate::work::{Begin, Handed, defined_by, ground};

/// Where the timer hands over the runs that it has begun.
pub(crate) struct AtOnce {
    pub to: UnboundedSender<Handed>,
    /// What is begun after that would only be cut off.
    pub stop: CancellationToken,
}

/// A free hand for the run that a tick may queue.
pub(crate) struct Hand {
    pub taken: Taken,
    used: Vec<(Counter, i64)>,
}

impl AtOnce {
    /// Hands over what a tick has begun, or may have begun: nobody knows that when its commit has failed.
    pub(crate) fn hand_over(&self, watch: &Engine, hand: Hand, ticked: &Result<Done, Error>) {
        let taken = hand.taken;
        let begun = match ticked {
            Ok(done) => match watch.begun(&taken, done) {
                Begin::Now(begun) => Some(*begun),
                Begin::Decided | Begin::Lacks(_) | Begin::NotNow => {
                    return watch.desk().done(&taken.id);
                }
            },
            Err(refused) if refused.code == Code::LimitReached => {
                return watch.desk().done(&taken.id);
            }
            Err(_) => None,
        };
        // Nobody listens any more only where the watch is given up: the next one finds the run.
        let _ = self.to.send(Handed { taken, begun });
    }
}

impl Engine {
    /// A hand for the run of a schedule that is due, if it could begin at once.
    pub(crate) async fn hand_for(
        &self,
        id: &ScheduleId,
        ready: &Ready,
        at_once: &AtOnce,
    ) -> Result<Option<Hand>, Error> {
        let now = self.by_log();
        let definition = &ready.schedule.definition;
        // What a call comes to is looked up with the run; and by a clock that was set back nothing is hurried.
        let is_prompt = matches!(definition.action, Action::Prompt { .. });
        if !is_prompt || now.clock < now.latest || at_once.stop.is_cancelled() {
            return Ok(None);
        }
        let new = self.new_run(now.clock);
        let Some(taken) = self.desk().take_new(new, id, definition, now.clock) else {
            return Ok(None);
        };
        match self.used_by(id, taken.agent.as_ref()).await {
            Ok(used) => Ok(Some(Hand { taken, used })),
            Err(failed) => {
                self.desk().done(&taken.id);
                Err(failed)
            }
        }
    }

    /// A tick that may begin the run for which there is a hand.
    pub(crate) fn tick_with<'a>(&self, hand: Option<&Hand>, by: &'a Actor) -> Change<'a> {
        let mut change = Change::by(by, None);
        if let Some(Hand { taken, .. }) = hand {
            // Whoever changes the schedule writes its progress, as the tick does.
            change.reads = defined_by(&taken.schedule, None);
            let agent = taken.agent.as_ref().map(|name| (Noun::Agent, name.to_string()));
            change.rows = agent.into_iter().chain([self.authority_row()]).collect();
        }
        change
    }

    /// What begins the run that was queued for a hand. Nothing, if it was not or does not begin.
    pub(crate) fn begin_queued(
        &self,
        hand: &Hand,
        rows: &Rows,
        queued: &[Body],
        now: Timestamp,
    ) -> Vec<Body> {
        let Hand { taken, used } = hand;
        let Taken { id, schedule, agent, .. } = taken;
        if !queued.iter().any(|body| matches!(body, Body::Run(it, Event::Queued(_)) if it == id)) {
            return Vec::new();
        }
        let rows = rows.after(queued);
        let Some(ground) = ground(&rows, id, schedule, now) else { return Vec::new() };
        // The two rows were not read at once: an edit may have come between.
        let revision = rows.schedule(schedule).map(|schedule| schedule.revision);
        if revision != ground.progress.map(|progress| progress.revision) {
            return Vec::new();
        }
        let agent = agent.as_ref().and_then(|name| rows.agent(name));
        let holder = self.holder().get().map(Holder::name).unwrap_or_default();
        let begun = self.under_orders(schedule, None, &rows, used, |orders| {
            run::start(ground, agent, holder, orders, ground.now)
        });
        let begins = |body: &Body| matches!(body, Body::Run(_, Event::Started(_)));
        if begun.iter().any(begins) { begun } else { Vec::new() }
    }
}
