//! The store with many schedules: it takes minutes to make, so several phases share it.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use api::{StatusAsk, ask};
use tempfile::TempDir;

use super::place::Place;
use super::plan::Plan;

pub(crate) struct Large {
    /// Where it is kept for another run.
    kept: Option<PathBuf>,
    made: Option<TempDir>,
}

impl Large {
    pub(crate) fn new(kept: Option<PathBuf>) -> Large {
        Large { kept, made: None }
    }

    /// Its directory, filled by these plans unless that was done before.
    pub(crate) async fn with(&mut self, dir: &Path, plans: &[Plan]) -> anyhow::Result<PathBuf> {
        let data = match (&self.kept, &self.made) {
            (Some(kept), _) => kept.clone(),
            (None, Some(made)) => made.path().to_owned(),
            (None, None) => self.made.insert(tempfile::tempdir_in(dir)?).path().to_owned(),
        };
        std::fs::create_dir_all(&data)?;
        let is_new = !data.join("midwatch.db").exists();
        let place = Place::open(&data).await?;
        for plan in plans.iter().filter(|_| is_new) {
            let rate = plan.add(&place.handle).await?;
            println!("  made     {} × {} at {rate:.0}/s", plan.schedules, plan.name);
        }
        let (found, meant) = (ask(&*place.handle, StatusAsk {}).await?.schedules, total(plans));
        ensure!(found == meant as i64, "{found} of {meant} schedules in {}", data.display());
        place.close().await?;
        Ok(data)
    }
}

pub(crate) fn total(plans: &[Plan]) -> usize {
    plans.iter().map(|plan| plan.schedules).sum()
}
