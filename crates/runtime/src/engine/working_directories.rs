//! Finds command agents whose working directory the daemon cannot write to, such as in a systemd unit with
//! `ProtectHome=read-only`. Their programs cannot either, and fail in ways that do not name the cause.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use kernel::agent::Agent;
use kernel::backend::{Backend, Tier};
use kernel::posture::{Check, Finding};
use rustix::fs::{Access, access};

/// The findings about agents that are expected to write: those above tier 0.
pub(super) fn check_working_directories(agents: &[Agent]) -> Vec<Finding> {
    let writers = agents.iter().filter(|agent| agent.tier != Tier::ReadOnly);
    writers.filter_map(check_agent).collect()
}

fn check_agent(agent: &Agent) -> Option<Finding> {
    let Backend::Command(program) = &agent.backend else { return None };
    let given = program.cwd.as_ref().map(|path| PathBuf::from(path.as_str()));
    let directory = given.or_else(env::home_dir)?;
    let error = find_obstacle(&directory)?;
    let what = format!(
        "agent `{}` cannot write to its working directory `{}`: {error}",
        agent.name,
        directory.display()
    );
    let fix = "give the daemon's user access; in a systemd unit, remove `ProtectHome=`, or add \
               `ReadWritePaths=` with this directory";
    Some(Finding::new(Check::WorkingDirectories, what, fix))
}

/// Why this process cannot write to a directory. `None` also if the directory does not exist.
fn find_obstacle(directory: &Path) -> Option<io::Error> {
    match access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from) {
        Ok(()) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_exists_and_cannot_be_written_is_an_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find_obstacle(dir.path()).is_none());
        assert!(find_obstacle(&dir.path().join("missing")).is_none());
        // Not even root can enter a file.
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(find_obstacle(&file).is_some());
    }
}
