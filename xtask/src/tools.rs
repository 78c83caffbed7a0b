//! Programs that the tests start and Cargo does not install.
//!
//! As root on Debian, missing packages are installed. Elsewhere the verb fails with their names before any test runs,
//! because a silently skipped test proves nothing.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::process;

#[derive(Debug)]
struct Tool {
    command: &'static str,
    /// A command line that exits with 0 if the tool is installed.
    probe: &'static [&'static str],
    /// The Debian package of the command.
    package: &'static str,
    /// Completes "it is needed by …".
    needed_by: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        command: "strace",
        probe: &["strace", "--version"],
        package: "strace",
        needed_by: "the tests that trace system calls or make them fail",
    },
    Tool {
        command: "python3",
        probe: &["python3", "--version"],
        package: "python3",
        needed_by: "the tests that verify a ledger with an independent second program",
    },
    Tool {
        command: "postgres",
        probe: &["sh", "-c", POSTGRES],
        package: "postgresql",
        needed_by: "the tests that start a PostgreSQL server",
    },
    Tool {
        command: "openssl",
        probe: &["openssl", "version"],
        package: "openssl",
        needed_by: "the tests that create certificates for that PostgreSQL server",
    },
    Tool {
        command: "chromium",
        probe: &["sh", "-c", "command -v chromium"],
        package: "chromium",
        needed_by: "the tests that use the dashboard in a real browser",
    },
    Tool {
        command: "chromedriver",
        probe: &["chromedriver", "--version"],
        package: "chromium-driver",
        needed_by: "the tests that use the dashboard in a real browser",
    },
];

/// Debian keeps the server outside of `PATH`. The `test-postgres` crate searches the same paths.
const POSTGRES: &str = "for it in /usr/lib/postgresql/*/bin/postgres postgres; do \
                        \"$it\" --version && exit 0; done; exit 1";

/// Installs missing tools where it can. Otherwise the error names the missing packages and the tests that need them.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    let absent = missing(root);
    if absent.is_empty() {
        return Ok(());
    }
    if can_install(root)
        && let Err(error) = install(root, &absent)
    {
        eprintln!("{error:#}");
    }
    let absent = missing(root);
    ensure!(absent.is_empty(), "{}", missing_message(&absent));
    Ok(())
}

fn missing(root: &Path) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !is_installed(root, tool.probe)).collect()
}

fn is_installed(root: &Path, probe: &[&str]) -> bool {
    probe.split_first().is_some_and(|(program, args)| process::succeeds(root, program, args))
}

fn can_install(root: &Path) -> bool {
    let is_root = process::output(root, "id", &["-u"]).is_ok_and(|uid| uid.trim() == "0");
    is_root && process::succeeds(root, "apt-get", &["--version"])
}

fn install(root: &Path, absent: &[&Tool]) -> Result<()> {
    process::run(root, "apt-get", &["update", "--quiet"])?;
    let options = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--quiet"];
    let packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    process::run(root, "env", &[&options[..], &["--no-install-recommends"], &packages].concat())
}

fn missing_message(absent: &[&Tool]) -> String {
    let packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    let mut text = String::new();
    for tool in absent {
        text += &format!("`{}` is missing; it is needed by {}; ", tool.command, tool.needed_by);
    }
    text + &format!("install with `apt-get install {}` as root", packages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_each_missing_tool_and_its_tests() {
        let strace = &TOOLS[0];
        assert_eq!(
            missing_message(&[strace]),
            "`strace` is missing; it is needed by the tests that trace system calls or make them \
             fail; install with `apt-get install strace` as root"
        );
        let all: Vec<&Tool> = TOOLS.iter().collect();
        let text = missing_message(&all);
        for tool in TOOLS {
            assert!(text.contains(&format!("`{}` is missing", tool.command)), "{text}");
        }
        let install = "`apt-get install strace python3 postgresql openssl chromium \
                       chromium-driver` as root";
        assert!(text.contains(install), "{text}");
    }
}
