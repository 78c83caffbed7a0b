//! What stays the same for as long as a process has a data directory open.

use std::path::PathBuf;
use std::time::Duration;

use kernel::posture::Posture;
use ledger::SigningKey;

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
}
