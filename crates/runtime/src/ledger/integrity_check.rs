//! The background check of the ledger and of the tables that are derived from it.
//!
//! It runs once after a start and reads everything. A damaged ledger stops all writes until a check passes. Tables that differ
//! from the ledger are rebuilt, and an event records that.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use api::{Error, ProgressSink};
use kernel::Actor;
use ledger::verify::{Anchors, Report, Verdict};
use store::Store;
use tracing::{error, info, warn};

use crate::clock::Time;
use crate::commit::transaction::Transactions;
use crate::damage::WriteGuard;
use crate::errors;
use crate::installation::Installation;
use crate::ledger::checkpoints::{CHECKPOINTS_FILE, read_notes, unreadable};
use crate::ledger::rebuild::{self, Fold};
use crate::ledger::verify::verify;

#[derive(Debug)]
pub(crate) struct IntegrityCheck {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) write_guard: Arc<WriteGuard>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    /// The result so far, as a sentence.
    pub(crate) found: Mutex<String>,
    /// The last check failed, so nothing is known about the ledger.
    pub(crate) has_failed: AtomicBool,
}

impl IntegrityCheck {
    pub(crate) fn result(&self) -> String {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_result(&self, found: impl Into<String>) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found.into();
    }

    pub(crate) async fn run(&self) {
        self.set_result("running");
        match self.check().await {
            Ok(found) => {
                info!(found, "checked the ledger and the tables");
                self.set_result(found);
            }
            Err(failed) => {
                error!(%failed, "failed to check the ledger and the tables");
                self.has_failed.store(true, Ordering::Relaxed);
                self.set_result(format!("failed: {failed}"));
            }
        }
    }

    async fn check(&self) -> Result<String, Error> {
        let store = &*self.store;
        if let Err(damage) = store.check_files().await {
            warn!(%damage, "the files of the store are damaged");
        }
        let report = self.verify().await?;
        if let Some(damage) = report.damage {
            return Ok(format!("the ledger is damaged: {}", damage.what));
        }
        let differences = self.count_differences().await?;
        if differences == 0 {
            return Ok(format!("sound: {} entries", report.entries));
        }
        warn!(differences, "the tables differ from the ledger and are rebuilt");
        let (actor, reason) = (Actor::system(), "the tables differed from the ledger");
        self.rebuild(&actor, reason, &ProgressSink::default()).await?;
        Ok(format!("the tables differed from the ledger in {differences} rows and were rebuilt"))
    }

    /// Verifies the whole ledger, also against the checkpoints that were copied elsewhere. Damage stops all writes, also of
    /// later processes, until a verification finds none.
    pub(crate) async fn verify(&self) -> Result<Report, Error> {
        let report = verify(&*self.store, self.anchors()?, &ProgressSink::default()).await?;
        if report.verdict != Verdict::Ok {
            let what = report.damage.as_ref().map_or("", |damage| &damage.what);
            error!(what, "the ledger is damaged: stopped writing");
            self.store.stop_writing(what.to_owned());
            self.write_guard.persist_damage();
        } else {
            self.write_guard.clear_damage();
        }
        Ok(report)
    }

    /// Compares the tables with the ledger up to the same entry.
    async fn count_differences(&self) -> Result<u64, Error> {
        let store = &*self.store;
        let mut fold = Fold::default();
        let end = store.head().await.map_err(errors::store)?.size();
        fold.advance(store, end, &ProgressSink::default()).await?;
        // Tables that cannot be read are rebuilt.
        let Ok(stored) = store.load_derived().await else { return Ok(1) };
        fold.advance(store, stored.through, &ProgressSink::default()).await?;
        Ok(rebuild::count_differences(&stored, &fold.derived()?))
    }

    /// The checkpoints that were copied elsewhere.
    fn anchors(&self) -> Result<Anchors, Error> {
        let copy = self.installation.settings.checkpoint_copy.as_deref();
        let own = self.installation.settings.data.join(CHECKPOINTS_FILE);
        let read = |path: &Path| read_notes(path).map_err(|error| unreadable(path, error));
        Ok(Anchors {
            keys: Vec::new(),
            checkpoints: copy.map(read).transpose()?.flatten(),
            own_checkpoints: read(&own)?,
        })
    }
}
