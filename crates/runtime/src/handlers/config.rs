//! The active configuration, and the startup checks.

use api::{ActiveConfigValues, Error, SetupChecked};

use crate::engine::Engine;
use crate::engine::startup_checks;

impl Engine {
    /// The active value of every key.
    pub(crate) fn config_values(&self) -> ActiveConfigValues {
        ActiveConfigValues { values: self.config.active().keys.clone() }
    }

    pub(crate) async fn check_setup(&self) -> Result<SetupChecked, Error> {
        let (findings, posture) = (self.findings().await?, self.installation.posture);
        let wire = findings.iter().map(|finding| startup_checks::wire(finding, posture));
        Ok(SetupChecked { findings: wire.collect() })
    }
}
