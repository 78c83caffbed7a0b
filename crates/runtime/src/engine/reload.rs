//! Reloading configuration and rules: all of it is read and checked, then one ledger entry and one swap activate it. A fault in
//! any of it changes nothing.

use std::fmt;
use std::sync::Arc;

use api::{Code, ConfigReloaded, ConfigValue, Error, Reloaded};
use kernel::Actor;
use kernel::installation::{self, Event as InstallationEvent, ReloadRefused};
use kernel::posture::Finding;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use crate::config::{ActiveConfig, POLICY_FILE, ReloadableConfig};
use crate::engine::Engine;
use crate::engine::startup_checks;
use crate::errors::internal;

/// The longest reason of a refused reload that is recorded.
const REASON_CHARS_MAX: usize = 1_000;

/// Reads configuration and rules again.
pub trait ConfigReader: fmt::Debug + Send + Sync {
    fn read(&self) -> Result<Reread, Error>;
}

/// What was read, all of it valid.
#[derive(Clone, Debug)]
pub struct Reread {
    pub config: ReloadableConfig,
    /// Changed keys that need a restart.
    pub waiting: Vec<String>,
    /// Keys of the file that the environment overrides.
    pub overridden: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Reloader {
    /// Only a daemon can reload.
    reader: Option<Arc<dyn ConfigReader>>,
    /// Held during a reload.
    lock: Mutex<()>,
}

/// A configuration that is about to become active.
struct NextConfig {
    config: ActiveConfig,
    changed: Vec<String>,
    waiting: Vec<String>,
    overridden: Vec<String>,
    warnings: Vec<Finding>,
}

impl Reloader {
    pub(crate) fn new(reader: Option<Arc<dyn ConfigReader>>) -> Reloader {
        Reloader { reader, lock: Mutex::new(()) }
    }
}

impl Engine {
    /// Activates the configuration and rules as they are now.
    pub async fn reload(&self, actor: &Actor) -> Result<ConfigReloaded, Error> {
        let Some(reader) = &self.reloader.reader else { return Err(no_daemon()) };
        let _one_at_a_time = self.reloader.lock.lock().await;
        match self.read_config(Arc::clone(reader)).await {
            Ok(next) => self.activate(actor, next).await,
            Err(refused) => {
                self.record_refused_reload(actor, &refused).await;
                Err(refused)
            }
        }
    }

    async fn read_config(&self, reader: Arc<dyn ConfigReader>) -> Result<NextConfig, Error> {
        let (posture, data) = (self.installation.posture, self.installation.settings.data.clone());
        let read = spawn_blocking(move || {
            let Reread { config, waiting, overridden } = reader.read()?;
            Ok::<_, Error>((ActiveConfig::load(posture, &data, config)?, waiting, overridden))
        });
        let (config, waiting, overridden) = read.await.map_err(internal)??;
        let changed = changed_keys(&self.config.active(), &config);
        let warnings = self.approver_findings(&config).await?;
        Ok(NextConfig { config, changed, waiting, overridden, warnings })
    }

    /// The entry comes first: only a recorded configuration becomes active.
    async fn activate(&self, actor: &Actor, next: NextConfig) -> Result<ConfigReloaded, Error> {
        let NextConfig { config, changed, waiting, overridden, warnings } = next;
        let reloaded = installation::Reloaded {
            config_hash: config.config_hash.clone(),
            policy: config.rules.version().to_owned(),
            changed: changed.clone(),
            waiting: waiting.clone(),
            warnings: warnings.iter().map(|it| it.check.name().to_owned()).collect(),
        };
        let (config_hash, policy) = (reloaded.config_hash.clone(), reloaded.policy.clone());
        let swapping = self.config.lock_for_swap().await;
        self.transactions.record_as(actor, InstallationEvent::Reloaded(reloaded)).await?;
        self.config.swap(config);
        drop(swapping);
        // The next warning about the lease may be at another time now.
        self.authority.changed.notify_one();
        info!(?changed, ?waiting, policy, "reloaded configuration and rules");
        let posture = self.installation.posture;
        let warnings = warnings.iter().map(|it| startup_checks::wire(it, posture)).collect();
        Ok(ConfigReloaded {
            reloaded: Reloaded { config_hash, policy, changed, waiting, overridden, warnings },
        })
    }

    async fn record_refused_reload(&self, actor: &Actor, refused: &Error) {
        warn!(code = refused.code.name(), %refused, "refused a reload, the old configuration stays active");
        let code = refused.code.name().to_owned();
        let reason = refused.message.chars().take(REASON_CHARS_MAX).collect();
        let event = InstallationEvent::ReloadRefused(ReloadRefused { code, reason });
        if let Err(failed) = self.transactions.record_as(actor, event).await {
            warn!(%failed, "failed to record a refused reload");
        }
    }
}

/// The keys and files that differ.
fn changed_keys(before: &ActiveConfig, after: &ActiveConfig) -> Vec<String> {
    let is_same = |one: &ConfigValue, other: &ConfigValue| {
        (&one.key, &one.value) == (&other.key, &other.value)
    };
    let is_new = |it: &&ConfigValue| !before.keys.iter().any(|old| is_same(old, it));
    let mut changed: Vec<String> =
        after.keys.iter().filter(is_new).map(|it| it.key.clone()).collect();
    if before.rules.version() != after.rules.version() {
        changed.push(POLICY_FILE.to_owned());
    }
    changed
}

fn no_daemon() -> Error {
    Error::new(Code::NotNow, "no daemon is running, so there is nothing to reload")
        .hint("`midwatch up` reads the files when it starts; `midwatch config check` checks them")
}
