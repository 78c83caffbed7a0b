//! Every tool, in the order in which clients see them.

mod agent;
mod approval;
mod core;
mod ledger;
mod run;
mod schedule;

use crate::tool::Tool;
use crate::toolsets;

/// All tools: our own, then those of other systems.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    [core::TOOLS, schedule::TOOLS, run::TOOLS, approval::TOOLS, agent::TOOLS, ledger::TOOLS]
        .into_iter()
        .chain(toolsets::TOOLS)
        .flatten()
}
