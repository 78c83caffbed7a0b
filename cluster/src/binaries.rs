//! Where PostgreSQL's programs are: Debian keeps them outside of `PATH`, by major version.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process;

const DEBIAN: &str = "/usr/lib/postgresql";

#[derive(Clone, Debug)]
pub(crate) struct Binaries(PathBuf);

impl Binaries {
    /// The newest server of Debian's, else the one that `PATH` leads to.
    pub(crate) fn find() -> Result<Binaries> {
        newest(Path::new(DEBIAN)).or_else(on_path).map(Binaries).context(
            "PostgreSQL's server is missing; `cargo xtask test` as root or \
             `apt-get install postgresql` installs it",
        )
    }

    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.0.join(program)
    }
}

fn newest(versions: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(versions).ok()?.flatten();
    let numbered = entries.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path().join("bin");
        folder.join("postgres").is_file().then_some((version, folder))
    });
    numbered.max().map(|(_, folder)| folder)
}

fn on_path() -> Option<PathBuf> {
    let server = process::output("sh", &["-c", "readlink -f \"$(command -v postgres)\""]).ok()?;
    let server = Path::new(server.trim_end());
    if server.is_file() { server.parent().map(Path::to_owned) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a server in each of `versions`, and expects the one in `expected` to be found.
    fn check(case: &str, versions: &[&str], expected: Option<&str>) {
        let root = std::env::temp_dir().join(format!("binaries-{}-{case}", std::process::id()));
        for version in versions {
            fs::create_dir_all(root.join(version).join("bin")).unwrap();
            fs::write(root.join(version).join("bin/postgres"), "").unwrap();
        }
        fs::create_dir_all(root.join("99")).unwrap();
        assert_eq!(newest(&root), expected.map(|version| root.join(version).join("bin")));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn newest_is_by_number_and_has_a_server() {
        check("none", &[], None);
        check("one", &["15"], Some("15"));
        check("order", &["9", "17", "16"], Some("17"));
        check("words", &["devel", "16"], Some("16"));
    }
}
