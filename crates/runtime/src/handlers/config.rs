//! Reloads and shows the active configuration, and repeats the startup checks.

use api::{
    ActiveConfigValues, Code, ConfigReload, ConfigReloaded, ConfigShow, Error, Serve, SetupCheck,
    SetupChecked,
};

use crate::commit::caller::Caller;
use crate::engine::Engine;
use crate::engine::startup_checks;

impl Serve<ConfigReload> for Engine {
    async fn serve(&self, caller: &Caller, _: ConfigReload) -> Result<ConfigReloaded, Error> {
        if self.installation.posture.reload_needs_token() && caller.actor.token.is_none() {
            let what = "in strict-prod, only a maintainer's token reloads the configuration";
            return Err(Error::new(Code::RoleTooLow, what)
                .hint("set it as MIDWATCH_TOKEN; `midwatch token create` creates the first one"));
        }
        self.reload(&caller.actor).await
    }
}

/// The active value of every key.
impl Serve<ConfigShow> for Engine {
    async fn serve(&self, _: &Caller, _: ConfigShow) -> Result<ActiveConfigValues, Error> {
        Ok(ActiveConfigValues { values: self.config.active().keys.clone() })
    }
}

impl Serve<SetupCheck> for Engine {
    async fn serve(&self, _: &Caller, _: SetupCheck) -> Result<SetupChecked, Error> {
        let (findings, posture) = (self.findings().await?, self.installation.posture);
        let wire = findings.iter().map(|finding| startup_checks::wire(finding, posture));
        Ok(SetupChecked { findings: wire.collect() })
    }
}
