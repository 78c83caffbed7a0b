//! The closed table of capabilities: each action that a request can name, with its minimum tier.
//!
//! The tier comes from this table, never from a tool's own description. A capability that is not in
//! the table counts as external, the highest tier.

use std::collections::BTreeSet;

use kernel::backend::Tier;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// The family, a dot and the action.
    pub name: &'static str,
    pub tier: Tier,
    pub meaning: &'static str,
}

/// All capabilities.
pub const ALL: &[Capability] = &[
    read("agent.prompt", "prompt an agent; the agent's own tier applies"),
    read("filesystem.read", "read a file"),
    write("filesystem.write", "write a file inside the work directory"),
    external("net.read", "fetch something from another machine"),
    external("net.write", "send something to another machine"),
    external("shell.run", "run a program"),
    read("code.read", "read a repository"),
    external("code.write", "change a repository"),
    read("schedule.read", "list and read schedules"),
    write("schedule.create", "add a schedule"),
    write("schedule.change", "change, pause or remove a schedule"),
    write("run.start", "start a run"),
    write("run.cancel", "cancel a run"),
    read("memory.read", "read memory"),
    write("memory.write", "write memory"),
    read("approval.ask", "request an approval"),
    external("message.send", "send a message to people"),
    external("payment.make", "spend money"),
    external("secret.use", "use a secret"),
    read("ledger.read", "read the ledger"),
];

/// The minimum tier of a request for a capability.
///
/// ```
/// use kernel::backend::Tier;
///
/// assert_eq!(policy::capability::tier("schedule.create"), Tier::LocalWrite);
/// assert_eq!(policy::capability::tier("rocket.launch"), Tier::External);
/// ```
pub fn tier(name: &str) -> Tier {
    find(name).map_or(Tier::External, |capability| capability.tier)
}

/// The capability with this name.
pub fn find(name: &str) -> Option<&'static Capability> {
    ALL.iter().find(|capability| capability.name == name)
}

impl Capability {
    pub(crate) fn family(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(family, _)| family)
    }
}

/// The names of the capabilities in a family; empty if the family is unknown.
pub(crate) fn members(family: &str) -> Vec<&'static str> {
    let members = ALL.iter().filter(|capability| capability.family() == family);
    members.map(|capability| capability.name).collect()
}

pub(crate) fn families() -> BTreeSet<&'static str> {
    ALL.iter().map(Capability::family).collect()
}

const fn read(name: &'static str, meaning: &'static str) -> Capability {
    Capability { name, tier: Tier::ReadOnly, meaning }
}

const fn write(name: &'static str, meaning: &'static str) -> Capability {
    Capability { name, tier: Tier::LocalWrite, meaning }
}

const fn external(name: &'static str, meaning: &'static str) -> Capability {
    Capability { name, tier: Tier::External, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_consist_of_family_and_action() {
        let names: BTreeSet<&str> = ALL.iter().map(|capability| capability.name).collect();
        assert_eq!(names.len(), ALL.len());
        for capability in ALL {
            let (family, action) = capability.name.split_once('.').unwrap();
            let plain = |word: &str| word.chars().all(|c| c.is_ascii_lowercase());
            assert!(plain(family) && plain(action), "{}", capability.name);
            assert!(members(family).contains(&capability.name));
        }
    }
}
