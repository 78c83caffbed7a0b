//! The configuration and rules that a reload can change: one value, swapped as a whole.
//!
//! A decision reads it once, and [`Config::pin`] keeps it the same until the decision is committed. So the ledger entry of a
//! reload separates what the old rules decided from what the new ones decided.

use std::env;
use std::path::Path;
use std::sync::Arc;

use ::policy::{Rules, Source};
use api::{Code, ConfigValue, Error};
use kernel::authority::Lease;
use kernel::budget::Limits;
use kernel::posture::{Flags, Posture, Trust};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};

use crate::retention::Retention;

/// The name of the operator's own rules, in the data directory and in every decision.
pub const POLICY_FILE: &str = "policy.toml";

/// What is read at the start and again by a reload.
#[derive(Clone, Debug, Default)]
pub struct ReloadableConfig {
    /// The operator's own rules, by the name of their file.
    pub policy: Vec<(String, String)>,
    /// The effective value of every key, for display.
    pub keys: Vec<ConfigValue>,
    /// SHA-256 of `keys`.
    pub config_hash: String,
    pub lease: Lease,
    pub limits: Limits,
    pub flags: Flags,
    pub retention: Retention,
}

/// A [`ReloadableConfig`] that was checked.
#[derive(Debug)]
pub(crate) struct ActiveConfig {
    pub rules: Rules,
    pub policy: Vec<(String, String)>,
    pub keys: Vec<ConfigValue>,
    pub config_hash: String,
    pub lease: Lease,
    pub limits: Limits,
    pub retention: Retention,
    /// What the posture and the flags allow.
    pub trust: Trust,
}

#[derive(Debug)]
pub(crate) struct Config {
    active: watch::Sender<Arc<ActiveConfig>>,
    /// Decisions hold it shared, a reload holds it exclusively.
    gate: RwLock<()>,
}

impl ActiveConfig {
    /// Fails if the rules have a fault.
    pub(crate) fn load(
        posture: Posture,
        data: &Path,
        config: ReloadableConfig,
    ) -> Result<ActiveConfig, Error> {
        let ReloadableConfig { policy, keys, config_hash, lease, limits, flags, retention } =
            config;
        let rules = rules(posture, &policy, data)?;
        let trust = posture.trust().restricted_by(flags);
        Ok(ActiveConfig { rules, policy, keys, config_hash, lease, limits, retention, trust })
    }
}

impl Config {
    pub(crate) fn new(active: ActiveConfig) -> Config {
        Config { active: watch::Sender::new(Arc::new(active)), gate: RwLock::new(()) }
    }

    pub(crate) fn active(&self) -> Arc<ActiveConfig> {
        Arc::clone(&self.active.borrow())
    }

    /// No reload takes effect until the guard is dropped.
    pub(crate) async fn pin(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().await
    }

    /// No decision is made until the guard is dropped.
    pub(crate) async fn lock_for_swap(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().await
    }

    /// The caller holds [`Config::lock_for_swap`].
    pub(crate) fn swap(&self, next: ActiveConfig) {
        self.active.send_replace(Arc::new(next));
    }

    /// Returns once notices are switched on.
    pub(crate) async fn notices_enabled(&self) {
        // The sender outlives this borrow of it.
        let _ = self.active.subscribe().wait_for(|active| active.trust.notices).await;
    }
}

/// The rules of a posture together with the operator's own, each by the name of their file. Files in the data directory
/// are protected, and the user's home is theirs.
pub fn rules(posture: Posture, own: &[(String, String)], data: &Path) -> Result<Rules, Error> {
    let sources: Vec<Source<'_>> = own.iter().map(|(name, text)| Source { name, text }).collect();
    let rules = Rules::load(posture, &sources).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Error::new(Code::PolicyInvalid, faults.join("\n"))
            .hint("correct the file, then run `midwatch policy check`")
    })?;
    let rules = rules.with_protected_directory(&real_path(data));
    Ok(match env::home_dir() {
        Some(home) => rules.with_home(&real_path(&home)),
        None => rules,
    })
}

/// The path with every link resolved, because requests name files by it.
fn real_path(directory: &Path) -> String {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    real.to_string_lossy().into_owned()
}
