//! Who holds the runs that are at work: a data directory, and one process after the other in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use api::{Code, Error};

/// The file that names a data directory among those that share a database.
const FILE: &str = "node";

/// Invariant: `node/process`, both random.
#[derive(Clone, Debug)]
pub(crate) struct Holder(String);

impl Holder {
    /// A new process of a data directory whose lock the caller holds.
    pub(crate) fn of(data: &Path) -> Result<Holder, Error> {
        let path = data.join(FILE);
        let node = match fs::read_to_string(&path) {
            Ok(node) if !node.trim().is_empty() => node.trim().to_owned(),
            _ => {
                let node = random();
                write(data, &path, &node).map_err(|error| {
                    let what = format!("cannot write `{}`: {error}", path.display());
                    Error::new(Code::Failed, what)
                })?;
                node
            }
        };
        Ok(Holder(format!("{node}/{}", random())))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Whether another was an earlier process of the same directory.
    pub(crate) fn left_behind(&self, other: &str) -> bool {
        let node = |name: &str| name.split_once('/').map(|(node, _)| node.to_owned());
        other != self.0 && node(other) == node(&self.0)
    }
}

/// Whole or not at all: a name that is cut short would be another's.
fn write(data: &Path, path: &Path, node: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(node.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(data)?.sync_all()
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_earlier_process_of_the_same_directory_held_was_left_behind() {
        let [here, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [earlier, now] = [(); 2].map(|()| Holder::of(here.path()).unwrap());
        let other = Holder::of(elsewhere.path()).unwrap();
        assert!(now.left_behind(earlier.name()));
        assert!(!now.left_behind(now.name()));
        assert!(!now.left_behind(other.name()));
    }
}
