//! Which process owns a running run: a data directory, and one process after the other in it.

use std::path::{Path, PathBuf};

use api::{Code, Error};

/// Longer than any name of a directory.
const NAME_BYTES_MAX: usize = 100;
/// The file that tells a data directory from others that share its database.
const FILE_NAME: &str = "node";

/// Names this process among all that ever had this data directory open.
#[derive(Clone, Debug)]
pub(crate) struct NodeId {
    data: PathBuf,
    /// Invariant: `directory/process`, both random.
    name: String,
}

impl NodeId {
    /// A new process of a data directory whose lock the caller holds.
    pub(crate) fn new(data: &Path) -> NodeId {
        let directory = files::read_text(&data.join(FILE_NAME), NAME_BYTES_MAX).unwrap_or_default();
        let directory = match directory.trim() {
            "" => random(),
            directory => directory.to_owned(),
        };
        NodeId { data: data.to_owned(), name: format!("{directory}/{}", random()) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes the file, unless it exists. Call it before this process owns a run, so that a later process of the directory
    /// recognises the run.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let path = self.data.join(FILE_NAME);
        if files::read_text(&path, NAME_BYTES_MAX).is_ok_and(|text| !text.trim().is_empty()) {
            return Ok(());
        }
        // At once, because a truncated name would identify another directory.
        files::replace(&path, self.directory()).map_err(|error| {
            Error::new(Code::Failed, format!("cannot write `{}`: {error}", path.display()))
        })
    }

    /// Whether `other` is an earlier process of the same directory.
    pub(crate) fn is_previous_process(&self, other: &str) -> bool {
        other != self.name && directory_of(other) == self.directory()
    }

    fn directory(&self) -> &str {
        directory_of(&self.name)
    }
}

fn directory_of(name: &str) -> &str {
    name.split_once('/').map_or("", |(directory, _)| directory)
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_process_of_the_same_directory_is_a_previous_process() {
        let [here, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let node = |data: &Path| {
            let node = NodeId::new(data);
            node.save().unwrap();
            node
        };
        let [earlier, now] = [(); 2].map(|()| node(here.path()));
        let other = node(elsewhere.path());
        assert!(now.is_previous_process(earlier.name()));
        assert!(!now.is_previous_process(now.name()));
        assert!(!now.is_previous_process(other.name()));
    }
}
