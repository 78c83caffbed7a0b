//! Finds PostgreSQL's programs. Debian installs them outside `PATH`, one directory per major version.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process;

const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// The directory of PostgreSQL's programs.
#[derive(Clone, Debug)]
pub(crate) struct Binaries(PathBuf);

impl Binaries {
    /// Prefers Debian's newest version to the server on `PATH`.
    pub(crate) fn find() -> Result<Binaries> {
        newest_version(Path::new(DEBIAN_VERSIONS)).or_else(find_on_path).map(Binaries).context(
            "the PostgreSQL server is not installed; run `cargo xtask test` as root or \
             `apt-get install postgresql`",
        )
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }
}

fn newest_version(versions: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(versions).ok()?.flatten();
    let numbered = entries.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let directory = entry.path().join("bin");
        directory.join("postgres").is_file().then_some((version, directory))
    });
    numbered.max().map(|(_, directory)| directory)
}

fn find_on_path() -> Option<PathBuf> {
    let server = process::output("sh", &["-c", "readlink -f \"$(command -v postgres)\""]).ok()?;
    let server = Path::new(server.trim_end());
    if server.is_file() { server.parent().map(Path::to_owned) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a server in each of `versions`, and one version without a server.
    fn check(case: &str, versions: &[&str], expected: Option<&str>) {
        let root = std::env::temp_dir().join(format!("binaries-{}-{case}", std::process::id()));
        for version in versions {
            fs::create_dir_all(root.join(version).join("bin")).unwrap();
            fs::write(root.join(version).join("bin/postgres"), "").unwrap();
        }
        fs::create_dir_all(root.join("99")).unwrap();
        assert_eq!(newest_version(&root), expected.map(|version| root.join(version).join("bin")));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn newest_version_compares_numbers_and_requires_a_server() {
        check("none", &[], None);
        check("one", &["15"], Some("15"));
        check("order", &["9", "17", "16"], Some("17"));
        check("not_a_number", &["devel", "16"], Some("16"));
    }
}
