//! Programs that the tests start and Cargo does not bring.
//!
//! They are installed where that is possible: Debian packages, as root. Elsewhere the verb ends
//! with a sentence before any test runs, because a test that is skipped in silence proves nothing.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::process;

#[derive(Debug)]
struct Tool {
    command: &'static str,
    /// A command line that ends well when the tool is there.
    proof: &'static [&'static str],
    /// The Debian package that holds the command.
    package: &'static str,
    /// Completes "without it fail …".
    needed_by: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        command: "strace",
        proof: &["strace", "--version"],
        package: "strace",
        needed_by: "the tests that watch system calls or make them fail",
    },
    Tool {
        command: "python3",
        proof: &["python3", "--version"],
        package: "python3",
        needed_by: "the tests that verify a ledger with an independent second program",
    },
    Tool {
        command: "postgres",
        proof: &["sh", "-c", POSTGRES],
        package: "postgresql",
        needed_by: "the tests that start a PostgreSQL of their own",
    },
    Tool {
        command: "openssl",
        proof: &["openssl", "version"],
        package: "openssl",
        needed_by: "the tests that make certificates for that PostgreSQL",
    },
];

/// Debian keeps the server outside of `PATH`. The `cluster` crate looks in the same places.
const POSTGRES: &str = "for it in /usr/lib/postgresql/*/bin/postgres postgres; do \
                        \"$it\" --version && exit 0; done; exit 1";

/// Makes sure that every tool works, or says which package is missing and what would fail.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    let absent = missing(root);
    if absent.is_empty() {
        return Ok(());
    }
    if may_install(root)
        && let Err(error) = install(root, &absent)
    {
        eprintln!("{error:#}");
    }
    let absent = missing(root);
    ensure!(absent.is_empty(), "{}", sentence(&absent));
    Ok(())
}

fn missing(root: &Path) -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !works(root, tool.proof)).collect()
}

fn works(root: &Path, proof: &[&str]) -> bool {
    proof.split_first().is_some_and(|(program, args)| process::works(root, program, args))
}

fn may_install(root: &Path) -> bool {
    let is_root = process::read(root, "id", &["-u"]).is_ok_and(|uid| uid.trim() == "0");
    is_root && process::works(root, "apt-get", &["--version"])
}

fn install(root: &Path, absent: &[&Tool]) -> Result<()> {
    process::run(root, "apt-get", &["update", "--quiet"])?;
    let options = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--quiet"];
    let packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    process::run(root, "env", &[&options[..], &["--no-install-recommends"], &packages].concat())
}

fn sentence(absent: &[&Tool]) -> String {
    let packages: Vec<&str> = absent.iter().map(|tool| tool.package).collect();
    let mut text = String::new();
    for tool in absent {
        text += &format!("`{}` is missing: without it fail {}; ", tool.command, tool.needed_by);
    }
    text + &format!("`apt-get install {}` as root brings what is missing", packages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_each_tool_and_what_fails_without_it() {
        let strace = &TOOLS[0];
        assert_eq!(
            sentence(&[strace]),
            "`strace` is missing: without it fail the tests that watch system calls or make them \
             fail; `apt-get install strace` as root brings what is missing"
        );
        let all: Vec<&Tool> = TOOLS.iter().collect();
        let text = sentence(&all);
        for tool in TOOLS {
            assert!(text.contains(&format!("`{}` is missing", tool.command)), "{text}");
        }
        let install = "`apt-get install strace python3 postgresql openssl` as root";
        assert!(text.contains(install), "{text}");
    }
}
