//! What each request is to the standing orders: the class of what it does, named once.
//!
//! Whoever judges a request and whoever tells clients whether it changes something both go by this. The
//! classes themselves, and how far each reaches, are the table of the crate `policy`.

use crate::call::Request;

/// What a request is to the standing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It changes nothing. A runner sees what this class lets it see.
    Read(&'static str),
    /// A runner needs the standing orders to allow this class before it does so by itself.
    Change(&'static str),
    /// It changes something, and is for people by a rule of its noun.
    People,
}

impl Request {
    pub const fn class(&self) -> Class {
        const SEEN: Class = Class::Read("schedule.read");
        const LOG: Class = Class::Read("ledger.read");
        match self {
            Request::ScheduleAdd(_) | Request::ScheduleAddAll(_) => {
                Class::Change("schedule.create")
            }
            Request::ScheduleEdit(_) | Request::SchedulePause(_) => {
                Class::Change("schedule.change")
            }
            Request::ScheduleResume(_) | Request::ScheduleRemove(_) => {
                Class::Change("schedule.change")
            }
            Request::ScheduleFire(_) | Request::RunRetry(_) => Class::Change("run.start"),
            Request::RunCancel(_) => Class::Change("run.cancel"),
            Request::AgentAdd(_) | Request::AgentEdit(_) | Request::AgentRemove(_) => Class::People,
            Request::AgentTest(_) | Request::EventTell(_) => Class::People,
            Request::ScheduleBackfill(_) | Request::ScheduleBackfillEnd(_) => Class::People,
            Request::RunSettle(_) | Request::ApprovalDecide(_) => Class::People,
            Request::Freeze(_) | Request::Thaw(_) | Request::LeaseRenew(_) => Class::People,
            Request::ConfigReload(_) => Class::People,
            Request::TokenCreate(_) | Request::TokenRevoke(_) => Class::People,
            Request::LedgerCheckpoint(_) | Request::LedgerExport(_) => Class::People,
            Request::LedgerRebuild(_) => Class::People,
            Request::LedgerTail(_) | Request::PolicyReplay(_) | Request::RunEvents(_) => LOG,
            Request::HealthAsk(_) | Request::StatusAsk(_) | Request::News(_) => SEEN,
            Request::BudgetList(_) | Request::CheckAsk(_) | Request::ConfigAsk(_) => SEEN,
            Request::AgentList(_) | Request::AgentShow(_) | Request::TokenList(_) => SEEN,
            Request::ScheduleList(_) | Request::ScheduleShow(_) | Request::Why(_) => SEEN,
            Request::RunList(_) | Request::RunShow(_) => SEEN,
            Request::RunRead(_) | Request::RunWatch(_) => SEEN,
            Request::ApprovalList(_) | Request::ApprovalShow(_) => SEEN,
            Request::PolicyDecide(_) | Request::PolicyExplain(_) => SEEN,
            Request::ToolList(_) | Request::ToolMisuse(_) | Request::ToolEnd(_) => SEEN,
        }
    }

    /// Whether something may be otherwise after it: what is only tried out leaves everything as it is.
    pub const fn changes(&self) -> bool {
        match self {
            Request::ScheduleAdd(asked) => !asked.dry_run,
            Request::ScheduleAddAll(asked) => !asked.dry_run,
            _ => !matches!(self.class(), Class::Read(_)),
        }
    }
}
