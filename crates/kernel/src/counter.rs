//! Counters: numbers that many events change, each with its stored name and its limit.

use std::borrow::Cow;

use crate::agent::AgentName;
use crate::budget::Limits;
use crate::schedule::terms::Terms;
use crate::{Noun, ScheduleId};

/// A number that many writers share. Events change it by deltas, without checking a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Objects of a noun. [`NounState::OBJECTS_MAX`](crate::NounState::OBJECTS_MAX) is the limit.
    Objects(Noun),
    /// Counted runs that started on a day, numbered from 1970.
    Runs(i64),
    AgentRuns(AgentName, i64),
    /// Approvals requested for runs of an agent on a day.
    ApprovalRequests(AgentName, i64),
    /// Approvals of an agent's runs that are still pending.
    PendingApprovals(AgentName),
    /// LLM tokens used or reserved on a day.
    TokensSpent(i64),
    AgentTokensSpent(AgentName, i64),
    ScheduleTokensSpent(ScheduleId, i64),
    /// Money spent or reserved on a day, in millionths.
    Cost(i64),
    AgentCost(AgentName, i64),
    ScheduleCost(ScheduleId, i64),
    /// Entries that the requests of an agent or an assistant added to the ledger on a day. Not derived from events.
    AgentChanges(String, i64),
    /// The bytes of these entries.
    AgentBytes(String, i64),
}

impl Counter {
    pub const CHANGES_PREFIX: &'static str = "growth:changes:";
    pub const BYTES_PREFIX: &'static str = "growth:bytes:";

    /// Whether the counter of this name is computed from events.
    pub fn is_derived(name: &str) -> bool {
        !name.starts_with(Counter::CHANGES_PREFIX) && !name.starts_with(Counter::BYTES_PREFIX)
    }

    /// The stored name.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Counter::Objects(noun) => format!("{}s", noun.name()).into(),
            Counter::Runs(day) => format!("runs:{day}").into(),
            Counter::AgentRuns(agent, day) => format!("runs:{agent}:{day}").into(),
            Counter::ApprovalRequests(agent, day) => format!("asks:{agent}:{day}").into(),
            Counter::PendingApprovals(agent) => format!("asks:{agent}").into(),
            Counter::TokensSpent(day) => format!("spent:{day}").into(),
            Counter::AgentTokensSpent(agent, day) => format!("spent:{agent}:{day}").into(),
            Counter::ScheduleTokensSpent(schedule, day) => {
                format!("spent_by:{schedule}:{day}").into()
            }
            Counter::Cost(day) => format!("cost:{day}").into(),
            Counter::AgentCost(agent, day) => format!("cost:{agent}:{day}").into(),
            Counter::ScheduleCost(schedule, day) => format!("cost_by:{schedule}:{day}").into(),
            Counter::AgentChanges(who, day) => {
                format!("{}{who}:{day}", Counter::CHANGES_PREFIX).into()
            }
            Counter::AgentBytes(who, day) => format!("{}{who}:{day}", Counter::BYTES_PREFIX).into(),
        }
    }

    /// The configured limit of what it counts; zero if there is none.
    pub fn budget_limit(&self, terms: &Terms, limits: &Limits) -> i64 {
        match self {
            Counter::Objects(noun) => noun.objects_max(),
            Counter::Runs(_) => limits.runs,
            Counter::AgentRuns(..) => limits.runs_per_agent,
            Counter::ApprovalRequests(..) => limits.asks_per_agent,
            Counter::PendingApprovals(_) => limits.pending_per_agent,
            Counter::TokensSpent(_) => limits.tokens,
            Counter::AgentTokensSpent(..) => limits.tokens_per_agent,
            Counter::ScheduleTokensSpent(..) => terms.tokens_per_day.map_or(0, i64::from),
            Counter::Cost(_) => limits.money.as_micros(),
            Counter::AgentCost(..) => limits.money_per_agent.as_micros(),
            Counter::ScheduleCost(..) => terms.money_per_day.unwrap_or_default().as_micros(),
            Counter::AgentChanges(..) => limits.changes_per_agent,
            Counter::AgentBytes(..) => limits.bytes_per_agent,
        }
    }

    /// The highest value that a commit may bring it to.
    pub const fn max_value(&self, limits: &Limits) -> i64 {
        match self {
            Counter::Objects(noun) => noun.objects_max(),
            Counter::Runs(_) => Limits::or_unlimited(limits.runs),
            Counter::AgentRuns(..) => Limits::or_unlimited(limits.runs_per_agent),
            Counter::ApprovalRequests(..) => Limits::or_unlimited(limits.asks_per_agent),
            Counter::PendingApprovals(_) => Limits::or_unlimited(limits.pending_per_agent),
            Counter::AgentChanges(..) => Limits::or_unlimited(limits.changes_per_agent),
            Counter::AgentBytes(..) => Limits::or_unlimited(limits.bytes_per_agent),
            Counter::TokensSpent(_)
            | Counter::AgentTokensSpent(..)
            | Counter::ScheduleTokensSpent(..) => i64::MAX,
            Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => i64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_nouns_have_these_names_and_limits() {
        let expected = [
            (Noun::Agent, "agents", 10_000),
            (Noun::Device, "devices", 1_000),
            (Noun::Schedule, "schedules", 10_000_000),
            (Noun::Token, "tokens", 1_000),
        ];
        for (noun, name, max) in expected {
            let counter = Counter::Objects(noun);
            assert_eq!((&*counter.name(), counter.max_value(&Limits::default())), (name, max));
        }
    }
}
