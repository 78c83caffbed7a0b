//! Every toolset and its tools, in the order in which clients see them.

mod agent;
mod approval;
mod core;
mod ledger;
mod run;
mod schedule;

use crate::selection::toolsets;
use crate::tool::Tool;
use crate::toolsets::{astra, foundry, promptyoself};

// Our own toolsets, then those of other systems.
toolsets! {
    Core "core" true core "Status, health, budget and policy decisions.";
    Schedule "schedule" true schedule "Schedules and the outcome of their slots.";
    Run "run" true run "Runs: start, follow, cancel and retry them.";
    Approval "approval" true approval "Approvals that wait for a human. No tool can decide them.";
    Agent "agent" true agent "The registered agents.";
    Ledger "ledger" false ledger "The ledger: the log of everything that happened.";
    Astra "astra" false astra "For clients of Astra: Astra's tools under their own names, which contain dots.";
    Promptyoself "promptyoself" false promptyoself "For clients of promptyoself: promptyoself's tools under their own names.";
    Foundry "foundry" false foundry "For clients of Foundry: those of Foundry's tools that are supported.";
}

/// All tools.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    Toolset::ALL.iter().flat_map(|toolset| toolset.tools())
}
