//! Reading configuration and rules again while the watch is kept: all of it is read and checked, then
//! one entry of the log and one swap put it in force. With a fault in any of it nothing changes.

use std::fmt;
use std::sync::Arc;

use api::{Code, ConfigReloaded, ConfigValue, Error, Reloaded};
use kernel::Actor;
use kernel::posture::Finding;
use kernel::watch::{self, Event as WatchEvent, ReloadRefused};
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use crate::checks;
use crate::errors::internal;
use crate::orders::POLICY_FILE;
use crate::standing::{InForce, Standing};
use crate::watch::Engine;

/// What is kept of the reason of a refusal.
const REASON_CHARS_MAX: usize = 1_000;

/// Where configuration and rules are read again.
pub trait Reader: fmt::Debug + Send + Sync {
    fn read(&self) -> Result<Reread, Error>;
}

/// What was found, all of it valid.
#[derive(Clone, Debug)]
pub struct Reread {
    pub standing: Standing,
    /// Keys that are others than at the start, and go by the value of the start until a restart.
    pub waiting: Vec<String>,
    /// Keys that the file has, and that go by the environment.
    pub overridden: Vec<String>,
}

/// What is about to hold.
struct Next {
    in_force: InForce,
    changed: Vec<String>,
    waiting: Vec<String>,
    overridden: Vec<String>,
    warnings: Vec<Finding>,
}

impl Engine {
    /// From now on it can be told anew. To be called once, by whoever keeps the watch.
    pub fn reread_from(&self, reader: Arc<dyn Reader>) {
        let _ = self.reader().set(reader);
    }

    /// Takes up what configuration and rules say now, or says why not.
    pub async fn reload(&self, actor: &Actor) -> Result<ConfigReloaded, Error> {
        let Some(reader) = self.reader().get() else { return Err(nobody_keeps()) };
        let _one_at_a_time = self.reloading().lock().await;
        match self.next(Arc::clone(reader)).await {
            Ok(next) => self.take_over(actor, next).await,
            Err(refused) => {
                self.note_refused(actor, &refused).await;
                Err(refused)
            }
        }
    }

    async fn next(&self, reader: Arc<dyn Reader>) -> Result<Next, Error> {
        let (posture, data) = (self.posture(), self.settings().data.clone());
        let read = spawn_blocking(move || {
            let Reread { standing, waiting, overridden } = reader.read()?;
            Ok::<_, Error>((InForce::of(posture, &data, standing)?, waiting, overridden))
        });
        let (in_force, waiting, overridden) = read.await.map_err(internal)??;
        let changed = changed(&self.in_force(), &in_force);
        let approvers = in_force.check_approvers(self.tokens().await?);
        let warnings = approvers.into_iter().collect();
        Ok(Next { in_force, changed, waiting, overridden, warnings })
    }

    /// What is not in the log does not hold.
    async fn take_over(&self, actor: &Actor, next: Next) -> Result<ConfigReloaded, Error> {
        let Next { in_force, changed, waiting, overridden, warnings } = next;
        let reloaded = watch::Reloaded {
            config_hash: in_force.config_hash.clone(),
            policy: in_force.rules.version().to_owned(),
            changed: changed.clone(),
            waiting: waiting.clone(),
            warnings: warnings.iter().map(|it| it.check.name().to_owned()).collect(),
        };
        let (config_hash, policy) = (reloaded.config_hash.clone(), reloaded.policy.clone());
        let alone = self.alone().await;
        self.note_by(actor, WatchEvent::Reloaded(reloaded)).await?;
        self.put_in_force(in_force);
        drop(alone);
        // When it warns of its lease may be another time now.
        self.authority_changed().notify_one();
        info!(?changed, ?waiting, policy, "configuration and rules were read again");
        let posture = self.posture();
        let warnings = warnings.iter().map(|it| checks::wire(it, posture)).collect();
        Ok(ConfigReloaded {
            reloaded: Reloaded { config_hash, policy, changed, waiting, overridden, warnings },
        })
    }

    async fn note_refused(&self, actor: &Actor, refused: &Error) {
        warn!(code = refused.code.name(), %refused, "what was in force stays so");
        let code = refused.code.name().to_owned();
        let reason = refused.message.chars().take(REASON_CHARS_MAX).collect();
        let event = WatchEvent::ReloadRefused(ReloadRefused { code, reason });
        if let Err(failed) = self.note_by(actor, event).await {
            warn!(%failed, "that nothing was reloaded could not be written down");
        }
    }
}

/// The keys and files by which two differ.
fn changed(before: &InForce, after: &InForce) -> Vec<String> {
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

fn nobody_keeps() -> Error {
    Error::new(Code::NotNow, "no daemon keeps the watch, so there is nothing to reload")
        .hint("`midwatch up` reads the files when it starts; `midwatch config check` looks at them")
}
