//! The process whose environment agents get: the daemon, or a command while no daemon runs.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentOf {
    Daemon { pid: u32 },
    Command,
}

impl EnvironmentOf {
    /// Why an agent does not get a variable, and what to do about it.
    pub fn lacks_variable(self, name: &str) -> String {
        match self {
            EnvironmentOf::Daemon { .. } => {
                format!("{self} has no variable `{name}`; set it there and restart the daemon")
            }
            EnvironmentOf::Command => format!(
                "no daemon runs, and {self} has no variable `{name}`; set it before `midwatch up`"
            ),
        }
    }
}

impl fmt::Display for EnvironmentOf {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnvironmentOf::Daemon { pid } => write!(out, "the daemon (pid {pid})"),
            EnvironmentOf::Command => out.write_str("this shell"),
        }
    }
}
