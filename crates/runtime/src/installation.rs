//! What stays the same for as long as a process has a data directory open.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::posture::Posture;
use ledger::SigningKey;

/// The folder of output files, within the data directory.
pub const OUTPUTS_FOLDER: &str = "outputs";

/// Settings that need a restart to change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// The program's version.
    pub version: String,
    pub posture: Posture,
    /// A file elsewhere to which every checkpoint is copied.
    pub checkpoint_copy: Option<PathBuf>,
    /// Zero turns heartbeats off.
    pub heartbeat: Duration,
    /// How long running runs may continue after the daemon is told to stop.
    pub drain: Duration,
    /// Variables that hold Midwatch's own secrets; no agent gets them.
    pub secret_variables: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Installation {
    /// The id in every entry that the installation writes about itself.
    pub instance: String,
    pub signing_key: SigningKey,
    /// The configured posture, or a stricter one in which the daemon last ran.
    pub posture: Posture,
    /// Tells the data directory from a copy of it, if the ledger is stored there.
    pub location: Option<String>,
    pub settings: Settings,
    /// The base URL of the pages for people, without a slash at its end, if a daemon serves them.
    pub http_url: Option<String>,
}

impl Installation {
    /// The page on which a person reads an approval and decides, if a daemon serves it.
    pub(crate) fn approval_link(&self, approval: &str) -> Option<String> {
        self.http_url.as_ref().map(|url| format!("{url}/approvals/{approval}"))
    }

    /// The path of an output file, which may be in another data directory since it was recorded.
    pub(crate) fn output_file(&self, recorded: &str) -> String {
        let moved = Path::new(recorded)
            .file_name()
            .map(|name| self.settings.data.join(OUTPUTS_FOLDER).join(name))
            .filter(|moved| !Path::new(recorded).exists() && moved.exists());
        moved.map_or_else(|| recorded.to_owned(), |moved| moved.display().to_string())
    }
}
