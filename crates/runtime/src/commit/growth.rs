//! The growth of the ledger that an agent causes in a day, by its own requests.
//!
//! Two counters for each agent and day are checked and changed in the commit that they count. They are the only counters that
//! are not derived from events, because the day of an entry is assigned when it is committed: a rebuild of the derived tables
//! resets them, and the integrity check ignores them. Each assistant of a person has its own, and so has each schedule that
//! calls tools.

use api::{Code, Error};
use kernel::budget::{self, Limits};
use kernel::run::Run;
use kernel::{Actor, Counter, Principal, Role, Timestamp};
use ledger::Draft;
use store::Delta;

use crate::commit::rows::row_key;
use crate::commit::transaction::Transactions;

impl Transactions {
    /// What the requests of a caller are counted for. `None` for people.
    pub(super) async fn growth_of(&self, actor: &Actor) -> Result<Option<String>, Error> {
        if actor.role != Role::Runner {
            return Ok(None);
        }
        let id = match actor.principal() {
            Principal::Run(id) | Principal::ToolCall(id) => id,
            // A runner's token belongs to the agent of its name.
            Principal::Person(name) => return Ok(Some(name.to_string())),
            _ => return Ok(Some(actor.name().to_owned())),
        };
        let rows = self.load(&[row_key::<Run>(id)]).await?;
        let name = rows.get::<Run>(id).map(|run| match &run.agent {
            Some(agent) => agent.to_string(),
            None => run.schedule.to_string(),
        });
        Ok(Some(name.unwrap_or_else(|| actor.name().to_owned())))
    }
}

/// What a commit adds to the counters.
pub(super) fn growth_deltas(
    who: &str,
    drafts: &[Draft],
    limits: &Limits,
    now: Timestamp,
) -> [Delta; 2] {
    let bytes = drafts.iter().map(Draft::body_bytes).sum::<usize>();
    let day = budget::day(now);
    let delta = |counter: Counter, add: usize| {
        let (add, max) = (i64::try_from(add).unwrap_or(i64::MAX), counter.max_value(limits));
        Delta { counter: counter.name(), add, max }
    };
    [
        delta(Counter::AgentChanges(who.to_owned(), day), drafts.len()),
        delta(Counter::AgentBytes(who.to_owned(), day), bytes),
    ]
}

/// The refusal of a request over one of the limits. `None` if `counter` counts something else.
pub(super) fn over_growth_limit(counter: &str) -> Option<Error> {
    let (who, key) = match counter.strip_prefix(Counter::CHANGES_PREFIX) {
        Some(who) => (who, "budget.changes_per_agent"),
        None => (counter.strip_prefix(Counter::BYTES_PREFIX)?, "budget.bytes_per_agent"),
    };
    let who = who.rsplit_once(':').map_or(who, |(who, _)| who);
    let message = format!(
        "`{who}` has added all that it may to the ledger today (`{key}`), nothing was changed"
    );
    let hint = "change less, or wait until midnight UTC; a person can raise the limit";
    Some(Error::new(Code::BudgetExhausted, message).hint(hint))
}
