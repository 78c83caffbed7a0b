//! What the watch goes by and may be told anew while it is kept: one value, swapped as a whole.
//!
//! Whoever decides something takes it once. While a change is decided and committed it stays the same
//! ([`Watch::steady`]), so that an entry of the log tells what was judged by the old from what was
//! judged by the new.

use std::path::Path;
use std::sync::Arc;

use api::{ConfigInForce, ConfigValue, Error};
use kernel::authority::Lease;
use kernel::budget::Limits;
use kernel::posture::{Flags, Trust};
use kernel::ruling::Posture;
use policy::Rules;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, watch};

use crate::orders;
use crate::watch::Engine;

/// What the watch is told at the start, and again by a reload.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The operator's own rules, by the name of their file.
    pub policy: Vec<(String, String)>,
    /// The effective value of every key, as it is shown.
    pub keys: Vec<ConfigValue>,
    /// SHA-256 of these.
    pub config_hash: String,
    pub lease: Lease,
    pub limits: Limits,
    pub flags: Flags,
}

/// The same, checked and ready to be asked.
#[derive(Debug)]
pub(crate) struct InForce {
    pub rules: Rules,
    pub policy: Vec<(String, String)>,
    pub keys: Vec<ConfigValue>,
    pub config_hash: String,
    pub lease: Lease,
    pub limits: Limits,
    /// What posture and flags leave.
    pub trust: Trust,
}

#[derive(Debug)]
pub(crate) struct Snapshot {
    now: watch::Sender<Arc<InForce>>,
    /// Held by those who decide, and alone by whoever swaps.
    gate: RwLock<()>,
}

impl InForce {
    /// With a fault in the rules there is nothing to go by.
    pub(crate) fn of(posture: Posture, data: &Path, standing: Standing) -> Result<InForce, Error> {
        let Standing { policy, keys, config_hash, lease, limits, flags } = standing;
        let rules = orders::rules(posture, &policy, data)?;
        let trust = posture.trust().with(flags);
        Ok(InForce { rules, policy, keys, config_hash, lease, limits, trust })
    }
}

impl Snapshot {
    pub(crate) fn of(in_force: InForce) -> Snapshot {
        Snapshot { now: watch::Sender::new(Arc::new(in_force)), gate: RwLock::new(()) }
    }
}

impl Engine {
    /// What holds now.
    pub(crate) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.snapshot().now.borrow())
    }

    /// The value of every key that holds now.
    pub(crate) fn config(&self) -> ConfigInForce {
        ConfigInForce { values: self.in_force().keys.clone() }
    }

    /// Until this is dropped, what is in force stays so.
    pub(crate) async fn steady(&self) -> RwLockReadGuard<'_, ()> {
        self.snapshot().gate.read().await
    }

    /// Nobody decides anything until this is dropped.
    pub(crate) async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.snapshot().gate.write().await
    }

    /// To be called while alone.
    pub(crate) fn put_in_force(&self, next: InForce) {
        self.snapshot().now.send_replace(Arc::new(next));
    }

    /// Returns when it holds that humans are called.
    pub(crate) async fn until_notices(&self) {
        let mut in_force = self.snapshot().now.subscribe();
        // The sender is the watch's own, and outlives this.
        let _ = in_force.wait_for(|it| it.trust.notices).await;
    }
}
