//! Counters: how an event changes them, and the limits that they must not pass.

use kernel::agent::Agent;
use kernel::budget::{Limits, start_counter_guards, test_counter_guards};
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::{Counter, EventBody, agent};

use crate::commit::rows::Rows;

/// What an event adds to a counter, and the most that the counter may show afterwards. `add` is zero for a check.
#[derive(Clone, Debug)]
pub(crate) struct CounterChange {
    pub counter: Counter,
    pub add: i64,
    pub max: i64,
}

/// The counters that an event checks and changes.
pub(crate) fn counter_changes(
    event: &EventBody,
    rows: &Rows,
    limits: &Limits,
) -> Vec<CounterChange> {
    let run = match event {
        EventBody::Run(id, _) => rows.get::<Run>(id),
        _ => None,
    };
    let schedule = run.and_then(|run| rows.get::<Schedule>(&run.schedule));
    let mut guards = run.zip(schedule).map_or_else(Vec::new, |(run, schedule)| {
        start_counter_guards(event, run, &schedule.definition.terms, limits)
    });
    if let EventBody::Agent(name, agent::Event::Tested(tested)) = event
        && let Some(agent) = rows.get::<Agent>(name)
    {
        guards.extend(test_counter_guards(agent, tested, limits));
    }
    let guards = guards.into_iter().map(|(counter, max)| CounterChange { counter, add: 0, max });
    let deltas = event.counter_deltas().into_iter().map(|(counter, add)| {
        // A refund is not refused because the limit was lowered meanwhile.
        let max = if add < 0 { i64::MAX } else { counter.max_value(limits) };
        CounterChange { counter, add, max }
    });
    guards.chain(deltas).collect()
}
