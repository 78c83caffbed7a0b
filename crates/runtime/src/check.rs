//! The background check: is the log sound, and are the tables what the log says?
//!
//! It runs beside the watch after a start and reads everything once. A damaged log stops all writing
//! and loses nothing, until a check passes; tables that differ are made anew, and an event tells of it.

use api::{Error, ProgressSink};
use kernel::Actor;
use ledger::verify::{Anchors, Report, Verdict};
use tracing::{error, info, warn};

use crate::checkpoints::{notes, unreadable};
use crate::errors;
use crate::log::verify;
use crate::rebuild::{Fold, differences};
use crate::watch::Engine;

impl Engine {
    pub(crate) async fn check(&self) {
        self.set_check_found("running");
        match self.try_check().await {
            Ok(found) => {
                info!(found, "checked the log and the tables");
                self.set_check_found(found);
            }
            Err(failed) => {
                error!(%failed, "the check of the log and the tables did not finish");
                self.set_check_found(format!("did not finish: {failed}"));
            }
        }
    }

    async fn try_check(&self) -> Result<String, Error> {
        let store = self.store();
        if let Err(damage) = store.check_files().await {
            warn!(%damage, "the files of the store are damaged");
        }
        let report = self.verify_all().await?;
        if let Some(damage) = report.damage {
            return Ok(format!("the log is damaged: {}", damage.what));
        }
        let differences = self.count_differences().await?;
        if differences == 0 {
            return Ok(format!("sound: {} entries", report.entries));
        }
        warn!(differences, "the tables differ from the log and are made anew");
        let (actor, reason) = (Actor::system(), "the tables differed from the log");
        self.rebuild(&actor, reason, &ProgressSink::default()).await?;
        Ok(format!("the tables differed from the log in {differences} rows and were made anew"))
    }

    /// Verifies the whole log against what is known from outside it. Damage stops all writing, also
    /// that of later processes, until this finds none.
    pub(crate) async fn verify_all(&self) -> Result<Report, Error> {
        let report = verify(self.store(), self.anchors()?, &ProgressSink::default()).await?;
        if report.verdict != Verdict::Ok {
            let what = report.damage.as_ref().map_or("", |damage| &damage.what);
            error!(what, "the log is damaged: nothing is written any more");
            self.store().stop_writing(what.to_owned());
            self.remember_damage();
        } else {
            self.forget_damage();
        }
        Ok(report)
    }

    /// Compares at one moment; what is committed meanwhile belongs to neither side.
    async fn count_differences(&self) -> Result<u64, Error> {
        let store = self.store();
        let mut fold = Fold::default();
        let end = store.head().await.map_err(errors::store)?.size();
        fold.advance(store, end, &ProgressSink::default()).await?;
        // A table that cannot be read is not an error here: it is made anew.
        let Ok(stored) = store.derived().await else { return Ok(1) };
        fold.advance(store, stored.through, &ProgressSink::default()).await?;
        Ok(differences(&stored, &fold.derived()?))
    }

    /// What is known of this log from outside it.
    fn anchors(&self) -> Result<Anchors, Error> {
        let copy = self.settings().checkpoint_copy.as_deref();
        Ok(Anchors {
            keys: Vec::new(),
            checkpoints: match copy {
                Some(copy) => notes(copy).map_err(|error| unreadable(copy, error))?,
                None => None,
            },
        })
    }
}
