//! The class of each request: whether it changes something, and its policy capability.
//!
//! Authorization and the effect hints for clients both use this table. The crate `policy` defines the
//! capabilities.

use crate::call::Request;

/// How the policy treats a request. The text is a capability, such as `run.start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Changes nothing. A runner sees what the capability allows it to see.
    Read(&'static str),
    /// Changes something. A runner may do it only if the policy allows the capability.
    Change(&'static str),
    /// Changes something. Only people may do it, whatever the policy says.
    People,
}

impl Request {
    /// The class of this request.
    pub const fn class(&self) -> Class {
        const READ: Class = Class::Read("schedule.read");
        const LEDGER: Class = Class::Read("ledger.read");
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
            Request::AgentTest(_) | Request::EventPublish(_) => Class::People,
            Request::ScheduleBackfill(_) | Request::ScheduleBackfillEnd(_) => Class::People,
            Request::RunSettle(_) | Request::ApprovalDecide(_) => Class::People,
            Request::Freeze(_) | Request::Thaw(_) | Request::LeaseRenew(_) => Class::People,
            Request::ConfigReload(_) => Class::People,
            Request::TokenCreate(_) | Request::TokenRevoke(_) => Class::People,
            Request::LedgerCheckpoint(_) | Request::LedgerExport(_) => Class::People,
            Request::LedgerRebuild(_) => Class::People,
            Request::LedgerTail(_) | Request::PolicyReplay(_) | Request::RunEvents(_) => LEDGER,
            Request::HealthShow(_) | Request::StatusShow(_) | Request::WaitForChanges(_) => READ,
            Request::BudgetList(_) | Request::SetupCheck(_) | Request::ConfigShow(_) => READ,
            Request::AgentList(_) | Request::AgentShow(_) | Request::TokenList(_) => READ,
            Request::ScheduleList(_) | Request::ScheduleShow(_) | Request::Why(_) => READ,
            Request::RunList(_) | Request::RunShow(_) => READ,
            Request::RunRead(_) | Request::RunWatch(_) => READ,
            Request::ApprovalList(_) | Request::ApprovalShow(_) => READ,
            Request::PolicyDecide(_) | Request::PolicyExplain(_) => READ,
            Request::ToolList(_) | Request::ToolMisuse(_) | Request::ToolEnd(_) => READ,
        }
    }

    /// Whether this request may change something; a dry run does not.
    pub const fn changes(&self) -> bool {
        match self {
            Request::ScheduleAdd(request) => !request.dry_run,
            Request::ScheduleAddAll(request) => !request.dry_run,
            _ => !matches!(self.class(), Class::Read(_)),
        }
    }
}
